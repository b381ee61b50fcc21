"""Medians, spreads and ratios of stored results; the targets."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.harness import DISTURBED_CORES, Result, foreign_cores
from bench.scenarios import TARGETS, Target

TIME = "nanos"
CPU_TIME = "cpu_nanos"


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


def nanos(scenario: Result, operation: str, clock: str = TIME) -> Spread:
    """Return nanoseconds per message."""
    return Spread.of([one["runs"][operation][clock] for one in kept(scenario)])


def ratio(scenario: Result, ours: str, java: str, clock: str = TIME) -> Spread:
    """Return the ratio of the two rates, taken within each round."""
    runs = [one["runs"] for one in kept(scenario)]
    return Spread.of([run[java][clock] / run[ours][clock] for run in runs])


def is_disturbed(scenario: Result) -> bool:
    """Whether a round that counts had others use much CPU."""
    return any(foreign_cores(one) > DISTURBED_CORES for one in kept(scenario))


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was reached."""

    target: Target
    file_system: str
    reached: Spread
    by_cpu_time: Spread
    disturbed: bool

    @property
    def is_met(self) -> bool:
        """Whether the target is met by time and by CPU time, each by its median."""
        return all(one.median >= self.target.least for one in self._clocks)

    @property
    def text(self) -> str:
        """Say whether it is met, and whether the clocks and the rounds agree."""
        least = self.target.least
        by_time, by_cpu_time = (one.median >= least for one in self._clocks)
        said = "met" if self.is_met else "not met"
        if by_time != by_cpu_time:
            said += ", but by time" if by_time else ", but by CPU time"
        if any(one.least < least <= one.greatest for one in self._clocks):
            said += ", rounds differ"
        return said + (" *" if self.disturbed else "")

    @property
    def _clocks(self) -> tuple[Spread, Spread]:
        return self.reached, self.by_cpu_time


def verdicts(results: dict[str, Result]) -> Iterator[Verdict]:
    """Hold what was measured against the targets."""
    measured = [
        one for part in ("append", "tail") if part in results for one in scenarios(results, part)
    ]
    for target in TARGETS:
        for one in measured:
            keys = operations(one)
            if one["size"] == target.size and {target.ours, target.java} <= set(keys):
                by_time, by_cpu_time = (
                    ratio(one, target.ours, target.java, clock) for clock in (TIME, CPU_TIME)
                )
                disturbed = is_disturbed(one)
                yield Verdict(target, one["file_system"], by_time, by_cpu_time, disturbed)


def scenarios(results: dict[str, Result], part: str) -> list[Result]:
    """Return the scenarios of a part; none if it was not measured."""
    return list(results[part]["scenarios"]) if part in results else []
