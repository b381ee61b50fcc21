"""Queues of the older formats whose messages are BinaryWire, and what a tailer finds in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import quire
from any_format import open_vanilla
from queues import DAY_MS, START_MS

FORMATS = ("vanilla", "quick-queue")
PAGE_BYTES = 4096  # an index page has 256 entries


def wires(numbers: Iterable[int], folder: Path) -> list[bytes]:
    """Return the maps of these numbers as the bytes of messages."""
    with quire.open(folder, roll_cycle="TEST4_DAILY", block_bytes=2**16) as queue:
        with queue.appender() as appender:
            for number in numbers:
                appender.write_map({"n": number, "at": START_MS + number})
        return [excerpt.data for excerpt in queue.tailer()]


def fill(path: Path, kind: str, days: Iterable[list[bytes]], *, first_day: int = 0) -> Path:
    """Append the messages of each day; a Quick-Queue has them in a row."""
    clock = quire.ManualClock(START_MS + first_day * DAY_MS)
    with _open(path, kind, clock) as queue, queue.appender() as appender:
        for messages in days:
            appender.write_many(messages)
            clock.advance(DAY_MS)
    return path


def _open(
    path: Path, kind: str, clock: quire.ManualClock
) -> quire.vanilla.VanillaQueue | quire.quick_queue.QuickQueue:
    if kind == "quick-queue":
        return quire.quick_queue.open(path, page_bytes=PAGE_BYTES)
    return open_vanilla(
        path,
        clock=clock,
        index_block_bytes=PAGE_BYTES,
        data_block_bytes=16 * PAGE_BYTES,
    )


def found(path: Path) -> list[tuple[int, bytes]]:
    """Return index and bytes of every message, as a tailer reads them."""
    with quire.open(path, read_only=True, create=False) as queue:
        return [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]


def free_entries(path: Path, start: int, end: int) -> None:
    """Free entries of a Vanilla Chronicle's first cycle, as a power cut can leave it."""
    index = min(path.glob("*/index-0"))
    content = bytearray(index.read_bytes())
    content[8 * start : 8 * end] = bytes(8 * (end - start))
    index.write_bytes(content)


def leave_unfinished(path: Path, *numbers: int, proven: bool = True) -> None:
    """
    Undo the end of entries of a Quick-Queue, as producers leave them that die before it.

    Unless they are *proven*, they do not fit the entries around them.
    """
    index = path / "0.qmx"
    content = bytearray(index.read_bytes())
    for number in numbers:
        content[16 * number + 15] = 0
        content[16 * number + 8] += not proven
    index.write_bytes(content)
