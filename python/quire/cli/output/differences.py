"""What `quire diff` found, in each of its formats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, Final

import quire
from quire._common.terminal import escape_controls, escape_line
from quire._native import _parse_shown  # pyright: ignore[reportPrivateUsage]
from quire.cli.output.message_formats import encoded, json_of, yaml_of
from quire.cli.output.progress import Progress
from quire.cli.output.row_formats import print_rows
from quire.cli.streams import Output
from quire.replaying.comparison import Comparison, Difference
from quire.replaying.message_values import Node, Values, changes, shown

_HEAD: Final = 2  # lines of a unified diff that name files
_NOTHING: Final = "-"
_COUNTS: Final = ("alike", "changed", "left", "right")
_COLUMNS: Final = ("kind", "left", "right", "left_message", "right_message", "fields")


class Found:
    """
    The differences to show, at most *limit*; all are counted.

    Args:
        comparison: What finds them.
        values: How values are compared; None if bytes are.
        limit: How many to show.
        progress: A line to clear before anything is printed.

    """

    def __init__(
        self, comparison: Comparison, values: Values | None, limit: int, progress: Progress
    ) -> None:
        """Compare nothing yet."""
        self.values = values
        self._comparison = comparison
        self._limit = limit
        self._progress = progress

    def __iter__(self) -> Iterator[Difference]:
        """Yield those to show."""
        for difference in self._comparison:
            if self._comparison.differences <= self._limit:
                self._progress.clear()
                yield difference
        self._progress.clear()

    def counts(self) -> dict[str, int]:
        """Return how many messages are alike, changed, or in one of both queues."""
        return {name: getattr(self._comparison, name) for name in _COUNTS}

    def changes(
        self, left: quire.Excerpt, right: quire.Excerpt
    ) -> Iterator[tuple[str, Node | None, Node | None]]:
        """Yield the path of each value that differs, with both; nothing where bytes are."""
        if self.values is not None:
            yield from changes(self.values.of(left.data), self.values.of(right.data))


def print_differences(style: str, found: Found) -> None:
    """Print differences on stdout, and how many there are."""
    if style in {"csv", "arrow"}:
        print_rows(style, _COLUMNS, (_row(found, it) for it in found))
        return
    output = Output()
    for text in _PRINTERS[style](found):
        output.write(encoded(text))
    output.flush()


def _text(found: Found) -> Iterator[str]:
    for difference in found:
        yield from (f"{line}\n" for line in _hunk(found, difference))
    yield " ".join(f"{name}={count}" for name, count in found.counts().items()) + "\n"


def _hunk(found: Found, difference: Difference) -> Iterator[str]:
    left, right = difference.left, difference.right
    yield f"@ {_index(left) or _NOTHING} {_index(right) or _NOTHING}"
    if left is not None and right is not None:
        yield from _lines(left, right) if found.values is None else _fields(found, left, right)
        return
    for mark, one in (("-", left), ("+", right)):
        if one is not None:
            yield from (f"{mark}{line}" for line in yaml_of(one.data).splitlines())


def _fields(found: Found, left: quire.Excerpt, right: quire.Excerpt) -> Iterator[str]:
    for path, *pair in found.changes(left, right):
        for mark, value in zip("-+", pair, strict=True):
            if value is not None:
                name = f"{escape_line(path)}: " if path else ""
                yield f"{mark}{name}{escape_line(shown(value))}"


def _lines(left: quire.Excerpt, right: quire.Excerpt) -> Iterator[str]:
    """Yield the lines that changed, between some that did not."""
    texts = yaml_of(left.data).splitlines(), yaml_of(right.data).splitlines()
    if texts[0] != texts[1]:
        for number, line in enumerate(unified_diff(*texts, lineterm="")):
            if number >= _HEAD and not line.startswith("@@"):
                yield line
        return
    yield " the same values in other bytes"
    yield f"-{left.data.hex()}"
    yield f"+{right.data.hex()}"


def _objects(found: Found) -> Iterator[str]:
    """Yield each difference as JSON, then the counts."""
    for difference in found:
        left, right = difference.left, difference.right
        parts = [f'"kind": "{difference.kind}"', *_side("left", left), *_side("right", right)]
        if left is not None and right is not None and found.values is not None:
            parts.append(f'"fields": {json.dumps(_paths(found, left, right))}')
        yield f"{{{', '.join(parts)}}}"
    yield json.dumps(found.counts())


def _side(name: str, message: quire.Excerpt | None) -> Iterator[str]:
    if message is not None:
        yield f'"{name}": {{"index": "{message.index:#x}", "message": {json_of(message.data)}}}'


def _jsonl(found: Found) -> Iterator[str]:
    return (f"{text}\n" for text in _objects(found))


def _json(found: Found) -> Iterator[str]:
    between = "["
    for text in _objects(found):
        yield f"{between}\n{text}"
        between = ","
    yield "\n]\n"


def _yaml(found: Found) -> Iterator[str]:
    for text in _objects(found):
        yield escape_controls("---\n" + quire.types.to_yaml(_parse_shown(text)))


def _row(found: Found, difference: Difference) -> dict[str, Any]:
    left, right = difference.left, difference.right
    fields = [] if left is None or right is None else _paths(found, left, right)
    return {
        "kind": difference.kind,
        "left": _index(left),
        "right": _index(right),
        "left_message": None if left is None else json_of(left.data),
        "right_message": None if right is None else json_of(right.data),
        "fields": " ".join(fields) or None,
    }


def _paths(found: Found, left: quire.Excerpt, right: quire.Excerpt) -> list[str]:
    return [path for path, *_ in found.changes(left, right)]


def _index(message: quire.Excerpt | None) -> str | None:
    return None if message is None else f"{message.index:#x}"


_PRINTERS: Final = {"text": _text, "yaml": _yaml, "json": _json, "jsonl": _jsonl}
