"""Queues as Spark tables, beside what Spark does by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from bench import machine, spark_data
from bench.harness import ROOT, Failed, Measure, Result, Scenario, fresh_directory, result
from bench.scenarios import MEMORY_GROWTH, SPARK, Operation, Volume

_COPIES = 4
"""A queue, the same compressed, what is written of it, and its archive."""

Setting: TypeAlias = Callable[[], AbstractContextManager[Measure]]


def settings(place: Path, volume: Volume) -> Iterator[tuple[Result, Scenario, Setting]]:
    """Yield what is measured: how it is described, and what prepares a round."""
    scenario = Scenario(place, spark_data.SIZE, volume.spark, 0)
    with fresh_directory(place, spark_data.SIZE, _COPIES * volume.spark) as folder:
        spark_data.fill(folder / "queue", volume.spark, closed=True)
        with _Session(folder, volume.spark) as session:
            for kind in SPARK:
                if kind != "memory":
                    yield {"kind": kind}, scenario, partial(_as_it_is, session.measure)
    yield {"kind": "memory"}, scenario, lambda: _memory(place, volume.spark)


def _as_it_is(measure: Measure) -> AbstractContextManager[Measure]:
    return nullcontext(measure)


@contextmanager
def _memory(place: Path, count: int) -> Generator[Measure]:
    """Each run has a session of its own, whose workers read nothing else."""

    def measure(one: Operation) -> Result:
        messages = count if one.name.endswith("@large") else count // MEMORY_GROWTH
        with fresh_directory(place, spark_data.SIZE, messages) as folder:
            spark_data.fill(folder / "queue", messages)
            with _Session(folder, messages) as session:
                return session.measure(one, is_warm=True)

    yield measure


class _Session:
    """A process with a Spark session, which does what it is asked for."""

    def __init__(self, folder: Path, count: int) -> None:
        command = [sys.executable, "-m", "bench.spark_session", str(folder), str(count)]
        self._errors = folder / "session.log"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._warm: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def measure(self, one: Operation, *, is_warm: bool = False) -> Result:
        """Measure an operation; before the first time, do it once."""
        if not is_warm and one.key not in self._warm:
            self._warm.add(one.key)
            self._ask(one.name)
        with machine.observed() as surroundings:
            used_s = machine.tree_s(self._process.pid)
            found = self._ask(one.name)
            used_s = machine.tree_s(self._process.pid) - used_s
        foreign_cores = surroundings.foreign_cores - used_s / surroundings.wall_s
        surroundings.foreign_cores = max(0.0, foreign_cores)
        count = found.pop("count")
        each = {name: found.pop(name) / count for name in ("nanos", "cpu_nanos")}
        return result(surroundings, messages=count, **each, **found)

    def _ask(self, name: str) -> Result:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._process.wait(60)
            errors = self._errors.read_text("utf-8")[-3000:]
            raise Failed(f"it failed: operation={name}\n{errors}")
        found: Result = json.loads(answer)
        return found
