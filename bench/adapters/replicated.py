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
from itertools import islice
from pathlib import Path

from demo import nodes

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
}
version = plain.version
_BURST = 100
_BURST_S = 0.001
_POLL_S = 0.001


def copy_of(task: Task) -> Task:
    """Return the same task at the sink."""
    return replace(task, directory=str(Path(task.directory) / "sink"))


@contextmanager
def services(task: Task) -> Generator[None]:
    """Replicate the queue of a task while the block runs, a process for each side."""
    open_queue(task.queue).close()
    log = Path(task.directory) / "log"
    log.touch()
    with (
        nodes.source(task.queue, log) as source,
        nodes.sink(copy_of(task).queue, source.address, log),
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
    with open_queue(task.queue, read_only=True) as queue, queue.tailer() as tailer:
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
