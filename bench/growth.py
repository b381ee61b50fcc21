"""What must not cost more in a queue that is large or old: append, poll, seek, open."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import machine
from bench.harness import Failed, Measure, Result, fresh_directory, result, run_to_end
from bench.scenarios import GROWTH, Operation
from bench.task import ROLL_CYCLE, START_MS, Task

SIZE = 40
COUNTS = {
    "append": (100_000, 200_000),
    "poll": (1_000_000, 500_000),
    "seek": (200_000, 100_000),
    "open": (100, 100),
}
"""How often each is done, and how often before to warm up."""
_SMALL_BLOCK = 64 << 10
_CYCLE, _CYCLE_MS = "TEST4_SECONDLY", 1000
_MESSAGES_PER_CYCLE = 640
"""So many take as much room as a file of a cycle with its index."""


def room(kind: str) -> int:
    """Return how many messages of the size take as much room as all queues of a kind."""
    amounts, _ = GROWTH[kind]
    return room_of(kind, sum(amounts))


def room_of(kind: str, amount: int) -> int:
    """Return how many messages take as much room as a queue of *amount* messages or cycles."""
    return amount * (1 if kind == "messages" else _MESSAGES_PER_CYCLE)


@contextmanager
def aging(place: Path, kind: str) -> Generator[Measure]:
    """Have the runs of a round use the same fresh queues, a small and a large one."""
    amounts, _ = GROWTH[kind]
    with fresh_directory(place, SIZE, room(kind)) as directory:
        tasks = {amount: filling(directory / str(amount), kind, amount) for amount in amounts}
        for one in tasks.values():
            Path(one.directory).mkdir()
            run_to_end(one)
        yield lambda one: _measure(one, tasks)


def filling(directory: Path, kind: str, amount: int) -> Task:
    """Return what fills a queue."""
    many, task = str(directory), Task
    if kind == "messages":
        return task("quire", "write_many", many, SIZE, amount, 0)
    return Task(
        *("quire", "cycles", many, SIZE, amount, 0),
        roll_cycle=_CYCLE,
        block_bytes=_SMALL_BLOCK,
        start_ms=START_MS + amount * _CYCLE_MS,
    )


def _measure(one: Operation, filled: dict[int, Task]) -> Result:
    name, amount = one.name.split("@")
    count, warm_up = COUNTS[name]
    asked = replace(
        filled[int(amount)], system=one.system, operation=name, count=count, warm_up=warm_up
    )
    with machine.observed() as surroundings:
        outcome = json.loads(run_to_end(asked))
    if outcome["count"] != count:
        raise Failed(f"another count: task={asked} outcome={outcome}")
    if name == "append":
        from bench.adapters import quire_aged

        quire_aged.verify(asked)
    cpu_nanos = outcome.get("cpu_nanos", outcome.get("cpuNanos"))
    return result(
        surroundings, nanos=outcome["nanos"] / count, cpu_nanos=cpu_nanos and cpu_nanos / count
    )


def describe(place: Path, kind: str) -> Result:
    """Return a scenario as it is stored."""
    amounts, names = GROWTH[kind]
    return {
        "file_system": machine.file_system(place),
        "size": SIZE,
        "kind": kind,
        "amounts": amounts,
        "names": names,
        "roll_cycle": ROLL_CYCLE if kind == "messages" else _CYCLE,
    }
