"""Consumer groups, paced appends, seeks by time, rolls, idle tailers, log records, recorders."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bench import finding, machine, paced
from bench.harness import Failed, Measure, Result, Scenario, fresh_directory, result, run_to_end
from bench.scenarios import LIFE_RATE, LIFE_SIZE, Amount, Operation, Volume
from bench.task import Task

Setting: TypeAlias = Callable[[], AbstractContextManager[Measure]]
Described: TypeAlias = tuple[Result, Scenario, Setting]
_MESSAGES_PER_CYCLE = 10_000
"""They take as much room as a file of a cycle with its index."""


def settings(places: Sequence[Path], volume: Volume) -> Iterator[Described]:
    """Yield what is measured: how it is described, and what prepares a round."""
    life = volume.life
    for place in places:
        groups = Scenario(place, LIFE_SIZE, *life.groups)
        yield {"kind": "groups"}, groups, partial(_sharing, groups)
    # On a disk, the last place: there a page costs most.
    warm = Scenario(places[-1], LIFE_SIZE, *volume.at_rate(LIFE_RATE))
    yield {"kind": "warm"}, warm, partial(paced.pacing, warm)
    held = Scenario(places[-1], LIFE_SIZE, *life.held)
    yield {"kind": "ring"}, held, partial(paced.pacing, held)
    for place in places:
        yield from _seeking(place, *life.sought)
    for place in places:
        yield alone("roll", place, Amount(life.rolls, 0), life.rolls * _MESSAGES_PER_CYCLE)
    yield alone("idle", places[0], life.polls)
    for place in places:
        yield alone("logging", place, life.records)
    for place in places:
        yield alone("recording", place, life.recorded)


@contextmanager
def _sharing(scenario: Scenario) -> Generator[Measure]:
    """Have the runs of a round consume the same fresh queue, each as a group of its own."""
    with fresh_directory(scenario.place, scenario.size, scenario.total) as directory:
        run_to_end(scenario.task(Operation("quire", "write_many"), directory))
        yield lambda one: measure(scenario.task(one, directory))


def _seeking(place: Path, count: int, cycles: int) -> Iterator[Described]:
    """Have all rounds seek in the same queue."""
    room = count + cycles * _MESSAGES_PER_CYCLE
    with fresh_directory(place, LIFE_SIZE, room) as directory:
        finding.fill(directory / "queue", count, cycles)
        seek: Measure = partial(finding.seek, directory / "queue", count, cycles)
        scenario = Scenario(place, LIFE_SIZE, count, 0)
        yield {"kind": "seek", "cycles": cycles}, scenario, lambda: nullcontext(seek)


def alone(
    kind: str, place: Path, amount: Amount, room: int = 0, size: int = LIFE_SIZE
) -> Described:
    """Give each run a fresh directory."""
    scenario = Scenario(place, size, *amount)

    def run(one: Operation) -> Result:
        with fresh_directory(place, size, max(room, scenario.total)) as directory:
            return measure(scenario.task(one, directory))

    return {"kind": kind}, scenario, lambda: nullcontext(run)


def measure(asked: Task) -> Result:
    """Run a task and check what it counted; what else it found is stored beside."""
    with machine.observed() as surroundings:
        outcome = json.loads(run_to_end(asked))
    if outcome["count"] != asked.count:
        raise Failed(f"another count: task={asked} outcome={outcome}")
    cpu_nanos = outcome["cpu_nanos"]
    return result(
        surroundings,
        nanos=outcome["nanos"] / asked.count,
        cpu_nanos=cpu_nanos and cpu_nanos / asked.count,
        **outcome.get("details", {}),
    )
