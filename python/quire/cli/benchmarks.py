"""What ``quire bench`` measures, part by part, each in a queue of its own."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import click

import quire
from quire.cli.output.progress import Progress
from quire.cli.verbs.history import percentile

MOST_BYTES: Final = 256 << 20  # that a part writes
LEAST_SIZE: Final = 8  # bytes of a message: it holds the time when it was due
_BATCH: Final = 1_000
_BLOCK: Final = 1 << 20
_PAGE: Final = 4096
_SECOND_NS: Final = 10**9
_DUE: Final = struct.Struct("<q")
_END: Final = -1
_SPIN_S: Final = 1.0

# In isolated mode, which leaves the working directory out, with the directories of this process.
_READER: Final = """\
import sys
sys.path[:0] = sys.argv[2:]
from quire.cli.benchmarks import read_latencies
read_latencies(sys.argv[1])
"""


class Plan(NamedTuple):
    """
    What to measure.

    Attributes:
        folder: A directory for queues and files.
        seconds: How long a part takes at most.
        size: The length of a message.
        rate: Messages a second of the part that measures latency.
        progress: Shows what is being done.

    """

    folder: Path
    seconds: float
    size: int
    rate: int
    progress: Progress


class Result(NamedTuple):
    """
    What a part found.

    Attributes:
        part: Its name.
        messages: How many messages, or blocks.
        size: The bytes of each.
        seconds: How long it took.
        latencies_ns: Of each message, where that was measured.

    """

    part: str
    messages: int
    size: int
    seconds: float
    latencies_ns: Sequence[int] = ()

    def row(self) -> dict[str, object]:
        """Return it as a row."""
        ordered = sorted(self.latencies_ns)
        return {
            "part": self.part,
            "messages": self.messages,
            "per_second": round(self.messages / self.seconds),
            "mb_per_second": self.messages * self.size / self.seconds / 1e6,
            **{
                f"p{share:g}_us": _us(percentile(ordered, share) if ordered else None)
                for share in (50.0, 99.0, 99.9)
            },
            "worst_us": _us(ordered[-1] if ordered else None),
        }


def _us(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1000


def parts(plan: Plan, *, disk: bool) -> Iterator[Result]:
    """Measure one part after the other; each is shown when it is done."""
    with quire.open(plan.folder / "one") as queue:
        written = _append(plan, queue)
        yield written
        yield _read(
            plan, queue, "read", lambda tailer: sum(1 for _ in islice(tailer.payloads(), _BATCH))
        )
    with quire.open(plan.folder / "many") as queue:
        yield _append_many(plan, queue)
        yield _read(plan, queue, "read_many", lambda tailer: len(tailer.read_many(_BATCH)))
    yield _sync(plan)
    yield _latency(plan)
    if disk:
        yield _disk(plan)
        yield _disk_sync(plan)


class _Budget:
    """The end of a part: its time is over, or it wrote as much as it may."""

    def __init__(self, plan: Plan, part: str, most_bytes: int = MOST_BYTES) -> None:
        self._plan = plan
        self._part = part
        self._most = most_bytes
        self._start = time.perf_counter()
        self.seconds = 0.0

    def allows(self, written: int) -> bool:
        """Return whether to continue after writing a number of bytes."""
        self.seconds = time.perf_counter() - self._start
        self._plan.progress.show(self._part, int(self.seconds), round(self._plan.seconds))
        return self.seconds < self._plan.seconds and written < self._most


def _append(plan: Plan, queue: quire.JournalQueue) -> Result:
    payload, count = bytes(plan.size), 0
    with queue.appender() as appender:
        budget = _Budget(plan, "append")
        while budget.allows(count * plan.size):
            for _ in range(_BATCH):
                appender.write_bytes(payload)
            count += _BATCH
    return Result("append", count, plan.size, budget.seconds)


def _append_many(plan: Plan, queue: quire.JournalQueue) -> Result:
    payloads, count = [bytes(plan.size)] * _BATCH, 0
    with queue.appender() as appender:
        budget = _Budget(plan, "append_many")
        while budget.allows(count * plan.size):
            appender.write_many(payloads)
            count += _BATCH
    return Result("append_many", count, plan.size, budget.seconds)


def _read(
    plan: Plan, queue: quire.JournalQueue, part: str, some: Callable[[quire.JournalTailer], int]
) -> Result:
    """Read from the start to the end, or until the time is over."""
    count = 0
    with queue.tailer() as tailer:
        budget = _Budget(plan, part)
        while budget.allows(0) and (found := some(tailer)):
            count += found
    return Result(part, count, plan.size, budget.seconds)


def _sync(plan: Plan) -> Result:
    """Append and sync each message, which makes it durable."""
    payload, times = bytes(plan.size), array("q")
    with quire.open(plan.folder / "sync") as queue, queue.appender() as appender:
        budget = _Budget(plan, "append_sync")
        while budget.allows(len(times) * plan.size):
            before = time.perf_counter_ns()
            appender.write_bytes(payload)
            appender.sync()
            times.append(time.perf_counter_ns() - before)
    return Result("append_sync", len(times), plan.size, budget.seconds, times)


def _latency(plan: Plan) -> Result:
    """Append at a fixed rate while another process reads: from when a message was due."""
    path = plan.folder / "latency"
    quire.open(path).close()
    command = [sys.executable, "-I", "-c", _READER, str(path), *filter(os.path.isabs, sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as reader:  # noqa: S603 - this interpreter
        assert reader.stdout is not None  # noqa: S101 - a pipe was asked for
        try:
            if reader.stdout.readline() != b"ready\n":
                raise click.ClickException(f"the reading process ended: code={reader.wait()}")
            seconds = _pace(plan, path)
            times = array("q", reader.stdout.read())
            reader.wait()
        finally:
            reader.kill()
    if reader.returncode:
        raise click.ClickException(f"the reading process ended: code={reader.returncode}")
    return Result("latency", len(times), plan.size, seconds, times)


def _pace(plan: Plan, path: Path) -> float:
    """Append each message when it is due; return how long that took."""
    step_ns = _SECOND_NS // plan.rate
    padding = bytes(plan.size - LEAST_SIZE)
    with quire.open(path) as queue, queue.appender() as appender:
        budget = _Budget(plan, "latency")
        due = time.perf_counter_ns()
        count = 0
        while count % _BATCH or budget.allows(count * plan.size):
            while time.perf_counter_ns() < due:
                pass
            appender.write_bytes(_DUE.pack(due) + padding)
            due += step_ns
            count += 1
        appender.write_bytes(_DUE.pack(_END))
    return budget.seconds


def read_latencies(path: str) -> None:
    """Read a queue until its last message; print the nanoseconds of each. A process of its own."""
    times, parent = array("q"), os.getppid()
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        sys.stdout.buffer.write(b"ready\n")
        sys.stdout.buffer.flush()
        while os.getppid() == parent:
            if not tailer.spin(_SPIN_S):
                continue
            while (payload := tailer.read_bytes()) is not None:
                now = time.perf_counter_ns()
                (due,) = _DUE.unpack_from(payload)
                if due == _END:
                    sys.stdout.buffer.write(times.tobytes())
                    return
                times.append(now - due)


def _disk(plan: Plan) -> Result:
    """Write blocks of a file one after the other, then sync it: what dd does."""
    block, count = os.urandom(_BLOCK), 0
    with (plan.folder / "disk").open("wb", buffering=0) as file:
        start = time.perf_counter()
        budget = _Budget(plan, "disk")
        while budget.allows(count * _BLOCK):
            count += file.write(block) // _BLOCK
        os.fsync(file.fileno())
        seconds = time.perf_counter() - start
    return Result("disk", count, _BLOCK, seconds)


def _disk_sync(plan: Plan) -> Result:
    """Write a page and sync it, again and again."""
    block, times = os.urandom(_PAGE), array("q")
    with (plan.folder / "disk-sync").open("wb", buffering=0) as file:
        budget = _Budget(plan, "disk_sync")
        while budget.allows(len(times) * _PAGE):
            before = time.perf_counter_ns()
            file.write(block)
            os.fsync(file.fileno())
            times.append(time.perf_counter_ns() - before)
    return Result("disk_sync", len(times), _PAGE, budget.seconds, times)
