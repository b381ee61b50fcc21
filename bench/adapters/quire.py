"""Quire: every way to append and to read, and both halves of a latency measurement."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import quire
from bench.quire_queues import (
    STAMPS,
    append_paced,
    freeze_the_collector,
    open_queue,
    run_delay_kept,
)
from bench.stream import measure
from bench.task import (
    DISTINCT,
    Missing,
    Outcome,
    Stopwatch,
    Task,
    checksum,
    messages,
)
from quire import _native

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "Quire"


def version() -> str:
    """Return the version; a build that was not optimised is not measured."""
    if _native.BUILD_PROFILE != "release":
        raise Missing(f"a release build is needed: profile={_native.BUILD_PROFILE}")
    return quire.__version__


def binary() -> Path:
    """Return the file that must stay the same while it is measured."""
    return Path(_native.__file__)


def run(task: Task) -> Outcome | None:
    """Run one operation."""
    from bench.adapters import (
        quire_aged,
        quire_contending,
        quire_idle,
        quire_life,
        quire_messages,
        quire_paced,
        quire_scaling,
    )

    if task.duration_ms:
        return quire_contending.run(task)
    others: dict[str, Callable[[Task], Outcome | None]] = {
        **quire_aged.OPERATIONS,
        **quire_messages.OPERATIONS,
        **quire_life.OPERATIONS,
        **quire_idle.OPERATIONS,
        **quire_paced.OPERATIONS,
        **quire_scaling.OPERATIONS,
    }
    if task.operation in others:
        return others[task.operation](task)
    if task.operation.partition("@")[0] in _APPENDS:
        return _append(task)
    if task.operation in _READS:
        return _read(task)
    if task.operation == "stream":
        return measure(task, Channel(task.queue))
    return _ENDS[task.operation](task)


# Appending. Each loop appends all distinct messages so many times.


def _write_bytes(appender: quire.JournalAppender, pool: list[bytes]) -> Callable[[int], None]:
    write = appender.write_bytes

    def loop(rounds: int) -> None:
        for _ in range(rounds):
            for message in pool:
                write(message)

    return loop


def _write_many(appender: quire.JournalAppender, pool: list[bytes]) -> Callable[[int], None]:
    def loop(rounds: int) -> None:
        for _ in range(rounds):
            appender.write_many(pool)

    return loop


def _write_batch(appender: quire.JournalAppender, pool: list[bytes]) -> Callable[[int], None]:
    import pyarrow as pa

    column: pa.Array[pa.BinaryScalar] = pa.array(pool, pa.binary())

    def loop(rounds: int) -> None:
        for _ in range(rounds):
            appender.write_batch(column)

    return loop


_APPENDS = {
    "write_bytes": _write_bytes,
    "write_many": _write_many,
    "write_batch": _write_batch,
}


def _append(task: Task) -> Outcome:
    name, _, alone = task.operation.partition("@")
    with (
        open_queue(task.queue, pretouch=not alone) as queue,
        queue.appender() as appender,
    ):
        loop = _APPENDS[name](appender, messages(task.size))
        loop(task.warm_up // DISTINCT)
        with Stopwatch() as watch:
            loop(task.count // DISTINCT)
        assert queue.entry_count == task.total
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


# Reading. The messages are there before. `take` reads the distinct messages once, `count_all` reads
# to the end, as a user would write it, and says how many there were.


class _Reading(Protocol):
    def take(self, tailer: quire.JournalTailer) -> list[bytes]: ...

    def count_all(self, tailer: quire.JournalTailer) -> int: ...


class _Payloads:
    def take(self, tailer: quire.JournalTailer) -> list[bytes]:
        return list(islice(tailer.payloads(), DISTINCT))

    def count_all(self, tailer: quire.JournalTailer) -> int:
        count = 0
        for _ in tailer.payloads():
            count += 1
        return count


class _ReadMany:
    def take(self, tailer: quire.JournalTailer) -> list[bytes]:
        return tailer.read_many(DISTINCT)

    def count_all(self, tailer: quire.JournalTailer) -> int:
        count = 0
        while found := tailer.read_many(DISTINCT):
            count += len(found)
        return count


class _ReadBatch:
    def take(self, tailer: quire.JournalTailer) -> list[bytes]:
        rows = tailer.read_batch(DISTINCT).column("payload").to_pylist()
        return [row for row in rows if row is not None]

    def count_all(self, tailer: quire.JournalTailer) -> int:
        count = 0
        while rows := tailer.read_batch(DISTINCT).num_rows:
            count += rows
        return count


_READS: dict[str, _Reading] = {
    "payloads": _Payloads(),
    "read_many": _ReadMany(),
    "read_batch": _ReadBatch(),
}


def _read(task: Task) -> Outcome:
    """Warm up and compare with the first messages, measure with the rest, compare that too."""
    reading, expected = _READS[task.operation], messages(task.size)
    with open_queue(task.queue) as queue:
        tailer = queue.tailer()
        for _ in range(task.warm_up // DISTINCT):
            assert reading.take(tailer) == expected
        with Stopwatch() as watch:
            count = reading.count_all(tailer)
        assert count == task.count, f"count={count} expected={task.count}"
        tailer.to_start()
        for _ in range(task.total // DISTINCT):
            assert reading.take(tailer) == expected
        return Outcome(watch.nanos, watch.cpu_nanos, count, checksum(count))


# From one process to another.


class Channel:
    """A queue between two processes; the reader never sleeps."""

    def __init__(self, path: Path) -> None:
        """Say where it lies."""
        self._path = path

    @contextmanager
    def sender(self) -> Generator[Callable[[bytes], object]]:
        """Hand out the call that sends one message."""
        with open_queue(self._path) as queue, queue.appender() as appender:
            yield appender.write_bytes

    @contextmanager
    def receiver(self) -> Generator[Callable[[], bytes]]:
        """Hand out the call that waits for one message."""
        with open_queue(self._path) as queue:
            yield _polling(queue.tailer())


def _produce(task: Task) -> None:
    """Append at the rate; when each append began, and what it took, goes to a file."""
    appends = array("q", bytes(2 * 8 * task.total))
    with open_queue(task.queue) as queue, queue.appender() as appender:
        freeze_the_collector()
        append_paced(appender.write_bytes, task, range(task.warm_up), appends)
        measured = memoryview(appends)[2 * task.warm_up :]
        with run_delay_kept(task):
            append_paced(appender.write_bytes, task, range(task.warm_up, task.total), measured)
    Path(task.out).write_bytes(appends.tobytes())


def _tail(task: Task) -> None:
    """Poll without a pause."""
    _record(task, _polling)


def _spin(task: Task) -> None:
    """Wait for each message in the kernel."""
    _record(task, _spinning)


def _polling(tailer: quire.JournalTailer) -> Callable[[], bytes]:
    read = tailer.read_bytes

    def receive() -> bytes:
        while (message := read()) is None:
            pass
        return message

    return receive


def _spinning(tailer: quire.JournalTailer) -> Callable[[], bytes]:
    spin, read = tailer.spin, tailer.read_bytes

    def receive() -> bytes:
        while (message := read()) is None:
            spin()
        return message

    return receive


def _record(task: Task, receiver: Callable[[quire.JournalTailer], Callable[[], bytes]]) -> None:
    """Write each message's number, due and arrival to a file; allocate nothing until the end."""
    clock, unpack = time.monotonic_ns, STAMPS.unpack_from
    records = array("q", bytes(3 * 8 * task.total))
    with open_queue(task.queue) as queue:
        receive = receiver(queue.tailer())

        def record(numbers: range) -> None:
            for place in range(3 * numbers.start, 3 * numbers.stop, 3):
                message = receive()
                had = clock()
                records[place], records[place + 1] = unpack(message)
                records[place + 2] = had

        freeze_the_collector()
        print("READY", flush=True)
        record(range(task.warm_up))
        with run_delay_kept(task):
            record(range(task.warm_up, task.total))
    Path(task.out).write_bytes(records.tobytes())


def _produce_many(task: Task) -> None:
    """Append all messages that are due together; files are those of `_produce`."""
    appends = array("q", bytes(2 * 8 * task.total))
    with open_queue(task.queue) as queue, queue.appender() as appender:
        freeze_the_collector()
        _append_due(appender, task, range(task.warm_up), appends)
        measured = memoryview(appends)[2 * task.warm_up :]
        with run_delay_kept(task):
            _append_due(appender, task, range(task.warm_up, task.total), measured)
    Path(task.out).write_bytes(appends.tobytes())


def _append_due(
    appender: quire.JournalAppender,
    task: Task,
    numbers: range,
    appends: array[int] | memoryview[int],
) -> None:
    """Append what is due: one message if that is all, else up to `DISTINCT` by `write_many`."""
    clock, pack, rest = time.monotonic_ns, STAMPS.pack, bytes(task.size - STAMPS.size)
    first, place, count = clock(), 0, len(numbers)
    while place < count:
        due = min(count, (clock() - first) * task.rate // 1_000_000_000 + 1, place + DISTINCT)
        if due == place:
            continue
        batch = [
            pack(numbers[one], first + one * 1_000_000_000 // task.rate) + rest
            for one in range(place, due)
        ]
        begin = clock()
        if len(batch) == 1:
            appender.write_bytes(batch[0])
        else:
            appender.write_many(batch)
        took = clock() - begin
        for one in range(2 * place, 2 * due, 2):
            appends[one], appends[one + 1] = begin, took
        place = due


def _tail_many(task: Task) -> None:
    """Poll with `read_many`; what came is taken apart afterwards."""
    import numpy as np

    clock, found = time.monotonic_ns, list[tuple[bytes, int, int]]()
    with open_queue(task.queue) as queue, queue.tailer() as tailer:
        read = tailer.read_many

        def record(count: int) -> int:
            while count > 0:
                if batch := read(DISTINCT):
                    had = clock()
                    found.append((b"".join(batch), had, len(batch)))
                    count -= len(batch)
            return count

        freeze_the_collector()
        print("READY", flush=True)
        more = record(task.warm_up)
        with run_delay_kept(task):
            record(task.count + more)
    rows = np.frombuffer(b"".join(it[0] for it in found), np.uint8).reshape(-1, task.size)
    stamps = np.ascontiguousarray(rows[:, : STAMPS.size]).view(np.int64)
    times = np.repeat([it[1] for it in found], [it[2] for it in found])
    Path(task.out).write_bytes(np.column_stack((stamps, times)).tobytes())


_ENDS = {
    "produce": _produce,
    "tail": _tail,
    "spin": _spin,
    "produce_many": _produce_many,
    "tail_many": _tail_many,
}
