"""What nothing in Python that appends to a file can beat: a copy into a mapping, and a call."""

from __future__ import annotations

import mmap

from bench.task import DISTINCT, Outcome, Stopwatch, Task, checksum, messages

NAME = "limits"
NAMES = {
    "fresh_pages": "limit: copying, fresh pages",
    "touched_pages": "limit: copying, touched pages",
    "call": "limit: an empty call",
}


def version() -> str:
    """Return what is used; the method adds a number."""
    return "mmap of a file, ManualClock.advance"


def run(task: Task) -> Outcome:
    """Run one of the limits."""
    return _calls(task) if task.operation == "call" else _copies(task)


def _copies(task: Task) -> Outcome:
    block = b"".join(messages(task.size))
    total = task.total // DISTINCT * len(block)
    with task.queue.open("w+b") as file:
        file.truncate(total)
        with mmap.mmap(file.fileno(), total) as mapping:

            def copy(begin: int, end: int) -> None:
                for start in range(begin * task.size, end * task.size, len(block)):
                    mapping[start : start + len(block)] = block

            copy(0, task.warm_up)
            if task.operation == "touched_pages":
                copy(task.warm_up, task.total)
            with Stopwatch() as watch:
                copy(task.warm_up, task.total)
            assert mapping[:] == block * (task.total // DISTINCT)
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))


def _calls(task: Task) -> Outcome:
    import quire

    clock = quire.ManualClock()
    call = clock.advance
    for _ in range(task.warm_up):
        call(1)
    with Stopwatch() as watch:
        for _ in range(task.count):
            call(1)
    assert clock.now_ms == task.total
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, checksum(task.count))
