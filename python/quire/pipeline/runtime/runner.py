"""Running a pipeline: a session, its stream of batches, and the report at the end."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

import quire.spark
from quire._durable import PRIVATE, SafeFolder
from quire.errors import PipelineError, UnsafePathError
from quire.pipeline.errors import failed, named
from quire.pipeline.report.counts import Tally
from quire.pipeline.report.model import BatchReport, Report, SourceReport
from quire.pipeline.report.progress import KEPT, Progress
from quire.pipeline.runtime.batch import Batch, Watch
from quire.pipeline.runtime.sinks.writer import BatchWriter, check_sinks
from quire.pipeline.runtime.sources import apart, followed, streams, together, whole
from quire.pipeline.runtime.state import State
from quire.pipeline.runtime.triggers import Stop, until_finished
from quire.pipeline.spec.model import Pipeline, TableSink

_TOLD_EVERY_S: Final = 2.0

_log = logging.getLogger("quire")


def run(  # noqa: PLR0913 - by keyword
    pipeline: Pipeline,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    stop: Stop | None = None,
    watch: Watch = lambda _: None,
    told: Callable[[Report], None] = lambda _: None,
) -> Report:
    """
    Run a pipeline as its schedule says, and return the report, also of a run that failed.

    Args:
        pipeline: What :func:`quire.pipeline.load` returned.
        spark: A session to run in; None makes one, and stops it at the end.
        master: The address of a cluster for a session that is made; None is this machine.
        stop: Ends a run that goes on until it is stopped, after the batch at hand.
        watch: Called with a few words for each thing that was done, such as ``step clean``.
        told: Called with the report so far while a run goes on: where batches are new, at most
            every two seconds. What it raises is logged, and the run goes on.

    Raises:
        PipelineError: It cannot begin: it is running, or a package is missing.

    """
    check_sinks(pipeline)
    state = State(pipeline.state)
    with state.opened():
        session = spark or _session(pipeline, master)
        try:
            return _Run(pipeline, state, session, stop or Stop(), watch, told).run()
        finally:
            if spark is None:
                session.stop()


def _session(pipeline: Pipeline, master: str | None) -> SparkSession:
    settings = dict(pipeline.settings)
    return quire.spark.session(f"quire: {pipeline.name}", master=master, settings=settings)


@dataclass(slots=True)
class _Run:
    """One run; see :func:`run`."""

    pipeline: Pipeline
    state: State
    spark: SparkSession
    stop: Stop
    watch: Watch
    told: Callable[[Report], None]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    batches: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=KEPT))
    progress: Progress = field(default_factory=Progress)
    tally: Tally = field(init=False)
    run_id: str = field(init=False)
    error: PipelineError | None = None
    has_news: bool = False
    told_at: float = 0.0
    counting: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.tally = Tally(self.pipeline)
        self.run_id = f"{self.started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

    def run(self) -> Report:
        """Run to the end, and keep the report."""
        try:
            if self.pipeline.is_full:
                self._run_whole()
            else:
                self._run_stream()
        except PipelineError as error:
            self.error = self.error or error  # of a batch: Spark told it in its own words
        self._refresh_tables()
        report = self._report()
        try:
            self.state.keep_report(self.run_id, report.to_json())
        except (OSError, UnsafePathError) as error:
            _log.warning("the run's report cannot be kept: %s", error)
        return report

    def _tell(self) -> None:
        """Tell what is new: the stream's batches are another thread's, and do not wait for it."""
        if not self.has_news or time.monotonic() < self.told_at + _TOLD_EVERY_S:
            return
        self.has_news = False
        try:
            self.told(self._report(is_over=False))
        except Exception:  # noqa: BLE001 - whatever drawing or a disk raises
            _log.warning("the run goes on, but its report failed", exc_info=True)
        self.told_at = time.monotonic()

    def _refresh_tables(self) -> None:
        """Let the session see what was added to tables: batches have a session of their own."""
        for sink in self.pipeline.sinks:
            if isinstance(sink, TableSink) and self.spark.catalog.tableExists(sink.table):
                self.spark.catalog.refreshTable(sink.table)

    def _run_whole(self) -> None:
        """Compute everything from everything, and replace what the sinks have."""
        identity = f"{self.pipeline.name}-{self.run_id}"
        frames: dict[str, DataFrame] = {}
        for source in self.pipeline.sources:
            with named(self.pipeline, f"source {source.name}", source.line):
                frames[source.name] = whole(self.spark, source)
        self._compute(self.spark, frames, 0, identity, None)

    def _run_stream(self) -> None:
        schedule = self.pipeline.schedule
        self.state.belongs_to(streams(self.pipeline))
        parts: list[tuple[str, DataFrame]] = []
        for source in streams(self.pipeline):
            with named(self.pipeline, f"source {source.name}", source.line):
                frame = followed(self.spark, source, limited=schedule.kind != "once")
            parts.append((source.name, frame))
        writer = together(parts).writeStream.foreachBatch(self._batch)
        writer = writer.queryName(f"quire pipeline {self.pipeline.name}")
        writer = writer.option("checkpointLocation", str(self.state.checkpoint))
        if schedule.every_us is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{schedule.every_us // 1000} milliseconds")
        with named(self.pipeline, "the stream", 1):
            query = writer.start()
            until_finished(query, self.stop, self.progress.add, self._tell)

    def _batch(self, batch: DataFrame, number: int) -> None:
        """Compute a batch of the stream: Spark's thread calls it."""
        with self.stop.held():
            spark = batch.sparkSession
            names = [source.name for source in streams(self.pipeline)]
            several = len(names) > 1
            batch = batch.persist() if several else batch
            try:
                self.state.begin()
                frames = apart(batch, names)
                for source in self.pipeline.sources:
                    if not source.stream:
                        frames[source.name] = whole(spark, source)
                self._compute(spark, frames, number, self.state.identity, self.state)
            except Exception as error:
                self.error = failed(self.pipeline, "the batch", 1, error)
                raise
            finally:
                if several:
                    batch.unpersist()

    def _compute(
        self,
        spark: SparkSession,
        frames: dict[str, DataFrame],
        number: int,
        identity: str,
        state: State | None,
    ) -> None:
        """Compute and count one batch."""
        pipeline, replace = self.pipeline, state is None
        former = rf"{pipeline.name}-\d{{8}}T\d{{6}}Z-[0-9a-f]{{6}}|{self.state.identity}"
        self.tally.begin()
        started, clock = datetime.now(UTC), time.monotonic()
        self.watch(f"batch {number}")
        Batch(
            pipeline=pipeline,
            number=number,
            run=self.run_id,
            state=state,
            writers=[
                BatchWriter(sink, sink.step, identity, former=former, replace=replace)
                for sink in pipeline.sinks
            ],
            quarantine=BatchWriter(
                pipeline.quarantine, "quarantine", identity, former=former, replace=replace
            ),
            tally=self.tally,
            watch=self.watch,
        ).run_all(spark, frames)
        with self.counting:
            counts = self.tally.end()
            duration_s = time.monotonic() - clock
            self.batches.append(
                BatchReport(
                    batch=number,
                    started=started,
                    duration_s=duration_s,
                    rows_in=counts.rows_in,
                    rows_out=counts.rows_out,
                    quarantined=counts.quarantined,
                    rows_per_s=(counts.rows_in or 0) / duration_s if duration_s else 0.0,
                )
            )
        self.has_news = True

    def _report(self, *, is_over: bool = True) -> Report:
        """Return the report of what was done so far."""
        with self.counting:
            return self._reported(is_over=is_over)

    def _reported(self, *, is_over: bool) -> Report:
        pipeline = self.pipeline
        outcome = "failed" if self.error is not None else "succeeded"
        if outcome == "succeeded" and (self.stop.is_asked or not is_over):
            outcome = "stopped" if is_over else "running"
        return Report(
            pipeline=pipeline.name,
            run=self.run_id,
            file=str(pipeline.file),
            schedule=str(pipeline.schedule),
            mode="full" if pipeline.is_full else "incremental",
            outcome=outcome,
            started=self.started,
            finished=datetime.now(UTC),
            sources=self._sources(),
            steps=self.tally.steps(),
            sinks=self.tally.sinks(),
            batches=tuple(self.progress.completed(batch) for batch in self.batches),
            quarantine=pipeline.quarantine.destination if pipeline.has_quarantine else None,
            errors=() if self.error is None else (str(self.error),),
        )

    def _sources(self) -> tuple[SourceReport, ...]:
        numbers = {source.name: n for n, source in enumerate(streams(self.pipeline))}
        return tuple(
            SourceReport(
                name=source.name,
                format=source.format,
                path=source.path,
                rows=self.tally.read(source.name) if source.stream else None,
                **self._offsets(numbers.get(source.name)),
            )
            for source in self.pipeline.sources
        )

    def _offsets(self, number: int | None) -> dict[str, Any]:
        return {} if number is None else self.progress.offsets(number)


def write_report(report: Report, folder: Path, *, page: bool = True) -> None:
    """Write a report as JSON, as text and as a *page* of plots into a folder."""
    from quire.pipeline.report.page import page_of
    from quire.pipeline.report.text import shown

    with SafeFolder.at(folder, PRIVATE) as to:
        to.replace("report.json", report.to_json().encode())
        to.replace("report.txt", shown(report, width=120).encode())
        if page:
            to.replace("report.html", page_of(report).html().encode())
