"""Counts of rows while a pipeline runs, and their reports."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from quire.pipeline.run_report.facts import RuleReport, SinkReport, StepReport
from quire.pipeline.spec.parts import DUPLICATE, LATE, Pipeline, Rule, Sink, Step

# A thread of Spark reports an observation soon after the end of its job.
_COUNTED_WITHIN_S: Final = 5.0
_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of a step with rules, from one job."""

    rows: int
    quarantined: int
    dropped: int
    broken: Mapping[str, int]


@dataclass(slots=True)
class _Step:
    """The counts of a step: in a batch, or over all of them."""

    out: int | None = None
    is_unknown: bool = False  # a count is missing, so the sum is unknown
    quarantined: int = 0
    dropped: int = 0
    held: int | None = None
    duration_s: float = 0.0
    broken: Counter[str] = field(default_factory=Counter[str])

    def add(self, batch: _Step) -> None:
        """Add the counts of a batch."""
        if batch.out is not None:
            self.out = (self.out or 0) + batch.out
        self.is_unknown |= batch.is_unknown
        self.quarantined += batch.quarantined
        self.dropped += batch.dropped
        self.held = self.held if batch.held is None else batch.held
        self.duration_s += batch.duration_s
        self.broken += batch.broken

    @property
    def known(self) -> int | None:
        """The number of rows that the step passed on; None if they were not counted."""
        return None if self.is_unknown else self.out


@dataclass(slots=True)
class _Sink:
    """The counts of a sink: in a batch, or over all of them."""

    rows: int | None = 0
    batches: int = 0
    repeated: int = 0

    def add(self, batch: _Sink) -> None:
        """Add the counts of a batch."""
        self.rows = _sum([self.rows, batch.rows])
        self.batches += batch.batches
        self.repeated += batch.repeated


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Sums of one batch; None where a count is missing."""

    rows_in: int | None
    rows_out: int | None
    quarantined: int


class Tally:
    """The counts of a run; those of the current batch are added when it ends."""

    def __init__(self, pipeline: Pipeline) -> None:
        """Start at zero."""
        self._pipeline = pipeline
        self._followed = {source.name for source in pipeline.sources if source.stream}
        self._steps: dict[str, _Step] = {}
        self._sinks: dict[str, _Sink] = {}
        self._batch: dict[str, _Step] = {}
        self._written: dict[str, _Sink] = {}
        self._observed: dict[str, Observation] = {}

    def begin(self) -> None:
        """Begin a batch; the counts of one that failed are discarded."""
        self._batch, self._written, self._observed = {}, {}, {}

    def observed(self, name: str, frame: DataFrame) -> DataFrame:
        """Return *frame* so that the first job that reads it counts its rows."""
        self._observed[name] = Observation()
        return frame.observe(self._observed[name], F.count(F.lit(1)).alias("rows"))

    def took(self, name: str, duration_s: float) -> None:
        """Add the time that a step or sink took."""
        self._of(name).duration_s += duration_s

    def checked(self, name: str, counted: Counted) -> None:
        """Set the counts of a step with rules."""
        step = self._of(name)
        step.out = counted.rows - counted.quarantined - counted.dropped
        step.quarantined = counted.quarantined
        step.dropped = counted.dropped
        step.broken = Counter(counted.broken)

    def held(self, name: str, *, out: int, held: int) -> None:
        """Set how many rows a step passed on, and how many wait for their window."""
        step = self._of(name)
        step.out, step.held = out, held

    def wrote(self, sink: Sink, part: str, *, is_new: bool) -> None:
        """Record that a sink has the current batch, and whether this run wrote it."""
        observation = self._observed.pop(part)
        self._written[sink.destination] = _Sink(
            rows=_rows(observation, _deadline()) if is_new else 0,
            batches=int(is_new),
            repeated=int(not is_new),
        )

    def end(self) -> BatchCounts:
        """End a batch: collect the observations, and return its sums."""
        deadline = _deadline()
        for name, observation in self._observed.items():
            step = self._of(name)
            step.out = _rows(observation, deadline)
            step.is_unknown = step.out is None
        batch, written = self._batch, self._written
        rows_in = [_read(batch[name]) for name in self._followed if name in batch]
        for name, step in batch.items():
            self._steps.setdefault(name, _Step()).add(step)
        for destination, sink in written.items():
            self._sinks.setdefault(destination, _Sink()).add(sink)
        self.begin()
        return BatchCounts(
            rows_in=_sum(rows_in),
            rows_out=_sum([sink.rows for sink in written.values()]),
            quarantined=sum(step.quarantined for step in batch.values()),
        )

    def _of(self, name: str) -> _Step:
        return self._batch.setdefault(name, _Step())

    def _total(self, name: str) -> _Step:
        return self._steps.get(name) or _Step()

    def read(self, source: str) -> int | None:
        """Return how many rows of a source were read."""
        return _read(self._total(source))

    def steps(self) -> tuple[StepReport, ...]:
        """Return sources and steps, as they are computed."""
        sources = tuple(
            self._report(it.checks(), "source" if it.stream else "lookup")
            for it in self._pipeline.sources
        )
        return sources + tuple(self._report(step, step.kind) for step in self._pipeline.steps)

    def sinks(self) -> tuple[SinkReport, ...]:
        """Return the sinks, in the file's order."""
        return tuple(
            self._sink(sink, self._sinks.get(sink.destination)) for sink in self._pipeline.sinks
        )

    def _sink(self, sink: Sink, found: _Sink | None) -> SinkReport:
        found = found or _Sink()
        return SinkReport(
            step=sink.step,
            format=sink.format,
            destination=sink.destination,
            rows=found.rows,
            batches=found.batches,
            repeated=found.repeated,
            duration_s=self._total(f"sink {sink.format} of {sink.step}").duration_s,
        )

    def _report(self, step: Step, kind: str) -> StepReport:
        found = self._total(step.name)
        lookups = {source.name for source in self._pipeline.sources if not source.stream}
        counted = [self._total(name).known for name in step.inputs if name not in lookups]
        return StepReport(
            name=step.name,
            kind=kind,
            inputs=step.inputs,
            rows_in=_sum(counted) if counted else None,
            rows_out=found.known,
            quarantined=found.quarantined,
            dropped=found.dropped,
            held=found.held or 0,
            duration_s=found.duration_s,
            rules=tuple(self._rule(rule, found.broken[rule.name]) for rule in _rules(step)),
        )

    def _rule(self, rule: Rule, broken: int) -> RuleReport:
        is_quarantined = rule.action == "quarantine"
        return RuleReport(
            name=rule.name,
            condition=rule.condition,
            action=rule.action,
            broken=broken,
            destination=self._pipeline.quarantine.destination if is_quarantined else None,
        )


def _rules(step: Step) -> list[Rule]:
    """Return the rules of a step; the conditions of those about time are in words."""
    found = [*step.rules]
    if (mark := step.watermark) is not None:
        condition = f"{mark.column} is at most {mark.delay} before the latest row so far"
        found.append(Rule(LATE, condition, mark.action))
    if (rule := step.deduplicate) is not None:
        within = f" within {rule.within}" if rule.within else ""
        condition = f"the first with its {', '.join(rule.by)}{within}"
        found.append(Rule(DUPLICATE, condition, rule.action))
    return found


def _read(step: _Step) -> int | None:
    """Return how many rows a source delivered."""
    return None if step.known is None else step.known + step.quarantined + step.dropped


def _sum(counts: Sequence[int | None]) -> int | None:
    """Return a sum; None if one of the counts is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _deadline() -> float:
    return time.monotonic() + _COUNTED_WITHIN_S


def _rows(observation: Observation, deadline: float) -> int | None:
    """
    Return the count of an observation; None if no job read its whole frame.

    `Observation.get` would then wait for ever, so its future is polled.
    """
    future = cast("Any", observation)._jo.future()  # noqa: SLF001 - no public way
    while not future.isCompleted():
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_S)
    return int(observation.get["rows"])
