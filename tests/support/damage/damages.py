"""Damages of queues: missing marks, headers and messages that cannot be read, old times."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import quire
from queues import DAY_MS, START_MS
from reference import Store

DAYS, PER_DAY = 4, 300
WHOLE = [{"n": number} for number in range(DAYS * PER_DAY)]
LONG_AGO = 1_700_000_000
"""Longer than any grace time."""


def fill(path: Path, days: int = DAYS, per_day: int = PER_DAY, *, source_id: int = 0) -> list[Path]:
    """Make a queue of some days with as many messages each; return its files."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(
            path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=1, source_id=source_id
        ) as queue,
        queue.appender() as appender,
    ):
        for number in range(days * per_day):
            appender.write_map({"n": number})
            if number % per_day == per_day - 1:
                clock.advance(DAY_MS)
    return sorted(path.glob("*.cq4"))


def patch(file: Path, position: int, data: bytes) -> None:
    handle = os.open(file, os.O_RDWR)
    os.pwrite(handle, data, position)
    os.close(handle)


def erase_marker(file: Path) -> int:
    """Take a file's end-of-file marker away, as if its writer had died; return where it was."""
    tail = Store(file.read_bytes()).tail
    patch(file, tail, bytes(8))
    return tail


def age(file: Path) -> None:
    """Have a file look as if nobody had written to it for a long time."""
    os.utime(file, (LONG_AGO, LONG_AGO))


def positions(file: Path) -> list[int]:
    """Return where the messages of a file lie."""
    store = Store(file.read_bytes())
    return [document.position for document in store.documents if not document.is_metadata]


def break_message(file: Path, number: int) -> int:
    """Have a message claim more bytes than the file has; return where it lies."""
    position = positions(file)[number]
    patch(file, position, struct.pack("<I", 0x3FFF_FFF0))
    return position


def lose_header(file: Path) -> None:
    """Zero the first header of a file."""
    patch(file, 0, bytes(4))


def lose_page(file: Path) -> None:
    """Zero the first page of a file, with the words of its header."""
    patch(file, 0, bytes(4096))


def spoil(file: Path) -> None:
    """Write something else over the beginning of a file."""
    patch(file, 0, b"spoiled!" * 16)


def empty(file: Path) -> None:
    """Take all bytes of a file away."""
    os.truncate(file, 0)
