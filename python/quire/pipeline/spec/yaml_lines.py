"""YAML whose values know the line they stand on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from quire.errors import QuireError

Place = tuple[str | int, ...]

_BYTES_MAX: Final = 1 << 20
_TEXT_MAX: Final = 64 << 10
_VALUES_MAX: Final = 50_000
_DEPTH_MAX: Final = 50


class PipelineFileError(QuireError, ValueError):
    """A pipeline's file that cannot be run: everything that is wrong with it, a line each."""

    def __init__(self, file: str, problems: tuple[str, ...]) -> None:
        """Keep the problems apart from the text, for programs."""
        super().__init__(file, problems)
        self.file = file
        self.problems = problems

    def __str__(self) -> str:
        """Return all problems, each on a line of its own."""
        return "\n".join(f"{self.file}:{problem}" for problem in self.problems)


@dataclass(slots=True)
class Document:
    """A file's values, and what was found wrong with it so far."""

    path: Path
    values: Any = None
    lines: dict[Place, int] = field(default_factory=dict[Place, int])
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def line(self, place: Place) -> int:
        """Return the line of a value; of a value that is not there, the line it belongs to."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def report(self, place: Place, problem: str) -> None:
        """Keep what is wrong with the value at *place*."""
        self.problems.append((self.line(place), f"{dotted(place)}: {problem}"))

    def refuse(self) -> None:
        """
        Do nothing, or report all problems.

        Raises:
            PipelineFileError: There are problems.

        """
        if self.problems:
            told = sorted(set(self.problems))
            raise PipelineFileError(
                str(self.path), tuple(f"{line}: {problem}" for line, problem in told)
            )


def dotted(place: Place) -> str:
    """Return the path of a value in the file: ``steps.clean.expect``, ``sinks[0].format``."""
    text = "".join(f"[{it}]" if isinstance(it, int) else f".{it}" for it in place)
    return text.removeprefix(".") or "the file"


def read(path: Path) -> Document:
    """
    Read a YAML file.

    Raises:
        PipelineFileError: It is no YAML, or has a key twice.
        OSError: It cannot be read.

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
    document.refuse()
    return document


def _text(path: Path) -> str:
    """
    Return what a file holds.

    Raises:
        ValueError: It is longer than any pipeline.

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
    Looks how large a document is with all of its aliases in place, without putting them there.

    A few hundred bytes of aliases of aliases stand for more values than a machine has memory.
    """

    def __init__(self) -> None:
        """Know no node."""
        self._sizes: dict[int, int] = {}
        self._above: set[int] = set()

    def check(self, node: yaml.Node) -> int:
        """
        Return how many values a node stands for.

        Raises:
            yaml.MarkedYAMLError: Too many, too deep, one holds itself, or a text is too long.

        """
        key = id(node)
        if key in self._sizes:
            return self._sizes[key]
        if key in self._above:
            raise self._refused("an alias stands within its own value", node)
        if len(self._above) >= _DEPTH_MAX:
            raise self._refused(f"nested too deep: limit={_DEPTH_MAX}", node)
        self._above.add(key)
        size = 1 + sum(self.check(it) for it in self._inside(node))
        self._above.remove(key)
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
    """Yield the place and the line of each value; of those with a key, the key's line."""
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
                    (key.start_mark.line + 1, f"{dotted(within)}: stands there twice")
                )
            seen.add(name)
            yield from _places(value, within, document)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*place, number), value.start_mark.line + 1
            yield from _places(value, (*place, number), document)
