"""``quire dump``: every document of every file, as it lies there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from quire._common.roll_file_names import uncompressed
from quire._common.terminal import escape_controls, escape_line
from quire._native import Dump
from quire.cli.exit_codes import error_text
from quire.cli.output.message_formats import encoded, yaml_of
from quire.cli.parameters import PATH, open_journal, open_read_only, value_errors_as_usage
from quire.cli.shared_options import range_options
from quire.cli.streams import Output
from quire.errors import CorruptError, NotAQueueError, QuireError
from quire.formats.adapters import adapter_at, adapter_of, numbering_of
from quire.formats.detection import refuse_part, refuse_queues
from quire.handles.base import AnyExcerpt, Queue
from quire.opening.discovery import TABLE
from quire.ranges.seek import NO_INDEX

if TYPE_CHECKING:
    from quire.ranges.range import Limits

_SUFFIXES = (".cq4", ".cq4t")
_PAGES = {".qx", ".qmx", ".qm", ".qd"}
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
    the table of the queue. A damaged file is shown up to the damage, followed by the other files.
    For other formats: each message with its index and length, cycle by cycle or page by page;
    damaged entries are shown and skipped.

    With --from or --to, only the messages of the range are shown, with the metadata between them.
    A file's header is shown if its first message is in the range; the table never is. For POINT,
    see replay.

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
            if _has_documents(path):
                pieces = _documents(path, limits, wrong)
            else:
                pieces = (encoded(text) for text in _messages(path, limits, wrong))
            for piece in pieces:
                output.write(_shown(piece) if output.is_terminal else piece)
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


def _has_documents(path: Path) -> bool:
    """
    Return whether a path is shown document by document; else it is a queue of bare messages.

    Raises:
        click.UsageError: The path is one of the files of a queue that are shown together.

    """
    is_part = path.suffix in _PAGES or path.name.startswith(("index-", "data-"))
    if is_part and not path.is_dir():
        raise click.UsageError(
            f"files of a Vanilla Chronicle or a Quick-Queue are shown together: path={path}"
            " (give the directory of the queue)"
        )
    adapter = adapter_at(path)
    return adapter is None or adapter.is_wire


def _documents(path: Path, limits: Limits | None, wrong: list[str]) -> Iterator[bytes]:
    """Yield the documents of a queue's files; damage is shown, added to *wrong*, and ends one."""
    for part in _files(path) if limits is None else _limited(path, limits):
        if path.is_dir():
            yield encoded(f"## {escape_line(part.file.name)}\n")
        try:
            yield from Dump(*part)
        except (QuireError, OSError) as error:
            wrong.append(error_text(error))
            yield encoded(f"# {escape_line(error_text(error))}\n")


def _messages(path: Path, limits: Limits | None, wrong: list[str]) -> Iterator[str]:
    """Yield the messages of a queue; damage is shown, added to *wrong* and skipped."""
    with open_read_only(path) as queue:
        adapter, to_cycle = adapter_of(queue), numbering_of(queue).to_cycle
        first, past = (0, NO_INDEX) if limits is None else limits.indexes(queue)
        names = {it.cycle: it.name for it in adapter.pieces(queue)}
        for cycle in adapter.cycles(queue):
            if not to_cycle(first) <= cycle <= to_cycle(past - 1):
                continue
            yield f"## {escape_line(names.get(cycle, str(cycle)))}\n"
            try:
                count = adapter.count(queue, cycle)
            except CorruptError as error:
                wrong.append(str(error))
                yield f"# {escape_line(str(error))}\n"
                continue
            yield from _of_cycle(queue, cycle, count, (first, past), wrong)


def _of_cycle(
    queue: Queue,
    cycle: int,
    count: int,
    bounds: tuple[int, int],
    wrong: list[str],
) -> Iterator[str]:
    numbering = numbering_of(queue)
    index = max(numbering.to_index(cycle, 0), bounds[0])
    end = min(numbering.to_index(cycle, count), bounds[1])
    with queue.tailer() as tailer:
        tailer.move_to_index(index)
        while index < end:
            try:
                excerpt = tailer.read()
            except CorruptError as error:
                wrong.append(str(error))
                yield f"# index: {index:#x}, {escape_line(str(error))}\n"
                index += numbering.step
                tailer.move_to_index(index)
                continue
            if excerpt is None or excerpt.index >= end:
                return
            yield _text(excerpt)
            index = excerpt.index + numbering.step


def _text(excerpt: AnyExcerpt) -> str:
    producer = getattr(excerpt, "producer", None)
    by = "" if producer is None else f", producer: {producer}"
    data = excerpt.data
    return f"# index: {excerpt.index:#x}, length: {len(data)}{by}\n{yaml_of(data) if data else ''}"


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
