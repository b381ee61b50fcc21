"""Whether what a pipeline writes lies apart from everything else that it reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from quire.pipeline.spec.yaml_lines import Document, Place

_PATTERN: Final = re.compile(r"[*?\[{]")


def is_address(path: str) -> bool:
    """Whether a path is an address, such as ``s3://bucket/folder``."""
    return ":/" in path


def local(document: Document, path: str) -> str:
    """Return a path as it is when it is an address, else absolute."""
    return path if is_address(path) else str((document.path.parent / path).resolve())


def check_paths(document: Document) -> None:
    """Report what is written where something else of the pipeline is, or above or below it."""
    found = document.values
    seen = [
        (f"source {name}", _normal(document, source["path"]))
        for name, source in found["sources"].items()
        if "path" in source
    ]
    for place, what, path in _written(found):
        own = _normal(document, path)
        for other, theirs in seen:
            if own == theirs:
                document.report(place, f"{other} is there too: path={own}")
            elif own.is_relative_to(theirs) or theirs.is_relative_to(own):
                around = f"lies within {other}, or around it: path={own} and {theirs}"
                document.report(place, around)
        seen.append((what, own))


def _written(found: Mapping[str, Any]) -> Iterator[tuple[Place, str, str]]:
    """Yield what is written: the state first, as it is always there."""
    yield ("state",), "the state", f"{found.get('state', 'state')}/{found['pipeline']}"
    for number, sink in enumerate(found["sinks"]):
        if "path" in sink:
            yield ("sinks", number), f"sinks[{number}]", sink["path"]
    path = found.get("quarantine", {}).get("path")
    if path is not None:
        yield ("quarantine",), "the quarantine", path


def _normal(document: Document, path: str) -> PurePosixPath:
    """Return a path without links, dots and patterns; of an address its parts."""
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    if is_address(path):
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
