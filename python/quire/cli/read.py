"""``quire read``: print messages of a queue: all, a range, the last ones, or as they arrive."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import click

import quire
from quire.cli.arguments import PATH, open_read_only, parse_point, replaced, value_errors_as_usage
from quire.cli.formats import FORMATS, as_it_is, framed
from quire.cli.output import Output
from quire.cli.selection import Bounds, Selection

_NOT_TOGETHER = (
    ("follow", "reverse"),
    ("follow", "to"),
    ("from", "last"),
    ("metadata", "reverse"),
    ("named", "from"),
    ("named", "last"),
    ("named", "reverse"),
    ("named", "metadata"),
)


def pattern_of(value: str) -> re.Pattern[str]:
    """
    Return a regular expression.

    Raises:
        click.BadParameter: It is none.

    """
    try:
        return re.compile(value, re.MULTILINE)
    except re.error as error:
        raise click.BadParameter(f"{value!r} is no regular expression: {error}") from error


class Look(NamedTuple):
    """How messages are shown, and which of them."""

    style: str
    with_index: bool
    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    def passes(self, document: quire.ReadDocument) -> bool:
        """Return whether the patterns let a message through."""
        return not (self.include or self.exclude) or self.text(document) is not None

    def text(self, document: quire.ReadDocument) -> str | None:
        """Return a message's text; None when the patterns do not let it through."""
        text = FORMATS[self.style](document)
        if self.include and not all(pattern.search(text) for pattern in self.include):
            return None
        if self.exclude and any(pattern.search(text) for pattern in self.exclude):
            return None
        return text


class Printer:
    """
    Shows messages on stdout.

    Args:
        look: How, and which.
        count: Stop after this many; None: never.
        at_once: Hand on each message before the next is read.

    """

    def __init__(self, look: Look, count: int | None, *, at_once: bool) -> None:
        """Begin with nothing shown."""
        self._look = look
        self._left = count
        self._at_once = at_once
        self._output = Output()
        self._is_array = look.style == "json"
        self._between = "["
        self.flush = self._output.flush

    def show(self, document: quire.ReadDocument) -> bool:
        """Show a message, unless the patterns are against it; return whether to go on."""
        text = self._look.text(document)
        if text is not None:
            self._write(document, text)
            if self._left is not None:
                self._left -= 1
            if self._at_once:
                self.flush()
        return self._left != 0

    def end(self) -> None:
        """Close what is open."""
        if self._is_array:
            self._output.write(b"[]\n" if self._between == "[" else b"\n]\n")
        self.flush()

    def _write(self, document: quire.ReadDocument, text: str) -> None:
        if self._look.style == "raw":
            self._output.write(document.bytes)
            return
        index = document.index if self._look.with_index else None
        frame = framed(self._look.style, text, index, is_metadata=document.is_metadata)
        if self._is_array:
            frame = f"{self._between}\n{frame.rstrip()}"
            self._between = ","
        self._output.write(as_it_is(frame))


@click.command()
@click.argument("path", type=PATH)
@click.option("-f", "--follow", is_flag=True, help="Wait for new messages until interrupted.")
@click.option(
    "-n", "--last", type=click.IntRange(min=0), metavar="N", help="Start N messages before the end."
)
@click.option(
    "--from", "from", type=parse_point, metavar="POINT", help="Start at this index or time."
)
@click.option(
    "--to", "to", type=parse_point, metavar="POINT", help="Stop before this index or time."
)
@click.option("--time-field", metavar="NAME", help="The field that holds the event time.")
@click.option("--start", "_start", hidden=True, expose_value=False, callback=replaced)
@click.option("--end", "_end", hidden=True, expose_value=False, callback=replaced)
@click.option("--count", type=click.IntRange(min=0), metavar="N", help="Stop after N messages.")
@click.option("--reverse", is_flag=True, help="Newest first.")
@click.option(
    "-i",
    "--include",
    type=pattern_of,
    metavar="REGEX",
    multiple=True,
    help="Only messages that match. Repeatable: all must match.",
)
@click.option(
    "-e",
    "--exclude",
    type=pattern_of,
    metavar="REGEX",
    multiple=True,
    help="Leave out messages that match. Repeatable.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice([*FORMATS]),
    default=next(iter(FORMATS)),
    show_default=True,
    help="Output format.",
)
@click.option("--metadata", is_flag=True, help="Show metadata documents too.")
@click.option("--no-index", is_flag=True, help="Leave out the indexes.")
@click.option("--named", metavar="TAILER", help="Resume at this named tailer, and move it.")
def read(path: Path, *, count: int | None, named: str | None, no_index: bool, **more: Any) -> None:  # noqa: ANN401 - click checks them
    """
    Print the messages of a queue, or of one of its files.

    Without --follow, it stops at the last message at the time of the start. Patterns are matched
    against the text as printed, without the index; --last counts matching messages. A POINT is as
    for replay.

    \b
    yaml   as Java's tools print it
    json   an array of objects, each with its index and message
    jsonl  one such object per line
    text   one line per message: its text, or its bytes as UTF-8
    hex    one line per message: its bytes
    raw    the bytes alone, one message after the other

    \b
    Examples:
      quire read orders --last 10 --follow
      quire read orders --include '^symbol: EUR' --exclude test
      quire read orders --from 0x4d1900000000 --count 3 --format jsonl
      quire read orders --from 2024-01-15 --to 2024-01-16
    """  # noqa: D301 - click reads the backspace
    _check({"named": named, **more})
    look = Look(more.pop("style"), not no_index, more.pop("include"), more.pop("exclude"))
    start, end = more.pop("from"), more.pop("to")
    field = more.pop("time_field")
    bounds = Bounds(start=None, end=None, **more)
    if bounds.reverse and bounds.last is not None:
        count = bounds.last if count is None else min(count, bounds.last)
    is_named = named is not None
    # The next read of a named tailer commits the message before it: that must be flushed first.
    printer = Printer(look, count, at_once=is_named)
    with (
        quire.open(path, create=False) if is_named else open_read_only(path) as queue,
        queue.tailer(named) as tailer,
    ):
        try:
            with value_errors_as_usage():
                bounds = bounds.between(queue, start, end, field)
            if count != 0:
                Selection(queue, tailer, bounds, look.passes).each(printer.show, printer.flush)
            printer.end()
        except quire.QuireError:
            printer.flush()  # what was read before the damage
            raise


def _check(options: dict[str, Any]) -> None:
    """
    Look for options that contradict one another.

    Raises:
        click.UsageError: Two do.

    """
    for pair in _NOT_TOGETHER:
        if all(options[name] is not None and options[name] is not False for name in pair):
            first, second = pair
            raise click.UsageError(f"--{first} and --{second} do not go together")
    if options["follow"] and options["style"] == "json":
        raise click.UsageError("--follow never ends the array of json: use --format jsonl")
