"""Counts rows while a pipeline runs, and makes the report of it."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from quire.pipeline.report import RuleReport, SinkReport, StepReport
from quire.pipeline.spec import DUPLICATE, LATE, Action, Pipeline, Sink, Step

# What an observation counted is told by another thread of Spark's, soon after the job's end.
_TOLD_WITHIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Counted:
    """What one job counted of a step with rules."""

    rows: int
    quarantined: int
    dropped: int
    broken: Mapping[str, int]


@dataclass(slots=True)
class _Step:
    """Sums of a step over all batches."""

    out: int | None = None
    passed: int = 0  # in the batch at hand
    quarantined: int = 0
    dropped: int = 0
    held: int = 0
    duration_s: float = 0.0
    broken: dict[str, int] = field(default_factory=dict[str, int])


class Tally:
    """The counts of a run; those of the batch at hand count once it is done."""

    def __init__(self, pipeline: Pipeline) -> None:
        """Start at zero."""
        self._pipeline = pipeline
        self._followed = {source.name for source in pipeline.sources if source.stream}
        self._steps: dict[str, _Step] = {}
        self._sinks: dict[str, SinkReport] = {}
        self._observed: dict[str, Observation] = {}
        self.rows_in = 0
        self.rows_out = 0
        self.quarantined = 0

    def begin(self) -> None:
        """Begin a batch."""
        self._observed = {}
        self.rows_in = self.rows_out = self.quarantined = 0

    def observed(self, name: str, frame: DataFrame) -> DataFrame:
        """Return *frame*, whose rows are counted by the first job that reads it."""
        self._observed[name] = Observation()
        return frame.observe(self._observed[name], F.count(F.lit(1)).alias("rows"))

    def took(self, name: str, duration_s: float) -> None:
        """Add the time that a step or sink took."""
        self._of(name).duration_s += duration_s

    def checked(self, name: str, counted: Counted) -> None:
        """Add what was counted of a step with rules."""
        step = self._of(name)
        step.passed = counted.rows - counted.quarantined - counted.dropped
        step.out = (step.out or 0) + step.passed
        step.quarantined += counted.quarantined
        step.dropped += counted.dropped
        self.quarantined += counted.quarantined
        if name in self._followed:
            self.rows_in += counted.rows
        for rule, count in counted.broken.items():
            step.broken[rule] = step.broken.get(rule, 0) + count

    def held(self, name: str, *, out: int, held: int) -> None:
        """Correct what a step handed on: some rows wait, others need no longer wait."""
        step = self._of(name)
        step.out = (step.out or 0) - step.passed + out
        step.held = held

    def wrote(self, sink: Sink, part: str, *, is_new: bool) -> None:
        """Add a batch that a sink has."""
        rows = (_rows(self._observed.pop(part)) or 0) if is_new else 0
        self._observed.pop(part, None)
        self.rows_out += rows
        found = self._sinks.get(sink.destination) or _nothing(sink)
        self._sinks[sink.destination] = dataclasses.replace(
            found,
            rows=found.rows + rows,
            batches=found.batches + is_new,
            repeated=found.repeated + (not is_new),
        )

    def end(self) -> None:
        """End a batch: collect what was observed."""
        for name, observation in self._observed.items():
            rows = _rows(observation)
            if rows is None:
                continue
            step = self._of(name)
            step.out = (step.out or 0) + rows
            self.rows_in += rows if name in self._followed else 0
        self._observed = {}

    def _of(self, name: str) -> _Step:
        return self._steps.setdefault(name, _Step())

    def read(self, source: str) -> int | None:
        """Return how many rows of a source were read."""
        step = self._of(source)
        return None if step.out is None else step.out + step.quarantined + step.dropped

    def steps(self) -> tuple[StepReport, ...]:
        """Return sources and steps, as they are computed."""
        sources = tuple(
            self._report(
                Step(it.name, (), it.line, rules=it.rules), "source" if it.stream else "lookup"
            )
            for it in self._pipeline.sources
        )
        return sources + tuple(self._report(step, step.kind) for step in self._pipeline.steps)

    def sinks(self) -> tuple[SinkReport, ...]:
        """Return the sinks, in the file's order."""
        return tuple(
            dataclasses.replace(
                self._sinks.get(sink.destination) or _nothing(sink),
                duration_s=self._of(f"sink {sink.format} of {sink.step}").duration_s,
            )
            for sink in self._pipeline.sinks
        )

    def _report(self, step: Step, kind: str) -> StepReport:
        found = self._of(step.name)
        counted = [self._of(name).out for name in step.inputs]
        known = [rows for rows in counted if rows is not None]
        return StepReport(
            name=step.name,
            kind=kind,
            inputs=step.inputs,
            rows_in=sum(known) if known else None,
            rows_out=found.out,
            quarantined=found.quarantined,
            dropped=found.dropped,
            held=found.held,
            duration_s=found.duration_s,
            rules=tuple(
                self._rule(name, condition, action, found)
                for name, condition, action in _rules(step)
            ),
        )

    def _rule(self, name: str, condition: str, action: Action, found: _Step) -> RuleReport:
        destination = self._pipeline.quarantine.destination if action == "quarantine" else None
        return RuleReport(name, condition, action, found.broken.get(name, 0), destination)


def _nothing(sink: Sink) -> SinkReport:
    return SinkReport(sink.step, sink.format, sink.destination)


def _rules(step: Step) -> list[tuple[str, str, Action]]:
    """Return name, condition and action of each rule of a step, as a person reads them."""
    found: list[tuple[str, str, Action]] = [
        (rule.name, rule.condition, rule.action) for rule in step.rules
    ]
    if (mark := step.watermark) is not None:
        words = f"{mark.column} is not more than {mark.delay} before the latest in front"
        found.append((LATE, words, mark.action))
    if (rule := step.deduplicate) is not None:
        within = f" within {rule.within}" if rule.within else ""
        found.append((DUPLICATE, f"the first with its {', '.join(rule.by)}{within}", rule.action))
    return found


def _rows(observation: Observation) -> int | None:
    """Return what was counted; None if no job read the frame, or only a part of it was planned."""
    found: list[dict[str, Any]] = []
    # An observation whose frame was optimised away never tells: do not wait for it for ever.
    waiting = threading.Thread(target=lambda: found.append(observation.get), daemon=True)
    waiting.start()
    waiting.join(_TOLD_WITHIN_S)
    return int(found[0]["rows"]) if found else None
