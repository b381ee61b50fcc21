"""``quire dump``: every document of every file, as it lies there."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from quire._common.terminal import escape_controls, escape_line
from quire._native import Dump
from quire.cli.exit_codes import error_text
from quire.cli.output.dump_older import is_older, texts_of
from quire.cli.output.stdout import Output
from quire.cli.parameters import PATH, open_journal, value_errors_as_usage
from quire.cli.shared_options import range_options
from quire.errors import NotAQueueError, QuireError
from quire.formats.adapters import numbering_of
from quire.formats.detection import refuse_part, refuse_queues, uncompressed
from quire.opening.discovery import TABLE

if TYPE_CHECKING:
    from quire.ranges.range import Limits

_SUFFIXES = (".cq4", ".cq4t")
_OF_VERSION_4 = "directory-listing.cq4t"


class _Part(NamedTuple):
    """A file to dump, and the sequences of its messages to start with and to stop before."""

    file: Path
    start: int = 0
    end: int | None = None


@click.command()
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@range_options
def dump(paths: tuple[Path, ...], time_field: str | None, **points: Any) -> None:  # noqa: ANN401
    """
    Print every document of queues or single files.

    Positions, states and payloads, as Java's DumpMain prints them: roll files, their indexes, and
    the table of the queue. A damaged file is shown up to the damage, and the others after it.
    Of a Vanilla Chronicle or a Quick-Queue: each message with its index and length, cycle by
    cycle or page by page; damaged entries are shown and skipped.

    With --from or --to, only the messages of the range are shown, with the metadata between them.
    A file's header is shown if its first message is in the range; the table never is. A POINT is
    as for replay.

    \b
    Examples:
      quire dump orders | less
      quire dump orders/20240115F.cq4 orders/metadata.cq4t
      quire dump orders --from 0x4d1900000010 --to 0x4d1900000020
    """  # noqa: D301 - click reads the backspace
    output = Output()
    wrong: list[str] = []
    limits = _limits(points["from"], points["to"], time_field)
    for path in paths:
        with value_errors_as_usage():
            if is_older(path):
                for text in texts_of(path, limits, wrong):
                    output.write(text.encode("utf-8", "backslashreplace"))
                continue
            parts = _files(path) if limits is None else _limited(path, limits)
        for part in parts:
            _dump(part, output, wrong, has_title=path.is_dir())
    output.flush()
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise click.ClickException(wrong[0] + more)


def _limits(
    start: int | datetime | None, end: int | datetime | None, time_field: str | None
) -> Limits | None:
    if start is None and end is None:
        return None
    from quire.ranges.range import Limits

    return Limits(start, end, time_field)


def _dump(part: _Part, output: Output, wrong: list[str], *, has_title: bool) -> None:
    if has_title:
        output.write(f"## {escape_line(part.file.name)}\n".encode())
    try:
        for piece in Dump(*part):
            output.write(_shown(piece) if output.is_terminal else piece)
    except (QuireError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        output.write(f"# {escape_line(error_text(error))}\n".encode())
        wrong.append(error_text(error))


def _files(path: Path) -> list[_Part]:
    """Return the files of a queue by name, or the file itself."""
    if not path.is_dir():
        path.stat()  # says so itself if there is nothing
        return [_Part(path)]
    found = (file for file in path.iterdir() if file.name != _OF_VERSION_4)
    files = sorted(file for file in found if Path(uncompressed(file.name)).suffix in _SUFFIXES)
    if not files:
        refuse_part(str(path))
        refuse_queues(str(path))
        raise NotAQueueError(f"not a Chronicle Queue 5 queue: no *.cq4 file path={path}")
    return [_Part(file) for file in files]


def _limited(path: Path, limits: Limits) -> list[_Part]:
    """Return the roll files with messages of a range."""
    if path.name == TABLE:
        raise click.UsageError(f"the table of a queue has no --from and no --to: path={path}")
    with open_journal(path) as queue:
        first, past = limits.indexes(queue)
        roll = numbering_of(queue)
        parts = list[_Part]()
        for cycle in queue.cycles:
            low, high = roll.to_index(cycle, 0), roll.to_index(cycle + 1, 0)
            if first < high and low < past:
                start = roll.to_sequence(first) if first > low else 0
                end = roll.to_sequence(past) if past < high else None
                parts.append(_Part(Path(queue.file_for_cycle(cycle)), start, end))
        return parts


def _shown(piece: bytes) -> bytes:
    return escape_controls(piece.decode()).encode()
