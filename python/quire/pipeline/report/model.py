"""
What a run of a pipeline did, as values: `docs/pipelines.md` documents the JSON form.

Rows are counted over the whole run, all of its batches together; times are UTC, durations seconds.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class RuleReport:
    """
    How often a rule of a step was broken, and where those rows went.

    Attributes:
        name: The rule's name; of rules that are not SQL: `malformed`, `late` or `duplicate`.
        condition: What was asked of each row, in SQL or in words.
        action: `quarantine`, `drop`, `fail` or `warn`.
        broken: How many rows broke it. A row that breaks two rules counts for both.
        destination: Where they were written; None when they were dropped or kept.

    """

    name: str
    condition: str
    action: str
    broken: int
    destination: str | None = None


@dataclass(frozen=True, slots=True)
class StepReport:
    """
    A source or a step: what came in, what went on, and what stayed behind.

    Attributes:
        name: Its name in the file.
        kind: `source`, `lookup` (read whole for each batch), `sql`, `python`, or `rules`.
        inputs: The names of the steps and sources it reads.
        rows_in: Rows of its inputs; None where they were not counted (lookups).
        rows_out: Rows that it handed on.
        quarantined: Rows that went to quarantine, each once.
        dropped: Rows that were left out by rules whose action is `drop`.
        held: Rows that wait, at the end of the run, until their window is complete.
        duration_s: How long its own jobs took; what is computed while a sink writes counts there.
        rules: Its rules, in the file's order.

    """

    name: str
    kind: str
    inputs: tuple[str, ...] = ()
    rows_in: int | None = None
    rows_out: int | None = None
    quarantined: int = 0
    dropped: int = 0
    held: int = 0
    duration_s: float = 0.0
    rules: tuple[RuleReport, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceReport:
    """
    How far a source was read.

    Attributes:
        name: Its name in the file.
        format: `quire`, `parquet`, `csv`, `json` or `table`.
        path: Where it is.
        rows: Rows read in this run; None for a lookup.
        start: The offsets before the run, by topic for queues; None where there are none.
        end: The offsets after it.
        lag: Messages that were there and not read when the run ended; None where unknown.

    """

    name: str
    format: str
    path: str
    rows: int | None = None
    start: Mapping[str, Any] | None = None
    end: Mapping[str, Any] | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class SinkReport:
    """
    What was written where.

    Attributes:
        step: The step whose rows it takes.
        format: `parquet`, `delta`, `quire` or `table`.
        destination: A path, or the name of a table.
        rows: Rows written in this run; None if Spark did not tell a batch's.
        batches: Batches written in this run.
        repeated: Batches that a run which was killed had written already: nothing was added.
        duration_s: How long writing took, with the steps that were computed on the way.

    """

    step: str
    format: str
    destination: str
    rows: int | None = 0
    batches: int = 0
    repeated: int = 0
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchReport:
    """
    One batch of a run, for plots over time.

    Attributes:
        batch: Its number; numbers go on from run to run.
        started: When its first job began.
        duration_s: How long it took.
        rows_in: Rows of all sources; None where Spark did not tell, as for `rows_out`.
        rows_out: Rows of all sinks.
        quarantined: Rows that went to quarantine.
        rows_per_s: Rows of the sources by the second of the batch.
        lag: Messages not read when it was planned, over all sources; None where unknown.
        durations: Seconds by part, as Spark tells them for a trigger, such as `addBatch`.

    """

    batch: int
    started: datetime
    duration_s: float
    rows_in: int | None = 0
    rows_out: int | None = 0
    quarantined: int = 0
    rows_per_s: float = 0.0
    lag: int | None = None
    durations: Mapping[str, float] = dataclasses.field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Report:
    """
    One run of a pipeline.

    Attributes:
        pipeline: Its name.
        run: The run's id: when it began, and a few letters.
        file: The file that defines it.
        schedule: `once`, `available-now`, or `every ...`.
        mode: `incremental` or `full`.
        outcome: `succeeded`, `failed`, `stopped` (by a signal, after a whole batch), or `running`.
        started: When the run began.
        finished: When it ended.
        sources: How far each was read.
        steps: Sources and steps in the order they are computed.
        sinks: What was written.
        batches: The run's last 500 batches, oldest first; the other fields count all.
        quarantine: Where rows in quarantine are; None when no rule sends any.
        errors: What went wrong, a line each.

    """

    pipeline: str
    run: str
    file: str
    schedule: str
    mode: str
    outcome: str
    started: datetime
    finished: datetime
    sources: tuple[SourceReport, ...] = ()
    steps: tuple[StepReport, ...] = ()
    sinks: tuple[SinkReport, ...] = ()
    batches: tuple[BatchReport, ...] = ()
    quarantine: str | None = None
    errors: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """How long the run took."""
        return (self.finished - self.started).total_seconds()

    @property
    def rows_in(self) -> int:
        """Rows read from all sources that are not lookups, as far as they were counted."""
        return sum(source.rows or 0 for source in self.sources)

    @property
    def rows_out(self) -> int:
        """Rows written to all sinks, as far as they were counted."""
        return sum(sink.rows or 0 for sink in self.sinks)

    @property
    def quarantined(self) -> int:
        """Rows that went to quarantine."""
        return sum(step.quarantined for step in self.steps)

    def to_json(self) -> str:
        """Return the report as JSON, indented; the inverse of :meth:`from_json`."""
        return json.dumps({"version": VERSION} | _plain(self), indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Report:
        """
        Return the report that :meth:`to_json` wrote.

        Raises:
            ValueError: The text is none, or one of another version.

        """
        value: Any = json.loads(text)
        found = cast("dict[str, Any]", value if isinstance(value, dict) else {})
        if found.pop("version", None) != VERSION:
            raise ValueError(f"not a report of a pipeline's run: expected version={VERSION}")
        fields: dict[str, Any] = {
            **found,
            "started": _time(found["started"]),
            "finished": _time(found["finished"]),
            "sources": tuple(SourceReport(**each) for each in found["sources"]),
            "steps": tuple(_step(each) for each in found["steps"]),
            "sinks": tuple(SinkReport(**each) for each in found["sinks"]),
            "batches": tuple(_batch(each) for each in found["batches"]),
            "errors": tuple(found["errors"]),
        }
        return Report(**fields)

    @staticmethod
    def read(path: str | Path) -> Report:
        """Return the report in a file."""
        return Report.from_json(Path(path).read_bytes())


def _step(found: dict[str, Any]) -> StepReport:
    rules = tuple(RuleReport(**rule) for rule in found["rules"])
    fields: dict[str, Any] = {**found, "inputs": tuple(found["inputs"]), "rules": rules}
    return StepReport(**fields)


def _batch(found: dict[str, Any]) -> BatchReport:
    fields: dict[str, Any] = {**found, "started": _time(found["started"])}
    return BatchReport(**fields)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any field of a report
    """Return a value as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {it.name: _plain(getattr(value, it.name)) for it in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return round(value, 6) if isinstance(value, float) else value
