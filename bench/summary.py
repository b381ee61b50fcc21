"""Medians, spreads and ratios of stored results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.harness import DISTURBED_CORES, Result, foreign_cores

TIME = "nanos"
CPU_TIME = "cpu_nanos"
MOST_RUN_DELAY = 0.001
"""A greater share of the time without a CPU could by itself make one of 1,000 messages late."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and spread of a few values."""

    median: float
    least: float
    greatest: float
    iqr: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise at least one value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0], 0.0)
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, min(values), max(values), upper - lower)


def kept(scenario: Result) -> list[Result]:
    """Return the rounds that count."""
    return [one for one in scenario["rounds"] if one["kept"]]


def operations(scenario: Result) -> list[str]:
    """Return the keys of the operations that were measured."""
    return sorted(scenario["rounds"][0]["runs"])


def values(scenario: Result, operation: str, take: Callable[[Result], float]) -> Spread:
    """Return what *take* finds in the runs of an operation."""
    return Spread.of([take(one["runs"][operation]) for one in kept(scenario)])


def taking(*names: str, unit: float = 1) -> Callable[[Result], float]:
    """Return what takes a value out of a run, by the names that lead there."""

    def take(run: Result) -> float:
        found: Any = run
        for name in names:
            found = found[name]
        return float(found) / unit

    return take


def nanos(scenario: Result, operation: str, clock: str = TIME) -> Spread:
    """Return nanoseconds per message."""
    return values(scenario, operation, taking(clock))


def percentile(scenario: Result, operation: str, since: str, name: str) -> Spread:
    """Return a percentile of a latency in microseconds."""
    return values(scenario, operation, taking(since, name))


def ratio(scenario: Result, ours: str, java: str, clock: str = TIME) -> Spread:
    """Return the ratio of the two rates, taken within each round."""
    runs = [one["runs"] for one in kept(scenario)]
    return Spread.of([run[java][clock] / run[ours][clock] for run in runs])


def without_preemption(scenario: Result, operation: str) -> list[Result]:
    """Return the runs whose threads waited for a CPU too seldom to decide a p99.9."""
    runs = [one["runs"][operation] for one in kept(scenario)]
    return [run for run in runs if 0 < len(run["run_delay"]) and run_delay(run) < MOST_RUN_DELAY]


def run_delay(run: Result) -> float:
    """Return the share of the time in which reader or writer was ready to run but had no CPU."""
    return float(sum(run["run_delay"].values()))


def is_disturbed(scenario: Result) -> bool:
    """Whether a round that counts had others use much CPU."""
    return any(foreign_cores(one) > DISTURBED_CORES for one in kept(scenario))


def mark(scenario: Result) -> str:
    """Return the mark of a scenario that other processes disturbed; else nothing."""
    return " *" if is_disturbed(scenario) else ""


def scenarios(results: dict[str, Result], part: str) -> list[Result]:
    """Return the scenarios of a part; none if it was not measured."""
    return list(results[part]["scenarios"]) if part in results else []


def by_kind(
    results: dict[str, Result],
    part: str,
    tables: Mapping[str, tuple[str, Callable[[Sequence[Result]], str]]],
) -> str:
    """Return a titled table of each kind of scenario that was measured."""
    found = scenarios(results, part)
    texts: list[str] = []
    for kind, (title, show) in tables.items():
        of_kind = [one for one in found if one["kind"] == kind]
        if of_kind:
            texts.append(f"{title}:\n\n{show(of_kind)}")
    return "\n\n".join(texts)
