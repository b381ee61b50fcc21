"""Quire: a consumer group, appends that roll, tailers with nothing to read."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import quire
from bench.latency import below, percentiles
from bench.quire_queues import open_queue
from bench.scenarios import CLAIMS, SERVICES_RATE
from bench.services import WAYS
from bench.task import DISTINCT, START_MS, Outcome, Stopwatch, Task, messages

_SUPPORT = Path(__file__).resolve().parents[2] / "tests" / "support"
_HOUR_S = 3600.0
_DAY_MS = 86_400_000
_ROLL_MS = 1000
_IDLE_CYCLES = 3


@dataclass(frozen=True, slots=True)
class Detailed(Outcome):
    """An outcome, and what else was counted."""

    details: dict[str, Any]


# A member of a group. Each loop acknowledges `count` messages and returns the time it took.


def _batches(consumer: quire.Consumer, count: int) -> Stopwatch:
    with Stopwatch() as watch:
        for _ in range(count // DISTINCT):
            assert consumer.ack_many(consumer.read_many(DISTINCT)) == DISTINCT
    return watch


def _data(consumer: quire.Consumer, count: int) -> Stopwatch:
    with Stopwatch() as watch:
        for _ in range(count // DISTINCT):
            batch, size = consumer.read_many(DISTINCT), 0
            for message in batch:
                size += len(message.data)
            assert size
            assert consumer.ack_many(batch) == DISTINCT
    return watch


def _acks(consumer: quire.Consumer, count: int) -> Stopwatch:
    """Leave out the reading."""
    total = Stopwatch()
    for _ in range(count // DISTINCT):
        batch = consumer.read_many(DISTINCT)
        with Stopwatch() as watch:
            assert consumer.ack_many(batch) == DISTINCT
        total.nanos += watch.nanos
        total.cpu_nanos += watch.cpu_nanos
    return total


def _messages(consumer: quire.Consumer, count: int) -> Stopwatch:
    with Stopwatch() as watch:
        for message in islice(consumer, count):
            assert message.ack()
    return watch


_GROUPS: dict[str, Callable[[quire.Consumer, int], Stopwatch]] = {
    "batches": _batches,
    "data": _data,
    "keyed": _data,
    "acks": _acks,
    "messages": _messages,
}


def _number_of(excerpt: quire.Excerpt) -> bytes:
    return excerpt.data[:8]


def _group(task: Task) -> Outcome:
    """Have a new group's only member acknowledge all that is in the queue."""
    name = task.operation.partition("@")[2]
    with open_queue(task.queue) as queue:
        key = _number_of if name == "keyed" else None
        group = queue.group(name, ack_timeout_s=_HOUR_S, key=key)
        with group.consumer() as consumer:
            first = consumer.read_many(DISTINCT)
            assert first.payloads() == messages(task.size)
            assert consumer.ack_many(first) == DISTINCT
            _GROUPS[name](consumer, task.warm_up - DISTINCT)
            watch = _GROUPS[name](consumer, task.count)
        assert group.lag == 0, f"other messages: lag={group.lag}"
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _roll(task: Task) -> Outcome:
    """Append the first message of each cycle; with `@early` a pretoucher has made its file."""
    early = task.operation.endswith("@early")
    clock = quire.ManualClock(START_MS)
    message, took_ns = bytes(task.size), list[int]()
    with (
        quire.open(task.queue, roll_cycle="TEST_SECONDLY", clock=clock) as queue,
        queue.appender() as appender,
        queue.pretoucher(early_acquire_next_cycle=early, preroll_time_s=0.5) as pretoucher,
    ):
        appender.write_bytes(message)
        for _ in range(task.count):
            clock.advance(_ROLL_MS * 6 // 10)
            if early:
                pretoucher.execute()
            clock.advance(_ROLL_MS * 4 // 10)
            begin = time.perf_counter_ns()
            appender.write_bytes(message)
            took_ns.append(time.perf_counter_ns() - begin)
        assert len(queue.cycles) == task.count + 1
    took = percentiles([nanos / 1000 for nanos in took_ns])
    return Detailed(sum(took_ns), None, task.count, 0, {"append": took})


def _idle(task: Task) -> Outcome:
    """Poll tailers that have read everything; count what is listed and opened meanwhile."""
    if str(_SUPPORT) not in sys.path:
        sys.path.append(str(_SUPPORT))
    from opens import Opens

    amount = int(task.operation.partition("@")[2])
    clock = quire.ManualClock(START_MS)
    with quire.open(task.queue, clock=clock) as queue:
        appender = queue.appender()
        for _ in range(_IDLE_CYCLES):
            appender.write_bytes(bytes(task.size))
            clock.advance(_DAY_MS)
        tailers = [queue.tailer() for _ in range(amount)]
        assert all(len(it.read_many(DISTINCT)) == _IDLE_CYCLES for it in tailers)
        polls = [tailer.read_bytes for tailer in tailers]

        def poll(count: int) -> None:
            for _ in range(count // amount):
                for one in polls:
                    assert one() is None

        poll(task.warm_up)
        with Opens(task.queue) as opens, Stopwatch() as watch:
            poll(task.count)
    details = {"listed": opens.listed, "opened": opens.files.total()}
    return Detailed(watch.nanos, watch.cpu_nanos, task.count, 0, details)


def _services(task: Task) -> Outcome:
    """Pass objects through three services; the details have what each took from when it was due."""
    nanos = WAYS[task.operation.partition("@")[2]](
        Path(task.directory), task.total, 1_000_000_000 // SERVICES_RATE
    )
    took_us = [one / 1000 for one in nanos[task.warm_up :]]
    assert len(took_us) == task.count
    details = {"begin": percentiles(took_us), "below": below(took_us)}
    return Detailed(sum(nanos[task.warm_up :]), None, task.count, 0, details)


OPERATIONS = {
    **{one.name: _services for one in CLAIMS["services"]},
    **{f"group@{name}": _group for name in _GROUPS},
    "roll": _roll,
    "roll@early": _roll,
    "idle@1": _idle,
    "idle@1000": _idle,
}
