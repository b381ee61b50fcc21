"""Quire on queues that are large or old."""

from __future__ import annotations

import random
from pathlib import Path

import quire
from bench.task import DISTINCT, Outcome, Stopwatch, Task, checksum, messages


def _open(task: Task, path: Path | None = None) -> quire.JournalQueue:
    return quire.open(
        path or task.queue,
        roll_cycle=task.roll_cycle,
        clock=quire.ManualClock(task.start_ms),
        block_bytes=task.block_bytes,
    )


def _cycles(task: Task) -> Outcome:
    """Fill a queue: a message in each of so many cycles, the last of them the clock's."""
    length, pool = quire.RollCycle(task.roll_cycle).length_ms, messages(task.size)
    clock = quire.ManualClock(task.start_ms - task.count * length)
    queue = quire.open(
        task.queue, roll_cycle=task.roll_cycle, clock=clock, block_bytes=task.block_bytes
    )
    with queue, queue.appender() as appender, Stopwatch() as watch:
        for number in range(task.count):
            clock.advance(length)
            appender.write_bytes(pool[number % DISTINCT])
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _append(task: Task) -> Outcome:
    """Append at the end; the warm-up goes into a queue of its own."""
    pool = messages(task.size)

    def append(path: Path, count: int) -> Stopwatch:
        with _open(task, path) as queue, queue.appender() as appender:
            write = appender.write_bytes
            with Stopwatch() as watch:
                for _ in range(count // DISTINCT):
                    for message in pool:
                        write(message)
        return watch

    append(Path(task.directory) / "warm-quire", task.warm_up)
    watch = append(task.queue, task.count)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


def verify(task: Task) -> None:
    """Compare the last messages with what an append of either system put there."""
    with _open(task) as queue:
        tailer = queue.tailer()
        last = queue.last_index
        assert last is not None
        assert tailer.move_to_index(last - task.count + 1)
        for _ in range(task.count // DISTINCT):
            assert tailer.read_many(DISTINCT) == messages(task.size), f"index={tailer.index}"
        assert tailer.read() is None


def _poll(task: Task) -> Outcome:
    """Ask for a message at the end, where there is none."""
    with _open(task) as queue:
        tailer = queue.tailer()
        tailer.to_end()
        read = tailer.read_bytes

        def poll(count: int) -> None:
            for _ in range(count):
                assert read() is None

        poll(task.warm_up)
        with Stopwatch() as watch:
            poll(task.count)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _seek(task: Task) -> Outcome:
    """Move to indexes at random, and read the message there."""
    with _open(task) as queue:
        first, last = queue.first_index, queue.last_index
        assert first is not None
        assert last is not None
        some = random.Random(task.start_ms)  # noqa: S311 - places, not secrets
        sequences = [some.randrange(last - first) for _ in range(task.warm_up + task.count)]
        tailer = queue.tailer()

        def seek(sequences: list[int]) -> None:
            move, read = tailer.move_to_index, tailer.read_bytes
            for sequence in sequences:
                move(first + sequence)
                message = read()
                assert message is not None
                assert message[0] | message[1] << 8 == sequence % DISTINCT

        seek(sequences[: task.warm_up])
        with Stopwatch() as watch:
            seek(sequences[task.warm_up :])
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _open_often(task: Task) -> Outcome:
    """Open the queue, put a tailer to its end, close."""

    def open_queue(count: int) -> None:
        for _ in range(count):
            with _open(task) as queue, queue.tailer() as tailer:
                tailer.to_end()
                assert tailer.read_bytes() is None

    open_queue(task.warm_up)
    with Stopwatch() as watch:
        open_queue(task.count)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


OPERATIONS = {
    "cycles": _cycles,
    "append": _append,
    "poll": _poll,
    "seek": _seek,
    "open": _open_often,
}
