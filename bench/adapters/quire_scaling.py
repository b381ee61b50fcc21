"""Quire on queues of any size, with many readers, members of a group and sizes of messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice, repeat

import quire
from bench.quire_queues import open_queue
from bench.task import DISTINCT, ROLL_CYCLE, START_MS, Outcome, Stopwatch, Task

_BATCH_BYTES = 1 << 20
_GROUP = "growing"
_HOUR_S = 3600.0
_LEAST_BLOCK_BYTES = 64 << 20


def _first(task: Task) -> Outcome:
    """Append one message as a process does that has just opened the queue."""
    clock = quire.ManualClock(task.start_ms)
    with Stopwatch() as watch:
        queue = quire.open(
            task.queue, roll_cycle=task.roll_cycle, clock=clock, block_bytes=task.block_bytes
        )
        appender = queue.appender()
        appender.write_bytes(bytes(task.size))
    appender.close()
    queue.close()
    return Outcome(watch.nanos, watch.cpu_nanos, 1, 0)


# Readers of one queue at the same time, each a process.


def _at_once(read: Callable[[], int]) -> Outcome:
    """Begin when all others do; the time ends with the last message."""
    print("READY", flush=True)
    begin = int(input())
    time.sleep(max(0, begin - time.monotonic_ns()) / 1e9)
    count, ended, cpu_begin = 0, begin, time.process_time_ns()
    while (found := read()) >= 0:
        if found:
            count, ended = count + found, time.monotonic_ns()
    return Outcome(ended - begin, time.process_time_ns() - cpu_begin, count, 0)


def _tailer(task: Task) -> Outcome:
    """Read all messages."""
    with open_queue(task.queue, read_only=True) as queue:
        tailer = queue.tailer()
        return _at_once(lambda: len(tailer.read_batch(max_bytes=_BATCH_BYTES)) or -1)


def _member(task: Task) -> Outcome:
    """Acknowledge what other members of the group do not."""
    with open_queue(task.queue) as queue:
        group = queue.group(_GROUP, ack_timeout_s=_HOUR_S)
        with group.consumer() as consumer:

            def read() -> int:
                found = consumer.ack_many(consumer.read_many(DISTINCT))
                return found or (0 if group.lag else -1)

            return _at_once(read)


# Messages of one size, of any number.


def _sized(task: Task) -> quire.JournalQueue:
    return quire.open(
        task.queue,
        roll_cycle=ROLL_CYCLE,
        clock=quire.ManualClock(START_MS),
        block_bytes=max(_LEAST_BLOCK_BYTES, 8 * task.size),
    )


def _write_sized(task: Task) -> Outcome:
    payload = bytes(place & 0xFF for place in range(256)) * (task.size // 256 + 1)
    payload = payload[: task.size]
    with _sized(task) as queue, queue.appender() as appender, Stopwatch() as watch:
        for each in repeat(payload, task.count):
            appender.write_bytes(each)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _read_sized(task: Task) -> Outcome:
    with _sized(task) as queue:
        tailer, size = queue.tailer(), 0
        with Stopwatch() as watch:
            for payload in islice(tailer.payloads(), task.count):
                size += len(payload)
        assert size == task.count * task.size, f"{size=}"
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


OPERATIONS = {
    "first": _first,
    "tailer": _tailer,
    "member": _member,
    "write_sized": _write_sized,
    "read_sized": _read_sized,
}
