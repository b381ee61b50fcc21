"""Messages that are objects: written, read, made columns, and dumped as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bench import machine
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
from bench.scenarios import DUMP_SIZE, Amount, Operation, Volume
from bench.task import DISTINCT

SIZE = 66
"""A call with the object has so many bytes, or a few less."""
_FILES = 2
_OBJECTS = ("write_message", "read_message")
Setting: TypeAlias = Callable[[], AbstractContextManager[Measure]]


def settings(place: Path, volume: Volume) -> Iterator[tuple[Result, Scenario, Setting]]:
    """Yield what is measured: how it is described, and what prepares a round."""
    scenario = Scenario(place, SIZE, *volume.messages)
    yield {"kind": "write"}, scenario, lambda: _writing(scenario)
    yield {"kind": "read"}, scenario, lambda: _reading(scenario)
    for holds, (count, dumps) in volume.dumped.items():
        dumped = Scenario(place, DUMP_SIZE, count, 0)
        setting = partial(_dumping, dumped, holds, dumps)
        yield {"kind": "dump", "holds": holds, "dumps": dumps}, dumped, setting


@contextmanager
def _writing(scenario: Scenario) -> Generator[Measure]:
    """Each run has a fresh queue. Every byte of Quire's and Java's is compared afterwards."""
    from bench.adapters import quire_messages as quire

    def measure(one: Operation) -> Result:
        with fresh_directory(scenario.place, SIZE, scenario.total) as directory:
            asked = scenario.task(one, directory)
            found = measure_rate(asked)
            if one.system in ("quire", "chronicle"):
                distinct = quire.objects if one.name in _OBJECTS else quire.calls
                expected = distinct(directory / "expected")
                quire.verify(asked.queue, expected, asked.total // DISTINCT)
            return found

    yield measure


@contextmanager
def _reading(scenario: Scenario) -> Generator[Measure]:
    """Have the runs of a round read the same fresh queues, of calls and of objects."""
    from bench.adapters import quire_messages as quire

    with fresh_directory(scenario.place, SIZE, 2 * scenario.total) as directory:
        for name, distinct in (("calls", quire.calls), ("objects", quire.objects)):
            path = directory / name
            pool = distinct(path / "expected")
            quire.fill(path / "queue", pool, scenario.total // DISTINCT)

        def measure(one: Operation) -> Result:
            queue = directory / ("objects" if one.name in _OBJECTS else "calls")
            return measure_rate(scenario.task(one, queue))

        yield measure


@contextmanager
def _dumping(scenario: Scenario, holds: str, dumps: Amount) -> Generator[Measure]:
    """Have the runs of a round dump the same fresh queue; the texts must be equally long."""
    from bench.adapters import quire_messages as quire

    with fresh_directory(scenario.place, DUMP_SIZE, scenario.count) as directory:
        pool = quire.DUMPED[holds](directory / "expected", DUMP_SIZE)
        quire.fill(directory / "queue", pool, scenario.count // DISTINCT)
        length = quire.dumped_bytes(directory / "queue", scenario.count)
        # Java names each of the two files with its directory.
        lengths = {"quire": length, "chronicle": length + _FILES * len(f"{directory}/queue/")}

        def measure(one: Operation) -> Result:
            task = replace(
                scenario.task(one, directory), count=dumps.measured, warm_up=dumps.warm_up
            )
            with machine.observed() as surroundings:
                outcome = json.loads(run_to_end(task))
            expected = (task.count, task.count * lengths[one.system])
            if (outcome["count"], outcome["checksum"]) != expected:
                raise Failed(f"another text: task={task} outcome={outcome} expected={expected}")
            cpu_nanos = outcome.get("cpu_nanos", outcome.get("cpuNanos"))
            messages = task.count * scenario.count
            return result(
                surroundings, nanos=outcome["nanos"] / messages, cpu_nanos=cpu_nanos / messages
            )

        yield measure
