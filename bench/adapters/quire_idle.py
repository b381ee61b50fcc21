"""Quire: readers that wait, idle or woken by each message, asleep or by a pauser that polls."""

from __future__ import annotations

import asyncio
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import quire
from bench.quire_queues import STAMPS, append_paced, freeze_the_collector, open_queue
from bench.scenarios import IDLE
from bench.task import Outcome, Stopwatch, Task
from quire.pausers import Pauser

_END = b"end"


@dataclass(frozen=True, slots=True)
class Detailed(Outcome):
    """An outcome, and what else was measured."""

    details: dict[str, Any]


def _pauser(task: Task) -> Pauser | None:
    """Return what an operation waits by: None sleeps, the other polls as tailers did before."""
    is_polling = task.operation.endswith("@poll")
    return Pauser(yield_count=100, min_s=0.00005, max_s=0.001) if is_polling else None


def _measure(task: Task) -> Stopwatch:
    """Measure the process, in milliseconds of the task's counts, once all wait."""
    time.sleep(task.warm_up / 1000)
    with Stopwatch() as watch:
        time.sleep(task.count / 1000)
    return watch


def _outcome(task: Task, watch: Stopwatch, woken_ns: int) -> Outcome:
    details = {"cpu": watch.cpu_nanos / watch.nanos, "woken_ns": woken_ns}
    return Detailed(watch.nanos, watch.cpu_nanos, task.count, 0, details)


def _idle_threads(task: Task) -> Outcome:
    """Measure threads that wait for the same message, before it is appended."""

    def follow(tailer: quire.JournalTailer) -> None:
        for message in tailer.follow(pauser=_pauser(task)):
            assert message.data == _END
            return

    with open_queue(task.queue) as queue, queue.appender() as appender:
        threads = [
            threading.Thread(target=follow, args=(queue.tailer(),)) for _ in range(_amount(task))
        ]
        for thread in threads:
            thread.start()
        watch = _measure(task)
        begin = time.monotonic_ns()
        appender.write_bytes(_END)
        for thread in threads:
            thread.join()
        return _outcome(task, watch, time.monotonic_ns() - begin)


def _idle_tasks(task: Task) -> Outcome:
    """Measure tasks of one event loop that wait for the same message."""

    async def follow(tailer: quire.JournalTailer) -> None:
        async for message in tailer.afollow(pauser=_pauser(task)):
            assert message.data == _END
            return

    async def main(queue: quire.JournalQueue) -> Outcome:
        tasks = [asyncio.create_task(follow(queue.tailer())) for _ in range(_amount(task))]
        watch = await asyncio.to_thread(_measure, task)
        with queue.appender() as appender:
            begin = time.monotonic_ns()
            appender.write_bytes(_END)
            await asyncio.gather(*tasks)
            return _outcome(task, watch, time.monotonic_ns() - begin)

    with open_queue(task.queue) as queue:
        return asyncio.run(main(queue))


def _amount(task: Task) -> int:
    return int(task.operation.split("@")[1])


def _spin(task: Task) -> None:
    """Spin for each message; its number, due time and arrival go to a file."""

    def receive(tailer: quire.JournalTailer) -> Iterator[bytes]:
        while True:
            tailer.spin()
            yield from tailer.payloads()

    _record(task, receive)


def _follow(task: Task) -> None:
    """Record when a thread that follows receives each message."""

    def receive(tailer: quire.JournalTailer) -> Iterator[bytes]:
        return (message.data for message in tailer.follow(pauser=_pauser(task)))

    _record(task, receive)


def _record(task: Task, receive: Callable[[quire.JournalTailer], Iterator[bytes]]) -> None:
    arrivals, clock = array("q"), time.monotonic_ns
    with open_queue(task.queue) as queue, queue.tailer() as tailer:
        freeze_the_collector()
        print("READY", flush=True)
        for payload in islice(receive(tailer), task.total):
            had = clock()
            arrivals.extend((*STAMPS.unpack_from(payload), had))
    Path(task.out).write_bytes(arrivals.tobytes())


def _afollow(task: Task) -> None:
    """Record when a task that follows receives each message."""
    arrivals, clock = array("q"), time.monotonic_ns

    async def follow(tailer: quire.JournalTailer) -> None:
        async for message in tailer.afollow(pauser=_pauser(task)):
            had = clock()
            arrivals.extend((*STAMPS.unpack_from(message.data), had))
            if len(arrivals) == 3 * task.total:
                return

    with open_queue(task.queue) as queue, queue.tailer() as tailer:
        freeze_the_collector()
        print("READY", flush=True)
        asyncio.run(follow(tailer))
    Path(task.out).write_bytes(arrivals.tobytes())


def _produce(task: Task) -> None:
    """Append at the rate, and sleep in between; with `@ring`, this process drains what it puts."""
    appends = array("q", bytes(2 * 8 * task.total))
    mode: Literal["none", "async"] = "async" if task.operation.endswith("@ring") else "none"
    with open_queue(task.queue, buffer_mode=mode) as queue, queue.appender() as appender:
        freeze_the_collector()
        append_paced(appender.write_bytes, task, range(task.total), appends, sleeps=True)
    Path(task.out).write_bytes(appends.tobytes())


_WAITING = {"idle_threads": _idle_threads, "idle_tasks": _idle_tasks}
_WAKING = {"wake_spin": _spin, "wake_follow": _follow, "wake_afollow": _afollow}

OPERATIONS: dict[str, Callable[[Task], Outcome | None]] = {
    **{one.name: _WAITING[one.name.partition("@")[0]] for one in IDLE["cpu"]},
    **{one.name: _WAKING[one.name.partition("@")[0]] for one in IDLE["wake"]},
    **dict.fromkeys(("produce_seldom", "produce_seldom@ring"), _produce),
}
