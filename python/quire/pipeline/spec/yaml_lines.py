"""YAML files with the line number of each value, and limits on their size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from quire.errors import PipelineFileError

Place = tuple[str | int, ...]

_BYTES_MAX: Final = 1 << 20
_TEXT_MAX: Final = 64 << 10
_VALUES_MAX: Final = 50_000
_DEPTH_MAX: Final = 50


@dataclass(slots=True)
class Document:
    """The values of a file, their lines, and the problems found so far."""

    path: Path
    values: Any = None
    lines: dict[Place, int] = field(default_factory=dict[Place, int])
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def line(self, place: Place) -> int:
        """Return the line of a value; for a missing value, that of the value it belongs to."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def report(self, place: Place, problem: str) -> None:
        """Add a problem of the value at *place*."""
        self.problems.append((self.line(place), f"{dotted(place)}: {problem}"))

    def error(self) -> PipelineFileError:
        """Return the error that lists all problems, by line."""
        lines = tuple(f"{line}: {problem}" for line, problem in sorted(set(self.problems)))
        return PipelineFileError(str(self.path), lines)


def dotted(place: Place) -> str:
    """Return the path of a value in the file: ``steps.clean.expect``, ``sinks[0].format``."""
    text = "".join(f"[{it}]" if isinstance(it, int) else f".{it}" for it in place)
    return text.removeprefix(".") or "the file"


def read(path: Path) -> Document:
    """
    Read a YAML file.

    Raises:
        PipelineFileError: The file is not YAML, has a duplicate key, or exceeds a limit.
        OSError: The file cannot be read.

    """
    document = Document(path)
    try:
        _read(document, _text(path))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        document.problems.append((line, f"not YAML: {error.problem}"))
    except RecursionError:
        document.problems.append((1, f"not YAML: nested too deep: limit={_DEPTH_MAX}"))
    except (yaml.YAMLError, ValueError) as error:
        document.problems.append((1, f"not YAML: {' '.join(str(error).split())}"))
    if document.problems:
        raise document.error()
    return document


def _text(path: Path) -> str:
    """
    Return the text of a file.

    Raises:
        ValueError: The file is too long.

    """
    with path.open("rb") as file:
        found = file.read(_BYTES_MAX + 1)
    if len(found) > _BYTES_MAX:
        raise ValueError(f"the file is too long: limit={_BYTES_MAX}")
    return found.decode("utf-8")


def _read(document: Document, text: str) -> None:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is not None:
            _Bounds().check(node)
            document.lines.update(_places(node, (), document))
            document.values = loader.construct_document(node)
    finally:
        loader.dispose()


class _Bounds:
    """
    Counts the values of a document with its aliases expanded, without expanding them.

    A few hundred bytes of nested aliases can expand to more values than fit into memory.
    """

    def __init__(self) -> None:
        """Start with no node seen."""
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def check(self, node: yaml.Node) -> int:
        """
        Return how many values a node expands to.

        Raises:
            yaml.MarkedYAMLError: The document has too many values, is nested too deeply or
                recursive, or a text is too long.

        """
        key = id(node)
        if key in self._sizes:
            return self._sizes[key]
        if key in self._open:
            raise self._refused("an alias refers to a value that contains it", node)
        if len(self._open) >= _DEPTH_MAX:
            raise self._refused(f"nested too deep: limit={_DEPTH_MAX}", node)
        self._open.add(key)
        size = 1 + sum(self.check(it) for it in self._inside(node))
        self._open.remove(key)
        if size > _VALUES_MAX:
            raise self._refused(f"too many values with all aliases: limit={_VALUES_MAX}", node)
        self._sizes[key] = size
        return size

    def _inside(self, node: yaml.Node) -> Iterator[yaml.Node]:
        if isinstance(node, yaml.MappingNode):
            for pair in node.value:
                yield from pair
        elif isinstance(node, yaml.SequenceNode):
            yield from node.value
        elif len(node.value) > _TEXT_MAX:
            raise self._refused(f"a text is too long: limit={_TEXT_MAX}", node)

    @staticmethod
    def _refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
        return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _places(node: yaml.Node, place: Place, document: Document) -> Iterator[tuple[Place, int]]:
    """Yield the place and line of each value; for a value with a key, the key's line."""
    if not place:
        yield (), node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            within = (*place, name)
            yield within, key.start_mark.line + 1
            if name in seen:
                document.problems.append(
                    (key.start_mark.line + 1, f"{dotted(within)}: duplicate key")
                )
            seen.add(name)
            yield from _places(value, within, document)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*place, number), value.start_mark.line + 1
            yield from _places(value, (*place, number), document)
