"""Quire on the two older formats: ways to append and to read, and queues that are old or long."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import quire
from bench.task import DISTINCT, START_MS, Outcome, Stopwatch, Task, checksum, messages

NAMES = {"vanilla": "Vanilla", "quick_queue": "Quick-Queue"}
PAGE_BYTES = 1 << 30
SMALL_PAGE_BYTES = 4096
TID_BITS = 22
"""Of a thread id in an index entry; Java is started with the same number."""
_ENTRY_BYTES = 16
_NUMBER_BYTES = 8
"""At the start of each message."""
_CYCLE_MS = 1000
_BETWEEN_LOOKS = {"write_bytes": 10, "write_many": 100}
"""Messages between two looks at the time."""


def open_queue(system: str, path: Path, **options: Any) -> Any:  # noqa: ANN401 - of two classes
    """Open a queue as all measured queues of a format are opened."""
    if system == "vanilla":
        return quire.vanilla.VanillaQueue(path, **{"tid_bits": TID_BITS, **options})
    return quire.quick_queue.QuickQueue(path, **{"page_bytes": PAGE_BYTES, **options})


def run(task: Task) -> Outcome:
    """Run one operation."""
    if task.duration_ms:
        return _contend(task)
    name, _, form = task.operation.partition("@")
    if form.isdecimal():
        return _AGED[name](task, int(form))
    if name in _APPENDS:
        return _append(task, _APPENDS[name], form == "named")
    return _read(task, _READS[name])


def verify(system: str, path: Path, size: int, count: int) -> None:
    """Compare every byte of a queue, whoever wrote it, with the messages it must hold."""
    expected = messages(size)
    with open_queue(system, path, read_only=True) as queue, queue.tailer() as tailer:
        for _ in range(count // DISTINCT):
            assert tailer.read_many(DISTINCT) == expected, f"other messages: index={tailer.index}"
        assert tailer.read() is None, f"too many messages: index={tailer.index}"


# Appending and reading: loops over the distinct messages, and to the end.


def _write_bytes(appender: Any, pool: list[bytes]) -> None:  # noqa: ANN401
    write = appender.write_bytes
    for message in pool:
        write(message)


def _write_many(appender: Any, pool: list[bytes]) -> None:  # noqa: ANN401
    appender.write_many(pool)


def _pack(appender: Any, pool: list[bytes]) -> None:  # noqa: ANN401
    """Append the number of each message as a field, and the rest as another."""
    message, rest = appender.new_message(), pool[0][_NUMBER_BYTES:]
    for number in range(len(pool)):
        message.pack_long(number).pack_raw(rest).write_message()


_APPENDS: dict[str, Callable[[Any, list[bytes]], None]] = {
    "write_bytes": _write_bytes,
    "write_many": _write_many,
    "pack": _pack,
}


def _append(task: Task, append: Callable[[Any, list[bytes]], None], named: bool) -> Outcome:  # noqa: FBT001
    pool = messages(task.size)
    with (
        open_queue(task.system, task.queue) as queue,
        queue.appender(*(["AA0"] if named else [])) as appender,
    ):
        for _ in range(task.warm_up // DISTINCT):
            append(appender, pool)
        with Stopwatch() as watch:
            for _ in range(task.count // DISTINCT):
                append(appender, pool)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


def _payloads(tailer: Any) -> int:  # noqa: ANN401
    count = 0
    for _ in tailer.payloads():
        count += 1
    return count


def _read_many(tailer: Any) -> int:  # noqa: ANN401
    count = 0
    while found := tailer.read_many(DISTINCT):
        count += len(found)
    return count


def _read_batch(tailer: Any) -> int:  # noqa: ANN401
    count = 0
    while rows := tailer.read_batch(DISTINCT).num_rows:
        count += rows
    return count


def _unpack(tailer: Any) -> int:  # noqa: ANN401
    count = 0
    for excerpt in tailer:
        excerpt.unpack().unpack_long()
        count += 1
    return count


_READS = {
    "payloads": _payloads,
    "read_many": _read_many,
    "read_batch": _read_batch,
    "unpack": _unpack,
}


def _read(task: Task, count_all: Callable[[Any], int]) -> Outcome:
    """Warm up with the first messages, and count the rest; the round compared all bytes before."""
    with open_queue(task.system, task.queue, read_only=True) as queue, queue.tailer() as tailer:
        take = tailer.read_batch if count_all is _read_batch else tailer.read_many
        for _ in range(task.warm_up // DISTINCT):
            assert len(take(DISTINCT)) == DISTINCT
        with Stopwatch() as watch:
            count = count_all(tailer)
    assert count == task.count, f"count={count} expected={task.count}"
    return Outcome(watch.nanos, watch.cpu_nanos, count, checksum(count))


def _contend(task: Task) -> Outcome:
    """Be one of several producers: warm up, wait for the common start, append until time is up."""
    name = task.operation.partition("@")[0]
    many = _BETWEEN_LOOKS[name]
    pool = cycle(messages(task.size, task.writer))
    with (
        open_queue(task.system, task.queue) as queue,
        queue.appender(f"AA{task.writer}") as appender,
    ):
        append = _APPENDS[name]
        append(appender, list(islice(pool, task.warm_up)))
        print("READY", flush=True)
        begin = int(input())
        end = begin + task.duration_ms * 1_000_000
        time.sleep(max(0, begin - time.monotonic_ns()) / 1e9)
        count, cpu_begin = 0, time.process_time_ns()
        while time.monotonic_ns() < end:
            append(appender, list(islice(pool, many)))
            count += many
        nanos = time.monotonic_ns() - begin
        return Outcome(nanos, time.process_time_ns() - cpu_begin, count, 0)


# Queues that are old, or long.


def _aged_queue(task: Task, amount: int, clock: quire.ManualClock | None = None) -> Any:  # noqa: ANN401
    """Open the queue of so many cycles, or so many pages of the index."""
    path = Path(task.directory) / f"{task.system}-{amount}"
    if task.system == "quick_queue":
        return open_queue(task.system, path, page_bytes=SMALL_PAGE_BYTES)
    clock = clock or quire.ManualClock(START_MS + amount * _CYCLE_MS)
    blocks = {"index_block_bytes": 4096, "data_block_bytes": 4096}
    return open_queue(task.system, path, roll_cycle="SECONDS", clock=clock, **blocks)


def _fill(task: Task, amount: int) -> Outcome:
    """
    Put a message into each of a number of cycles, up to the clock's, or fill index pages.

    Of the last page the half: after a full one a page may have been lost, and opening looks for it.
    """
    pool, clock = messages(task.size), quire.ManualClock(START_MS)
    with (
        Stopwatch() as watch,
        _aged_queue(task, amount, clock) as queue,
        queue.appender() as appender,
    ):
        if task.system == "quick_queue":
            count = (2 * amount - 1) * SMALL_PAGE_BYTES // _ENTRY_BYTES // 2
            for start in range(0, count, DISTINCT):
                appender.write_many(pool[: count - start])
        else:
            for number in range(amount):
                clock.advance(_CYCLE_MS)
                appender.write_bytes(pool[number % DISTINCT])
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _idle(task: Task, age: int) -> Outcome:
    """Ask for a message after the last one, which is that many cycles old."""
    path = Path(task.directory) / f"idle-{task.system}"
    clock = quire.ManualClock(START_MS)
    with open_queue(task.system, path, roll_cycle="SECONDS", clock=clock) as queue:
        with queue.appender() as appender:
            appender.write_bytes(b"last")
        clock.advance(age * _CYCLE_MS)
        with queue.tailer() as tailer:
            read = tailer.read_bytes
            assert read() == b"last"
            for _ in range(task.warm_up):
                read()
            with Stopwatch() as watch:
                for _ in range(task.count):
                    read()
            assert read() is None
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _open_often(task: Task, amount: int) -> Outcome:
    """Open the queue, put a tailer to its end, close."""

    def open_often(count: int) -> None:
        for _ in range(count):
            with _aged_queue(task, amount) as queue, queue.tailer() as tailer:
                tailer.to_end()
                assert tailer.read_bytes() is None

    open_often(task.warm_up)
    with Stopwatch() as watch:
        open_often(task.count)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


_AGED: dict[str, Callable[[Task, int], Outcome]] = {
    "fill": _fill,
    "idle": _idle,
    "open": _open_often,
}
