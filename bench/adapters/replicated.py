"""Quire's replication: both ends of a latency, how fast a sink catches up, and what it costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from demo import nodes

import quire
from bench.adapters import quire as plain
from bench.quire_queues import STAMPS, append_paced, freeze_the_collector, open_queue
from bench.task import DISTINCT, Outcome, Stopwatch, Task, checksum, messages
from quire.replication import Source

NAME = "Quire"
NAMES = {
    "latency": "Quire",
    "catch_up": "a sink that catches up",
    "cost@alone": "without a source",
    "cost@replicated": "with a source and a sink",
    "wait@each": 'one at a time, durability="each"',
    "wait@all": 'one at a time, wait="all"',
    "flight": "in_flight(64)",
    "flight@busy": "in_flight(64), --busy",
}
version = plain.version
_BURST = 100
_BURST_S = 0.001
_POLL_S = 0.001
_IN_FLIGHT = 64


def copy_of(task: Task) -> Task:
    """Return the same task at the sink."""
    return replace(task, directory=str(Path(task.directory) / "sink"))


@contextmanager
def services(task: Task, *options: str) -> Generator[None]:
    """Replicate the queue of a task while the block runs, a process for each side."""
    open_queue(task.queue).close()
    log = Path(task.directory) / "log"
    log.touch()
    with (
        nodes.source(task.queue, log, *options) as source,
        nodes.sink(copy_of(task).queue, source.address, log, *options),
    ):
        yield


def run(task: Task) -> Outcome | None:
    """Run one operation."""
    match task.operation:
        case "produce":
            _produce(task)
        case "tail":
            _tail(copy_of(task))
        case "catch_up":
            return asyncio.run(_catch_up(task))
        case "cost@alone":
            return _cost(task)
        case "wait@each" | "wait@all":
            return _waited(task)
        case "flight" | "flight@busy":
            return _flown(task)
        case _:
            with services(task):
                return _cost(task)
    return None


def _produce(task: Task) -> None:
    """Append at the rate, and sleep in between."""
    appends = array("q", bytes(2 * 8 * task.total))
    with open_queue(task.queue) as queue, queue.appender() as appender:
        freeze_the_collector()
        append_paced(appender.write_bytes, task, range(task.total), appends, sleeps=True)
    Path(task.out).write_bytes(appends.tobytes())


def _tail(task: Task) -> None:
    """Follow the copy; number, due time and arrival of each message go to a file."""
    arrivals, clock = array("q"), time.monotonic_ns
    # Not read-only: such a reader may not say that it sleeps, and looks every few milliseconds.
    with open_queue(task.queue) as queue, queue.tailer() as tailer:
        freeze_the_collector()
        print("READY", flush=True)
        for message in islice(tailer.follow(), task.total):
            had = clock()
            arrivals.extend((*STAMPS.unpack_from(message.data), had))
    Path(task.out).write_bytes(arrivals.tobytes())


async def _catch_up(task: Task) -> Outcome:
    """Send a queue to a new sink; the clock starts when that has greeted."""
    pool = messages(task.size)
    with ExitStack() as stack:
        queue = stack.enter_context(open_queue(task.queue))
        with queue.appender() as appender:
            last = [appender.write_many(pool) or 0 for _ in range(task.count // DISTINCT)]
        async with Source(queue) as source:
            stack.enter_context(_sink(copy_of(task).queue, source.address[1]))
            while not source.sinks:  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(_POLL_S)
            with Stopwatch() as watch:
                await source.acknowledged(last[-1])
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


@contextmanager
def _sink(path: Path, port: int) -> Generator[None]:
    command = ["import sys; from quire.cli import main; sys.exit(main())", "replicate", "sink"]
    with subprocess.Popen(
        [sys.executable, "-c", *command, str(path), "--from", f"127.0.0.1:{port}"],
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def _in_sync(task: Task) -> Generator[quire.JournalQueue]:
    """Open the queue once its sink is in sync."""
    with open_queue(task.queue) as queue:
        while not any(it.in_sync for it in queue.replicas):
            time.sleep(_POLL_S)
        yield queue


def _waited(task: Task) -> Outcome:
    """Append one message after the other, each of which waits for the disk or for the replica."""
    pool = cycle(messages(task.size))
    with ExitStack() as stack:
        if task.operation == "wait@each":
            queue = stack.enter_context(open_queue(task.queue, durability="each"))
            appender = queue.appender()
        else:
            stack.enter_context(services(task))
            appender = stack.enter_context(_in_sync(task)).appender(wait="all")
        stack.enter_context(appender)
        for message in islice(pool, task.warm_up):
            appender.write_bytes(message)
        with Stopwatch() as watch:
            for message in islice(pool, task.count):
                appender.write_bytes(message)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


def _flown(task: Task) -> Outcome:
    """Append while at most 64 messages are not acknowledged; the last one's is awaited, too."""
    pool = cycle(messages(task.size))
    options = ("--busy",) if task.operation == "flight@busy" else ()
    with services(task, *options), _in_sync(task) as queue, queue.appender() as appender:
        for count in (task.warm_up, task.count):
            with Stopwatch() as watch, appender.in_flight(_IN_FLIGHT) as flight:
                for message in islice(pool, count):
                    flight.write_bytes(message)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


def _cost(task: Task) -> Outcome:
    """Append in bursts, 100,000 messages a second; count the CPU time of this thread alone."""
    pool = messages(task.size)[:_BURST]
    with open_queue(task.queue) as queue, queue.appender() as appender:
        write = appender.write_bytes
        _bursts(write, pool, task.warm_up)
        used = time.thread_time_ns()
        with Stopwatch() as watch:
            _bursts(write, pool, task.count)
        used = time.thread_time_ns() - used
    return Outcome(watch.nanos, used, task.count, checksum(task.count))


def _bursts(write: Callable[[bytes], object], pool: list[bytes], count: int) -> None:
    for _ in range(count // _BURST):
        for message in pool:
            write(message)
        time.sleep(_BURST_S)
