"""``quire diff``: two queues compared, message by message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final, Literal

import click

import quire
from quire._terminal import escape_line
from quire.cli.arguments import PATH, parse_point
from quire.cli.errors import error_text, print_error
from quire.cli.formats import json_of, yaml_of
from quire.cli.output import Output
from quire.cli.progress import Progress
from quire.replaying.compare import Comparison, Difference
from quire.replaying.values import Node, Values, changes, shown

_DIFFERENT: Final = 1
_TROUBLE: Final = 2  # as diff does, so that a failure is not taken for a difference
_HEAD: Final = 2  # lines of a unified diff that name files
_NOTHING: Final = "-"


@click.command()
@click.argument("left", metavar="A", type=PATH)
@click.argument("right", metavar="B", type=PATH)
@click.option(
    "--by",
    type=click.Choice(["position", "index"]),
    default="position",
    show_default=True,
    help="Pair messages by position, or by index.",
)
@click.option("--values", is_flag=True, help="Compare values, not bytes.")
@click.option(
    "--ignore",
    metavar="FIELD",
    multiple=True,
    help="Compare values without this field. Repeatable.",
)
@click.option(
    "--from", "start", type=parse_point, metavar="POINT", help="Start at this index or time."
)
@click.option(
    "--to", "end", type=parse_point, metavar="POINT", help="Stop before this index or time."
)
@click.option("--time-field", metavar="NAME", help="The field that holds the event time.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    metavar="N",
    show_default=True,
    help="How many differences to show; all are counted.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("-q", "--brief", is_flag=True, help="Print nothing; stop at the first difference.")
def diff(
    left: Path,
    right: Path,
    *,
    limit: int,
    as_json: bool,
    brief: bool,
    **how: Any,  # noqa: ANN401 - click checks them
) -> None:
    """
    Compare two queues, message by message.

    Only messages that exist at the start of the comparison are read.

    Exit codes are those of diff: 0 without differences, 1 with differences, 2 on failure. A POINT
    is as for replay.

    A message that one queue lacks is found by those after it, unless more than 128 are different
    in a row. With --values, neither encodings nor the order of fields matter, and changed fields
    are shown. --ignore time leaves out that field at every level, trade.time the one within trade,
    and history the history of messages.

    \b
    Examples:
      quire diff expected actual
      quire diff expected actual --ignore time --ignore history
      quire diff yesterday today --by index --from 0x4d1a00000000 --json
    """  # noqa: D301 - click reads the backspace
    progress = Progress()
    try:
        comparison = quire.compare(left, right, progress=progress.count, **how)
        values = Values(how["ignore"]) if how["values"] or how["ignore"] else None
        if brief:
            is_different = next(comparison, None) is not None
        else:
            _Shown(comparison, values, limit, progress, as_json=as_json).all()
            is_different = comparison.differences > 0
    except BrokenPipeError:  # nobody reads on, as after `| head`
        raise
    except (quire.QuireError, OSError, ValueError) as error:
        progress.clear()
        print_error(error_text(error))
        raise click.exceptions.Exit(_TROUBLE) from None
    finally:
        progress.clear()
    if is_different:
        raise click.exceptions.Exit(_DIFFERENT)


class _Shown:
    """Shows what is different."""

    def __init__(
        self,
        comparison: Comparison,
        values: Values | None,
        limit: int,
        progress: Progress,
        *,
        as_json: bool,
    ) -> None:
        self._comparison = comparison
        self._values = values
        self._limit = limit
        self._progress = progress
        self._as_json = as_json
        self._output = Output()

    def all(self) -> None:
        """Show the differences, and how many there are."""
        for difference in self._comparison:
            if self._comparison.differences <= self._limit:
                self._progress.clear()
                lines = self._object(difference) if self._as_json else self._hunk(difference)
                for line in lines:
                    self._write(line)
        counts = {
            name: getattr(self._comparison, name) for name in ("alike", "changed", "left", "right")
        }
        self._progress.clear()
        if self._as_json:
            self._write(json.dumps(counts))
        else:
            self._write(" ".join(f"{name}={count}" for name, count in counts.items()))
        self._output.flush()

    def _write(self, line: str) -> None:
        self._output.write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def _hunk(self, difference: Difference) -> Iterator[str]:
        left, right = difference.left, difference.right
        yield f"@ {_index(left)} {_index(right)}"
        if left is not None and right is not None:
            if self._values is not None:
                yield from self._fields(left, right)
            else:
                yield from _lines(left, right)
        else:
            for mark, one in (("-", left), ("+", right)):
                if one is not None:
                    yield from (f"{mark}{line}" for line in yaml_of(one.data).splitlines())

    def _fields(self, left: quire.Excerpt, right: quire.Excerpt) -> Iterator[str]:
        for path, *pair in self._changes(left, right):
            for mark, value in zip("-+", pair, strict=True):
                if value is not None:
                    name = f"{escape_line(path)}: " if path else ""
                    yield f"{mark}{name}{escape_line(shown(value))}"

    def _changes(
        self, left: quire.Excerpt, right: quire.Excerpt
    ) -> Iterator[tuple[str, Node | None, Node | None]]:
        if self._values is not None:
            yield from changes(self._values.of(left.data), self._values.of(right.data))

    def _object(self, difference: Difference) -> Iterator[str]:
        left, right = difference.left, difference.right
        parts = [f'"kind": "{difference.kind}"', *_side("left", left), *_side("right", right)]
        if left is not None and right is not None and self._values is not None:
            paths = [path for path, *_ in self._changes(left, right)]
            parts.append(f'"fields": {json.dumps(paths)}')
        yield f"{{{', '.join(parts)}}}"


def _index(message: quire.Excerpt | None) -> str:
    return _NOTHING if message is None else f"{message.index:#x}"


def _side(name: Literal["left", "right"], message: quire.Excerpt | None) -> Iterator[str]:
    if message is not None:
        yield f'"{name}": {{"index": "{message.index:#x}", "message": {json_of(message.data)}}}'


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
