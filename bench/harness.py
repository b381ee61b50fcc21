"""
Runs rounds of measurements, each in a process and a directory of its own.

A round measures every operation of a scenario once, in random order, so that what disturbs the
machine for a while disturbs them alike; ratios are taken within a round. Rounds are added, as often
as the volume allows, until enough of them passed with little CPU used by others, and the quietest
are kept: the rule looks at the others' CPU, never at a result. When a scenario's time is up, no
further round begins.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from bench import machine, quire_queues, task
from bench.machine import Surroundings
from bench.scenarios import Operation, Volume
from bench.task import Missing, Task

ROOT = Path(__file__).resolve().parents[1]
DISTURBED_CORES = 0.3
"""More CPU than this used by others, in cores, and a run counts as disturbed."""
TIMEOUT_S = 600.0
_LEAST_ROUNDS = 2
_OVERHEAD_BYTES = 400 << 20
_PER_MESSAGE_BYTES = 64

Result: TypeAlias = dict[str, Any]
"""What a run found, as it is stored."""
Measure: TypeAlias = Callable[[Operation], Result]


class Failed(Exception):  # noqa: N818 - the text says what
    """A measurement did not run, or measured something else than it should."""


def adapter(system: str) -> Any:  # noqa: ANN401 - a module
    """Return the module of a system."""
    return import_module(f"bench.adapters.{system}")


def versions(systems: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions of the systems that are here, and why the others are not."""
    found, missing = {}, {}
    for system in dict.fromkeys(systems):
        try:
            found[system] = adapter(system).version()
        except Missing as reason:
            missing[system] = str(reason)
    return found, missing


def rounds(
    setting: Callable[[], AbstractContextManager[Measure]],
    operations: Sequence[Operation],
    volume: Volume,
) -> list[Result]:
    """Measure rounds; *setting* prepares one and gives what measures an operation in it."""
    found: list[Result] = []
    most = volume.pairs + volume.retries
    deadline = time.monotonic() + volume.budget_s
    while sum(map(_is_quiet, found)) < volume.pairs and len(found) < most:
        if len(found) >= _LEAST_ROUNDS and time.monotonic() > deadline:
            break
        order = random.sample(operations, len(operations))
        with setting() as measure:
            runs = {one.key: _at_a_pause(measure, one, volume) for one in order}
            found.append({"kept": True, "runs": runs})
    for one in sorted(found, key=foreign_cores)[volume.pairs :]:
        one["kept"] = False
    return found


def _at_a_pause(measure: Measure, one: Operation, volume: Volume) -> Result:
    machine.wait_for_a_pause(DISTURBED_CORES, volume.patience_s)
    return measure(one)


def foreign_cores(one: Result) -> float:
    """Return the others' CPU during the most disturbed run of a round."""
    return max(float(run["foreign_cores"]) for run in one["runs"].values())


def _is_quiet(one: Result) -> bool:
    return foreign_cores(one) <= DISTURBED_CORES


@contextmanager
def fresh_directory(place: Path, size: int, total: int) -> Generator[Path]:
    """Make a directory for so many messages, and remove it with all that was put there."""
    needed = 2 * (total * (size + _PER_MESSAGE_BYTES) + _OVERHEAD_BYTES)
    free = machine.free_bytes(place)
    if free < needed:
        raise Failed(f"too little room: place={place} free={free} needed={needed}")
    if machine.file_system(place) != "tmpfs":
        os.sync()  # what earlier runs and others left to be written
    directory = Path(tempfile.mkdtemp(prefix="quire-bench-", dir=place))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def command(one: Task) -> list[str]:
    """Return the command line that runs a task; it dies with this process."""
    module = adapter(one.system)
    worker = [sys.executable, "-m", "bench.worker", one.to_json()]
    line: list[str] = module.command(one) if hasattr(module, "command") else worker
    tied = shutil.which("setpriv")
    return [tied, "--pdeathsig", "KILL", "--", *line] if tied else line


def run_to_end(one: Task) -> str:
    """Run a task in a process of its own and return the last line it prints."""
    done = subprocess.run(
        command(one), cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        raise Failed(f"it failed: task={one} exit={done.returncode}\n{done.stderr[-3000:]}")
    return (done.stdout.splitlines() or [""])[-1]


def measure_rate(one: Task) -> Result:
    """Run a task and check what it counted and added up."""
    with machine.observed() as surroundings:
        outcome = json.loads(run_to_end(one))
    expected = (one.count, task.checksum(one.count))
    if (outcome["count"], outcome["checksum"]) != expected:
        raise Failed(f"other messages: task={one} outcome={outcome} expected={expected}")
    cpu_nanos = outcome.get("cpu_nanos", outcome.get("cpuNanos"))
    return result(
        surroundings,
        nanos=outcome["nanos"] / one.count,
        cpu_nanos=cpu_nanos and cpu_nanos / one.count,
    )


def result(surroundings: Surroundings, **values: object) -> Result:
    """Return what is stored of a run: its values, and what else happened meanwhile."""
    return {**values, **asdict(surroundings)}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A place, a message size, and how many messages."""

    place: Path
    size: int
    count: int
    warm_up: int

    @property
    def total(self) -> int:
        """Messages of the warm-up and of the measured part."""
        return self.count + self.warm_up

    def describe(self) -> Result:
        """Return it as it is stored."""
        return {
            "file_system": machine.file_system(self.place),
            "size": self.size,
            "count": self.count,
            "warm_up": self.warm_up,
        }

    def task(self, one: Operation, directory: Path) -> Task:
        """Return an operation of this scenario as a task."""
        return Task(one.system, one.name, str(directory), self.size, self.count, self.warm_up)

    @contextmanager
    def appending(self) -> Generator[Measure]:
        """Each run has a fresh queue. Every byte of Quire's and Java's is compared afterwards."""

        def measure(one: Operation) -> Result:
            with fresh_directory(self.place, self.size, self.total) as directory:
                asked = self.task(one, directory)
                found = measure_rate(asked)
                if one.system in ("quire", "chronicle"):
                    quire_queues.verify(asked.queue, self.size, self.total)
                return found

        yield measure

    @contextmanager
    def streaming(self) -> Generator[Measure]:
        """Each run has a fresh directory; the receiver compares every byte."""

        def measure(one: Operation) -> Result:
            with fresh_directory(self.place, self.size, self.total) as directory:
                return measure_rate(self.task(one, directory))

        yield measure

    @contextmanager
    def tailing(self) -> Generator[Measure]:
        """Have the runs of a round read the same fresh queue, just written and compared."""
        with fresh_directory(self.place, self.size, self.total) as directory:
            fill = Operation("quire", "write_many")
            run_to_end(self.task(fill, directory))
            quire_queues.verify(directory / "queue", self.size, self.total)
            yield lambda one: measure_rate(self.task(one, directory))
