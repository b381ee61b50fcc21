"""What measurements of Quire share: how queues are opened, checked and appended to at a rate."""

from __future__ import annotations

import gc
import struct
import time
from array import array
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import quire
from bench.task import BLOCK_BYTES, DISTINCT, ROLL_CYCLE, START_MS, Task, messages

STAMPS = struct.Struct("<qq")
"""What a message at a rate starts with: its number, and when it was due."""
_SCHEDULED = Path("/proc/thread-self/schedstat")
_LEAST_SLEEP_NS = 10_000
"""A sleep takes longer than this in any case."""


def open_queue(  # noqa: PLR0913 - options
    path: Path,
    *,
    read_only: bool = False,
    double_buffer: bool = False,
    pretouch: bool = True,
    buffer_mode: Literal["none", "async"] = "none",
    durability: Literal["process", "each"] = "process",
) -> quire.JournalQueue:
    """Open a queue as all measured queues are opened."""
    return quire.open(
        path,
        roll_cycle=ROLL_CYCLE,
        clock=quire.ManualClock(START_MS),
        block_bytes=BLOCK_BYTES,
        read_only=read_only,
        wait=quire.WaitOptions(double_buffer=double_buffer),
        pretouch=pretouch,
        buffer_mode=buffer_mode,
        durability=durability,
    )


def verify(path: Path, size: int, count: int) -> None:
    """Compare every byte of a queue, whoever wrote it, with the messages it must hold."""
    expected = messages(size)
    with open_queue(path, read_only=True) as queue:
        tailer = queue.tailer()
        for _ in range(count // DISTINCT):
            assert tailer.read_many(DISTINCT) == expected, f"other messages: index={tailer.index}"
        assert tailer.read() is None, f"too many messages: index={tailer.index}"


def append_paced(
    write: Callable[[bytes], object],
    task: Task,
    numbers: range,
    appends: array[int] | memoryview[int],
    *,
    sleeps: bool = False,
) -> None:
    """
    Append messages with *write* at the rate; each starts with its number and due time.

    Between them it polls the clock, or *sleeps*.

    When each append began, and what it took, goes to *appends*, which has room for both.
    """
    clock, pack = time.monotonic_ns, STAMPS.pack
    rest = bytes(task.size - STAMPS.size)
    first = clock()
    for place, number in enumerate(numbers):
        due = first + place * 1_000_000_000 // task.rate
        message = pack(number, due) + rest
        if sleeps and (left := due - clock()) >= _LEAST_SLEEP_NS:
            time.sleep(left / 1e9)
        while (begin := clock()) < due:
            pass
        write(message)
        took = clock() - begin
        appends[2 * place], appends[2 * place + 1] = begin, took


def freeze_the_collector() -> None:
    """Have no collection run in what is measured."""
    gc.collect()
    gc.freeze()
    gc.disable()


@contextmanager
def run_delay_kept(task: Task) -> Generator[None]:
    """Keep how long this thread is ready to run in the block, but has no CPU, beside the result."""
    if not _SCHEDULED.exists():  # on other systems than Linux
        yield
        return
    before = _run_delay_ns()
    yield
    Path(f"{task.out}-delay").write_text(str(_run_delay_ns() - before), "ascii")


def _run_delay_ns() -> int:
    return int(_SCHEDULED.read_text("ascii").split()[1])
