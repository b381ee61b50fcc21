"""
The report of a pipeline run; `docs/pipelines.md` documents its JSON form.

Rows are counted over all batches of the run; times are UTC, durations seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, Field, PlainSerializer, ValidationError

VERSION: Final = 1


def _timestamp(time: datetime) -> str:
    text = time.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# Names of files may have bytes that are not UTF-8, which JSON cannot hold.
Text = Annotated[str, AfterValidator(_encodable)]
Time = Annotated[datetime, PlainSerializer(_timestamp, when_used="json")]
Seconds = Annotated[float, PlainSerializer(lambda it: round(it, 6), when_used="json")]


class RuleReport(BaseModel, frozen=True, extra="forbid"):
    """
    How many rows broke a rule of a step, and where they went.

    Attributes:
        name: The rule's name; `malformed`, `late` or `duplicate` for rules that are not SQL.
        condition: What each row has to satisfy, in SQL or in words.
        action: `quarantine`, `drop`, `fail` or `warn`.
        broken: How many rows broke it. A row that breaks two rules counts for both.
        destination: Where they were written; None if they were dropped or kept.

    """

    name: str
    condition: str
    action: str
    broken: int
    destination: Text | None = None


class StepReport(BaseModel, frozen=True, extra="forbid"):
    """
    The rows of a source or step.

    Attributes:
        name: Its name in the file.
        kind: `source`, `lookup` (read in full for each batch), `sql`, `python`, or `rules`.
        inputs: The names of the steps and sources it reads.
        rows_in: Rows of its inputs; None if they were not counted (lookups).
        rows_out: Rows that it passed on.
        quarantined: Rows that went to quarantine, each counted once.
        dropped: Rows that were dropped by rules whose action is `drop`.
        held: Rows still waiting, at the end of the run, for their window to be complete.
        duration_s: How long its own jobs took; work done while a sink writes counts for the sink.
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
    duration_s: Seconds = 0.0
    rules: tuple[RuleReport, ...] = ()


class SourceReport(BaseModel, frozen=True, extra="forbid"):
    """
    How far a source was read.

    Attributes:
        name: Its name in the file.
        format: `quire`, `parquet`, `csv`, `json` or `table`.
        path: Its path, or the name of its table.
        rows: Rows read in this run; None for a lookup.
        start: The offsets before the run, by topic for queues; None if there are none.
        end: The offsets after it.
        lag: Messages still unread when the run ended; None if unknown.

    """

    name: str
    format: str
    path: Text
    rows: int | None = None
    start: Mapping[str, Any] | None = None
    end: Mapping[str, Any] | None = None
    lag: int | None = None


class SinkReport(BaseModel, frozen=True, extra="forbid"):
    """
    What was written to a sink.

    Attributes:
        step: The step whose rows it takes.
        format: `parquet`, `delta`, `quire` or `table`.
        destination: A path, or the name of a table.
        rows: Rows written in this run; None if Spark did not report the rows of a batch.
        batches: Batches written in this run.
        repeated: Batches that a killed run had written already; nothing was added.
        duration_s: How long writing took, including the steps computed on the way.

    """

    step: str
    format: str
    destination: Text
    rows: int | None = 0
    batches: int = 0
    repeated: int = 0
    duration_s: Seconds = 0.0


class BatchReport(BaseModel, frozen=True, extra="forbid"):
    """
    One batch of a run, for plots over time.

    Attributes:
        batch: Its number; numbers continue from run to run.
        started: When its first job began.
        duration_s: How long it took.
        rows_in: Rows of all sources; None if Spark did not report them, as for `rows_out`.
        rows_out: Rows of all sinks.
        quarantined: Rows that went to quarantine.
        rows_per_s: Rows of the sources per second of the batch.
        lag: Unread messages of all sources when it was planned; None if unknown.
        durations: Seconds by phase, as Spark reports them for a trigger, such as `addBatch`.

    """

    batch: int
    started: Time
    duration_s: Seconds
    rows_in: int | None = 0
    rows_out: int | None = 0
    quarantined: int = 0
    rows_per_s: Seconds = 0.0
    lag: int | None = None
    durations: Mapping[str, Seconds] = Field(default_factory=dict[str, float])


class Report(BaseModel, frozen=True, extra="forbid"):
    """
    One run of a pipeline.

    Attributes:
        version: The version of the JSON form.
        pipeline: The pipeline's name.
        run: The run's id: when it began, and a few random letters.
        file: The file that defines the pipeline.
        schedule: `once`, `available-now`, or `every ...`.
        mode: `incremental` or `full`.
        outcome: `succeeded`, `failed`, `stopped` (by a signal, after a whole batch), or `running`.
        started: When the run began.
        finished: When it ended.
        sources: How far each source was read.
        steps: Sources and steps in the order they are computed.
        sinks: What was written.
        batches: The run's last 500 batches, oldest first; the other fields count all.
        quarantine: Where quarantined rows are; None if no rule has the action `quarantine`.
        errors: The errors of the run, a line each.

    >>> from datetime import UTC, datetime
    >>> from quire.pipeline import Report
    >>> now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    >>> report = Report(
    ...     pipeline="trades", run="20260131T120000Z-4f2a9c", file="trades.yaml", schedule="once",
    ...     mode="full", outcome="succeeded", started=now, finished=now,
    ... )
    >>> Report.from_json(report.to_json()) == report
    True

    """

    version: Literal[1] = VERSION
    pipeline: str
    run: str
    file: Text
    schedule: str
    mode: str
    outcome: str
    started: Time
    finished: Time
    sources: tuple[SourceReport, ...] = ()
    steps: tuple[StepReport, ...] = ()
    sinks: tuple[SinkReport, ...] = ()
    batches: tuple[BatchReport, ...] = ()
    quarantine: Text | None = None
    errors: tuple[Text, ...] = ()

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
        """Return the report as indented JSON; the inverse of :meth:`from_json`."""
        return self.model_dump_json(indent=2) + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Report:
        """
        Return the report that :meth:`to_json` wrote.

        Raises:
            ValueError: The text is not a report, or is a report of another version.

        """
        version = _version(json.loads(text))
        if version != VERSION:
            raise ValueError(
                f"not a report of a pipeline run: expected version={VERSION} found={version!r}"
            )
        try:
            return Report.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ValueError(
                f"not a report of a pipeline run: {where}: {first['msg'].lower()}"
                f" found={first['input']!r:.60}"
            ) from None

    @staticmethod
    def read(path: str | Path) -> Report:
        """Return the report in a file."""
        return Report.from_json(Path(path).read_bytes())


def _version(value: Any) -> object:  # noqa: ANN401 - any JSON
    return value.get("version") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
