"""Checks that a path that a pipeline writes overlaps no other path that it reads or writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from quire.pipeline.spec.parts import PipelineFile, TableSource
from quire.pipeline.spec.value_types import is_url
from quire.pipeline.spec.yaml_lines import Document, Place

_PATTERN: Final = re.compile(r"[*?\[{]")


def check_paths(document: Document, file: PipelineFile) -> None:
    """Report each path written that is the same as, above or below another path."""
    seen = [
        (f"source {name}", _normal(document, source.path))
        for name, source in file.sources.items()
        if not isinstance(source, TableSource)
    ]
    for place, what, path in _written(file):
        own = _normal(document, path)
        for other, theirs in seen:
            if own == theirs:
                document.report(place, f"{other} has the same path: path={own}")
            elif own.is_relative_to(theirs) or theirs.is_relative_to(own):
                problem = f"overlaps the path of {other}: path={own} other={theirs}"
                document.report(place, problem)
        seen.append((what, own))


def _written(file: PipelineFile) -> Iterator[tuple[Place, str, str]]:
    """Yield the paths that are written."""
    yield ("state",), "the state", f"{file.state}/{file.pipeline}"
    for number, sink in enumerate(file.sinks):
        if sink.path is not None:
            yield ("sinks", number), f"sinks[{number}]", sink.path
    if file.quarantine is not None:
        yield ("quarantine",), "the quarantine", file.quarantine.path


def _normal(document: Document, path: str) -> PurePosixPath:
    """Return a path without links, dots and patterns; the parts of a URL."""
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    if is_url(path):
        scheme, _, rest = path.partition(":/")
        return PurePosixPath(
            "/", f"{scheme}:", *(it for it in rest.split("/") if it not in {"", "."})
        )
    plain: list[str] = []
    for part in PurePosixPath(path).parts:
        if _PATTERN.search(part):
            break
        plain.append(part)
    return PurePosixPath((document.path.parent / Path(*plain)).resolve())
