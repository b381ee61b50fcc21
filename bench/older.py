"""Vanilla Chronicles and Quick-Queues: appended, read, shared by producers, and long."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bench import contention, machine
from bench.harness import (
    Failed,
    Measure,
    Result,
    Scenario,
    fresh_directory,
    measure_rate,
    result,
    run_to_end,
)
from bench.scenarios import OLDER_SIZES, Operation, Volume
from bench.task import Task

Setting: TypeAlias = Callable[[], AbstractContextManager[Measure]]
_FORMATS = {"vanilla": "vanilla", "quick-queue": "quick_queue"}
AGED_COUNTS = {"idle": (1_000_000, 200_000), "open": (100, 50)}
"""How often each is done on an old or long queue, and how often before to warm up."""
_AGED_SIZE = 40
_AGED_MESSAGES = 3_000_000
"""The room that all aged queues of a format take, in messages."""


def settings(place: Path, volume: Volume) -> Iterator[tuple[Result, Scenario, Setting]]:
    """Yield what is measured: how it is described, and what prepares a round."""
    for name, system in _FORMATS.items():
        for size in OLDER_SIZES:
            for kind, amount, setting in (
                ("append", volume.append, _appending),
                ("read", volume.tail, _reading),
            ):
                scenario = Scenario(place, size, *amount)
                yield {"kind": f"{name}-{kind}"}, scenario, partial(setting, scenario, system)
        aged = Scenario(place, _AGED_SIZE, *AGED_COUNTS["open"])
        yield {"kind": f"{name}-aged"}, aged, partial(_aging, aged)
    # Room for what may be written in the time; nobody appends so much.
    most = volume.contention_ms * 20_000
    shared = Scenario(place, OLDER_SIZES[0], most, volume.contention_warm_up)
    setting = partial(_producing, shared, volume.contention_ms)
    yield {"kind": "quick-queue-producers"}, shared, setting


@contextmanager
def _appending(scenario: Scenario, system: str) -> Generator[Measure]:
    """Each run has a fresh queue. Every byte of it is compared afterwards, whoever wrote it."""
    from bench.adapters import quire_older

    def measure(one: Operation) -> Result:
        with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
            asked = scenario.task(one, directory)
            found = measure_rate(asked)
            quire_older.verify(system, asked.queue, asked.size, asked.total)
            return found

    yield measure


@contextmanager
def _reading(scenario: Scenario, system: str) -> Generator[Measure]:
    """Have the runs of a round read the same fresh queue, just written and compared."""
    from bench.adapters import quire_older

    with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
        run_to_end(scenario.task(Operation(system, "write_many"), directory))
        quire_older.verify(system, directory / "queue", scenario.size, scenario.total)
        yield lambda one: measure_rate(scenario.task(one, directory))


@contextmanager
def _producing(scenario: Scenario, duration_ms: int) -> Generator[Measure]:
    """Append as one or several named producers; every message of each is looked for afterwards."""
    from bench.adapters import quire_contending, quire_older

    def measure(one: Operation) -> Result:
        name, _, writers = one.name.partition("@")
        with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
            asked = replace(
                scenario.task(Operation(one.system, name), directory), duration_ms=duration_ms
            )
            with machine.observed() as surroundings:
                found = contention.run(asked, int(writers))
            counts = [int(one["count"]) for one in found]
            expected = [asked.warm_up + count for count in counts]
            with quire_older.open_queue(one.system, asked.queue, read_only=True) as queue:
                quire_contending.compare(queue.tailer(), asked.size, expected)
            return result(
                surroundings,
                nanos=max(one["nanos"] for one in found) / sum(counts),
                cpu_nanos=sum(one["cpu_nanos"] for one in found) / sum(counts),
            )

    yield measure


@contextmanager
def _aging(scenario: Scenario) -> Generator[Measure]:
    """Have the runs of a round use the same fresh queues, short and long ones."""
    with fresh_directory(scenario.place, scenario.size, _AGED_MESSAGES) as directory:
        filled: set[Operation] = set()

        def measure(one: Operation) -> Result:
            name, _, amount = one.name.partition("@")
            count, warm_up = AGED_COUNTS[name]
            task = Task(one.system, one.name, str(directory), scenario.size, count, warm_up)
            fill = Operation(one.system, f"fill@{amount}")
            if name == "open" and fill not in filled:
                run_to_end(replace(task, operation=fill.name))
                filled.add(fill)
            with machine.observed() as surroundings:
                outcome = json.loads(run_to_end(task))
            if outcome["count"] != count:
                raise Failed(f"another count: task={task} outcome={outcome}")
            return result(
                surroundings,
                nanos=outcome["nanos"] / count,
                cpu_nanos=outcome["cpu_nanos"] / count,
            )

        yield measure
