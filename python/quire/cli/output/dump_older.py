"""`quire dump` of Vanilla Chronicles and Quick-Queues: every message, with its index and length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

import quire
from quire._common.terminal import escape_line
from quire.cli.output.message_formats import yaml_of
from quire.cli.parameters import open_read_only
from quire.errors import CorruptError
from quire.formats.adapters import adapter_at, adapter_of, numbering_of
from quire.formats.missing import article
from quire.formats.protocols import AnyQueue
from quire.handles.base import AnyExcerpt
from quire.ranges.cycles import count_of, cycles_of
from quire.ranges.seek import NO_INDEX

if TYPE_CHECKING:
    from quire.ranges.range import Limits

_PAGES = {".qx", ".qmx", ".qm", ".qd"}


def is_older(path: Path) -> bool:
    """
    Whether a path is the directory of a queue of an older format.

    Raises:
        click.UsageError: The path is a file of an older queue, or an Indexed Chronicle.

    """
    adapter = adapter_at(path)
    if adapter is not None and not adapter.is_written:
        raise click.UsageError(f"not supported for {article(adapter.title)}: dump path={path}")
    if path.is_dir():
        return adapter is not None and not adapter.is_wire
    if path.suffix in _PAGES or path.name.startswith(("index-", "data-")):
        raise click.UsageError(
            f"files of a Vanilla Chronicle or a Quick-Queue are shown together: path={path}"
            " (give the directory of the queue)"
        )
    return False


def texts_of(path: Path, limits: Limits | None, wrong: list[str]) -> Iterator[str]:
    """Yield messages of a queue as text; damage is shown, added to *wrong* and skipped."""
    with open_read_only(path) as queue:
        first, past = (0, NO_INDEX) if limits is None else limits.indexes(queue)
        to_cycle = numbering_of(queue).to_cycle
        for cycle in cycles_of(queue):
            if not to_cycle(first) <= cycle <= to_cycle(past - 1):
                continue
            yield f"## {escape_line(_name_of(queue, cycle))}\n"
            try:
                count = count_of(queue, cycle)
            except CorruptError as error:
                wrong.append(str(error))
                yield f"# {escape_line(str(error))}\n"
                continue
            yield from _cycle(queue, cycle, count, (first, past), wrong)


def _name_of(queue: AnyQueue, cycle: int) -> str:
    return adapter_of(queue).place(queue, cycle).relative_to(queue.path).as_posix()


def _cycle(
    queue: quire.Queue,
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
