"""Running a pipeline: its session, its stream of batches, and its report."""

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
from quire._common.durable import PRIVATE, SafeFolder
from quire.errors import PipelineError, UnsafePathError
from quire.pipeline.failures import failed, named
from quire.pipeline.run_report.facts import BatchReport, Report, SourceReport
from quire.pipeline.run_report.row_counts import Tally
from quire.pipeline.run_report.spark_progress import KEPT, Progress
from quire.pipeline.runtime.input_tables import merge, read_all, read_stream, split, streams
from quire.pipeline.runtime.micro_batch import Batch, Watch
from quire.pipeline.runtime.sinks.batch_writer import BatchWriter, check_sinks
from quire.pipeline.runtime.state import State
from quire.pipeline.runtime.triggers import Stop, until_finished
from quire.pipeline.spec.parts import Pipeline, Sink, TableSink

_REPORTED_EVERY_S: Final = 2.0

_log = logging.getLogger("quire")


def run(  # noqa: PLR0913 - by keyword
    pipeline: Pipeline,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    stop: Stop | None = None,
    watch: Watch = lambda _: None,
    on_report: Callable[[Report], None] = lambda _: None,
) -> Report:
    """
    Run a pipeline on its schedule, and return the report, even if the run failed.

    Args:
        pipeline: The pipeline, from :func:`quire.pipeline.load`.
        spark: The session to run in; None: create one, and stop it at the end.
        master: The address of a cluster for a new session; None: this machine.
        stop: Stops the run after the current batch.
        watch: Called with the name of each part that is done, such as ``step clean``.
        on_report: Called with the report so far, after new batches and at most every two seconds.
            Exceptions that it raises are logged, and the run continues.

    Raises:
        PipelineError: The pipeline is running already, or a package is missing.

    """
    check_sinks(pipeline)
    state = State(pipeline.state)
    with state.opened():
        session = spark or _session(pipeline, master)
        try:
            return _Run(pipeline, state, session, stop or Stop(), watch, on_report).run()
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
    on_report: Callable[[Report], None]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    batches: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=KEPT))
    progress: Progress = field(default_factory=Progress)
    tally: Tally = field(init=False)
    run_id: str = field(init=False)
    error: PipelineError | None = None
    has_new_batches: bool = False
    reported_at: float = 0.0
    counting: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.tally = Tally(self.pipeline)
        self.run_id = f"{self.started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"

    def run(self) -> Report:
        """Run to the end, and save the report."""
        try:
            if self.pipeline.is_full:
                self._run_whole()
            else:
                self._run_stream()
        except PipelineError as error:
            self.error = self.error or error  # a batch's own error says more than Spark's
        self._refresh_tables()
        report = self._report()
        try:
            self.state.keep_report(self.run_id, report.to_json())
        except (OSError, UnsafePathError) as error:
            _log.warning("the report of the run cannot be saved: %s", error)
        return report

    def _publish_report(self) -> None:
        """Report new batches; they are computed by another thread, which does not wait."""
        if not self.has_new_batches or time.monotonic() < self.reported_at + _REPORTED_EVERY_S:
            return
        self.has_new_batches = False
        try:
            self.on_report(self._report(is_over=False))
        except Exception:  # noqa: BLE001 - whatever drawing or a disk raises
            _log.warning("the report of the run failed; the run continues", exc_info=True)
        self.reported_at = time.monotonic()

    def _refresh_tables(self) -> None:
        """Refresh the session's view of tables, which batches write in a session of their own."""
        for sink in self.pipeline.sinks:
            if isinstance(sink, TableSink) and self.spark.catalog.tableExists(sink.table):
                self.spark.catalog.refreshTable(sink.table)

    def _run_whole(self) -> None:
        """Compute everything from all rows, and replace the content of the sinks."""
        identity = f"{self.pipeline.name}-{self.run_id}"
        frames: dict[str, DataFrame] = {}
        for source in self.pipeline.sources:
            with named(self.pipeline, f"source {source.name}", source.line):
                frames[source.name] = read_all(self.spark, source)
        self._compute(self.spark, frames, 0, identity, None)

    def _run_stream(self) -> None:
        schedule = self.pipeline.schedule
        self.state.check_not_full()
        self.state.belongs_to(streams(self.pipeline))
        windows = [it.name for it in self.pipeline.steps if it.window is not None]
        with named(self.pipeline, "the state", 1):
            self.state.check_held(self.spark, windows)
        parts: list[tuple[str, DataFrame]] = []
        for source in streams(self.pipeline):
            with named(self.pipeline, f"source {source.name}", source.line):
                frame = read_stream(self.spark, source, limited=schedule.kind != "once")
            parts.append((source.name, frame))
        writer = merge(parts).writeStream.foreachBatch(self._batch)
        writer = writer.queryName(f"quire pipeline {self.pipeline.name}")
        writer = writer.option("checkpointLocation", str(self.state.checkpoint))
        if schedule.every_us is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{schedule.every_us // 1000} milliseconds")
        with named(self.pipeline, "the stream", 1):
            query = writer.start()
            until_finished(query, self.stop, self.progress.add, self._publish_report)

    def _batch(self, batch: DataFrame, number: int) -> None:
        """Compute a batch of the stream, in Spark's thread."""
        with self.stop.held():
            spark = batch.sparkSession
            names = [source.name for source in streams(self.pipeline)]
            several = len(names) > 1
            batch = batch.persist() if several else batch
            try:
                self.state.sync_offsets()
                frames = split(batch, names)
                for source in self.pipeline.sources:
                    if not source.stream:
                        frames[source.name] = read_all(spark, source)
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
        self.tally.begin()
        started, clock = datetime.now(UTC), time.monotonic()
        self.watch(f"batch {number}")
        self._new_batch(number, identity, state).run_all(spark, frames)
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
        self.has_new_batches = True

    def _new_batch(self, number: int, identity: str, state: State | None) -> Batch:
        pipeline = self.pipeline
        former = rf"{pipeline.name}-\d{{8}}T\d{{6}}Z-[0-9a-f]{{6}}|{self.state.identity}"

        def writer(sink: Sink, name: str) -> BatchWriter:
            return BatchWriter(sink, name, identity, former=former, replace=state is None)

        return Batch(
            pipeline=pipeline,
            number=number,
            run=self.run_id,
            state=state,
            writers=[writer(sink, sink.step) for sink in pipeline.sinks],
            quarantine=writer(pipeline.quarantine, "quarantine"),
            tally=self.tally,
            watch=self.watch,
            before_writing=self._before_writing if state is None else lambda: None,
        )

    def _before_writing(self) -> None:
        """Have later runs know that the outputs hold everything."""
        self.state.note_full(self.run_id)

    def _report(self, *, is_over: bool = True) -> Report:
        """Return the report so far."""
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
    from quire.pipeline.run_report.as_text import shown
    from quire.pipeline.run_report.html_page import page_of

    with SafeFolder.at(folder, PRIVATE) as to:
        to.replace("report.json", report.to_json().encode())
        to.replace("report.txt", shown(report, width=120).encode())
        if page:
            to.replace("report.html", page_of(report).html().encode())
