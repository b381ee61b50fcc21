"""
A life of a Vanilla Chronicle in the build with fault points: two cycles of two writers.

It changes messages, has an append fail, rebuilds an index, and reads under a name. It says what it
wrote and read, then how often each point was hit. The life after it has no fault. Beside the queue
lies one of many cycles, which is opened until its directory need not be listed.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import quire
from any_format import open_vanilla
from life_server import say, serve

CYCLES = 2
MESSAGES = 3
START_MS = 1_700_006_400_000  # midnight
DAY_MS = 86_400_000
SECOND_MS = 1000
DATA_BYTES = 256
ENTRIES = 8
SMALL: Any = {"index_block_bytes": 8 * ENTRIES, "data_block_bytes": DATA_BYTES}
LOST_THREAD = 5
MANY_CYCLES = 64


def live(path: Path, form: str, name: str) -> None:
    """Write on from the last cycle there is."""
    if form == "asynchronous":
        open_aged(path.with_name(f"{path.name}-aged"))
    first = max(0, sum(1 for _ in path.glob("[0-9]*")) - 1)
    options: dict[str, Any] = SMALL | {"synchronous": form == "synchronous"}
    for day in range(first, first + CYCLES):
        # So early in the day that the cycle before may still get messages.
        clock = quire.ManualClock(START_MS + day * DAY_MS + SECOND_MS)
        with open_vanilla(path, clock=clock, **options) as queue:
            append(queue, f"{name} {day}")
        lose(Path(queue.directory_for_cycle(queue.current_cycle)), f"{name} {day} 99 ")
        quire.vanilla.rebuild_index(path, files=quire.vanilla.FileOptions(**SMALL))
        with open_vanilla(path, clock=clock, **options) as queue:
            deliver(queue, f"{name} {day} 99 ")


def open_aged(path: Path) -> None:
    for day in range(MANY_CYCLES):
        (path / time.strftime("%Y%m%d", time.gmtime((START_MS + day * DAY_MS) / 1000))).mkdir(
            parents=True, exist_ok=True
        )
    hint = path / ".cycles"
    is_left = False
    while not is_left:
        is_left = hint.exists() and hint.stat().st_size > 0
        with open_vanilla(path, **SMALL) as queue:
            assert queue.last_index is None


def append(queue: quire.vanilla.VanillaQueue, prefix: str) -> None:
    with queue.appender() as one, queue.appender(thread_id=7) as other:
        for message in range(MESSAGES):
            for number, writer in enumerate((one, other)):
                payload = f"{prefix} {2 * message + number} ".encode() * (message + 1)
                say(writer.write_bytes(payload), payload.decode())
        append_aligned(one, f"{prefix} 50 " * 8)
        append_aligned(one, f"{prefix} 51 ")  # after a multiple of 8 bytes: padding comes first
        one.sync()
        folder = Path(queue.directory_for_cycle(queue.current_cycle))
        refuse(one, folder, prefix)


def append_aligned(writer: quire.vanilla.VanillaAppender, payload: str) -> None:
    with writer.writing_excerpt() as excerpt:
        excerpt.align()
        excerpt.write_bytes(payload.encode())
    say(excerpt.index, payload)


def refuse(writer: quire.vanilla.VanillaAppender, folder: Path, prefix: str) -> None:
    """Append until there is no place for an entry: the last record is taken back."""
    obstacle = folder / f"index-{len([*folder.glob('index-*')])}"
    obstacle.mkdir()
    try:
        for message in range(10, 11 + ENTRIES):
            payload = f"{prefix} {message} ".encode()
            say(writer.write_bytes(payload), payload.decode())
    except quire.errors.NotAQueueError:
        obstacle.rmdir()
    else:
        raise AssertionError(obstacle)


def lose(folder: Path, text: str) -> None:
    """Leave a record without an entry, as a writer does that dies before it stores that."""
    number = len([*folder.glob(f"data-{LOST_THREAD}-*")])
    record = struct.pack("<I", ~len(text) & 0xFFFFFFFF) + text.encode()
    (folder / f"data-{LOST_THREAD}-{number}").write_bytes(record.ljust(DATA_BYTES, b"\0"))


def deliver(queue: quire.vanilla.VanillaQueue, lost: str) -> None:
    for found in queue.tailer():
        if found.data.decode() == lost:
            say(found.index, lost)
    with queue.tailer("reader") as reader:
        while (excerpt := reader.read()) is not None:
            say("read", excerpt.data.decode())
            word = int.from_bytes(excerpt.data[:4], "little", signed=True)
            assert excerpt.compare_and_swap_int32(0, word, word)
            excerpt.write_bytes_at(0, excerpt.data[:3])


if __name__ == "__main__":
    serve(live)
