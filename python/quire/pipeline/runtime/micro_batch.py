"""
One batch of a pipeline: its steps in order, its sinks, then the state for the next batch.

A step with rules is computed once, cached, and counted in one job; other steps are counted while
the sinks read them. No sink is written before all rules are counted, so a batch that breaks a
`fail` rule writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import LongType, StructType

from quire.errors import PipelineError, StepError
from quire.pipeline.failures import named
from quire.pipeline.run_report.row_counts import Counted, Tally
from quire.pipeline.runtime.event_order import LAST, MARK, RELEASED, EventOrder
from quire.pipeline.runtime.expectations import passed, rejected, tagged, tallies
from quire.pipeline.runtime.input_tables import mixes_topics
from quire.pipeline.runtime.sinks.batch_writer import BatchWriter
from quire.pipeline.runtime.state import COMPACT_EVERY, HELD, State
from quire.pipeline.runtime.transforms import transformed
from quire.pipeline.spec.parts import DUPLICATE, LATE, Pipeline, Source, Step

Watch = Callable[[str], None]


@dataclass(slots=True)
class Batch:
    """
    A batch being computed.

    Attributes:
        pipeline: The pipeline.
        number: The batch's number.
        run: The id of the run that computes it.
        state: What earlier batches saved; None if everything is recomputed.
        writers: The sinks, in the file's order.
        quarantine: Where rows in quarantine go.
        tally: Where rows are counted.
        watch: Called with the name of each part that is done.
        before_writing: Called once the steps are computed.

    """

    pipeline: Pipeline
    number: int
    run: str
    state: State | None
    writers: Sequence[BatchWriter]
    quarantine: BatchWriter
    tally: Tally
    watch: Watch
    before_writing: Callable[[], None] = lambda: None
    _frames: dict[str, DataFrame] = field(default_factory=dict[str, DataFrame])
    _rejected: list[DataFrame] = field(default_factory=list[DataFrame])
    _kept: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    _persisted: list[DataFrame] = field(default_factory=list[DataFrame])

    def run_all(self, spark: SparkSession, sources: Mapping[str, DataFrame]) -> None:
        """
        Compute the batch from the rows of its sources, and write it.

        Raises:
            PipelineError: A step or a sink failed, or a rule whose action is `fail` was broken.

        """
        try:
            if self.state is not None:
                self.state.prune(self.number)
            for source in self.pipeline.sources:
                self._source(source, sources[source.name])
            for step in self.pipeline.steps:
                self._step(spark, step)
            self.before_writing()
            self._write()
            for keep in self._kept:
                keep()
            self.watch("state")
        finally:
            for frame in self._persisted:
                frame.unpersist()

    def _source(self, source: Source, frame: DataFrame) -> None:
        with self._named(source.name, f"source {source.name}", source.line):
            checks = source.checks()
            self._frames[source.name] = self._checked(checks, frame, is_counted=source.stream)
        self.watch(f"source {source.name}")

    def _step(self, spark: SparkSession, step: Step) -> None:
        with self._named(step.name, f"step {step.name}", step.line):
            inputs = {name: self._frames[name] for name in step.inputs}
            frame = transformed(spark, self.pipeline, step, inputs)
            self._check_order(step, frame)
            self._frames[step.name] = self._checked(step, frame, is_counted=True)
        self.watch(f"step {step.name}")

    def _check_order(self, step: Step, frame: DataFrame) -> None:
        """
        Check that the columns of a step order its rows.

        Raises:
            StepError: The rows are those of several queues, and the topic is missing.

        """
        has_order = step.watermark is not None or step.deduplicate is not None
        columns = step.order or frame.columns
        if not has_order or "_index" not in columns or "_topic" in columns:
            return
        if mixes_topics(self.pipeline, step.name):
            raise StepError(
                "indexes of different queues cannot be compared: keep the column _topic, or name"
                " other columns under order:"
            )

    @contextmanager
    def _named(self, name: str, part: str, line: int) -> Generator[None]:
        """Time a part, and raise its errors with its name."""
        started = time.monotonic()
        try:
            with named(self.pipeline, part, line):
                yield
        finally:
            self.tally.took(name, time.monotonic() - started)

    def _checked(self, step: Step, frame: DataFrame, *, is_counted: bool) -> DataFrame:
        """Return the rows of a step that pass; count all, and collect those for quarantine."""
        if not step.is_checked:
            several = self.pipeline.uses(step.name) > 1
            if is_counted:
                frame = self.tally.observed(step.name, frame)
            return self._persist(frame) if several else frame
        frame = tagged(frame, step.rules)
        event_order = None
        if step.watermark is not None or step.deduplicate is not None:
            event_order = EventOrder.of(step, frame.columns)
            frame = self._tag_events(step, event_order, frame)
        frame = self._persist(frame)
        counted = self._count(step, frame)
        if counted.quarantined or self.state is None:  # with mode: full, an empty one replaces it
            self._rejected.append(
                rejected(
                    frame,
                    pipeline=self.pipeline.name,
                    run=self.run,
                    batch=self.number,
                    step=step.name,
                )
            )
        out = passed(frame)
        return out if event_order is None else self._handed_on(step, event_order, frame, out)

    def _persist(self, frame: DataFrame) -> DataFrame:
        frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._persisted.append(frame)
        return frame

    def _count(self, step: Step, frame: DataFrame) -> Counted:
        """
        Count the rows of a step by their rules.

        Raises:
            PipelineError: A rule whose action is `fail` was broken.

        """
        rules = [rule.name for rule in step.rules]
        rules += [LATE] if step.watermark is not None else []
        rules += [DUPLICATE] if step.deduplicate is not None else []
        found = tallies(frame, rules)
        broken = {name: found[f"rule {name}"] for name in rules}
        counted = Counted(found["rows"], found["quarantine"], found["drop"], broken)
        self.tally.checked(step.name, counted)
        if found["fail"]:
            names = ", ".join(f"{name} ({count} rows)" for name, count in broken.items() if count)
            raise PipelineError(
                f"{self.pipeline.file}:{step.line}: rule broken, nothing was written: "
                f"pipeline={self.pipeline.name} step={step.name} rules={names}"
            )
        return counted

    def _tag_events(self, step: Step, event_order: EventOrder, frame: DataFrame) -> DataFrame:
        """Tag late rows and duplicates, given what earlier batches saved."""
        marks = self._marks(step, event_order, frame)
        released_us = event_order.released_us(marks) if step.window_us is not None else None
        frame = event_order.tag_late(frame, marks, released_us)
        keys = None
        if self.state is not None and step.deduplicate is not None:
            what = f"{step.name}-keys"
            schema = event_order.keys(frame, self.number).schema
            keys = self.state.load(frame.sparkSession, what, self.number, schema)
        return event_order.tag_duplicates(frame, keys)

    def _marks(self, step: Step, event_order: EventOrder, frame: DataFrame) -> DataFrame | None:
        """Return the watermarks that earlier batches saved."""
        if self.state is None or step.watermark is None:
            return None
        fields = frame.select(*event_order.by).schema.fields if event_order.by else []
        schema = StructType([*fields]).add(MARK, LongType()).add(RELEASED, LongType())
        return self.state.load(frame.sparkSession, f"{step.name}-marks", self.number, schema)

    def _handed_on(
        self, step: Step, event_order: EventOrder, frame: DataFrame, out: DataFrame
    ) -> DataFrame:
        """Return the rows whose window is complete; save the others, watermarks and keys."""
        if self.state is None:
            return out
        state, number, spark = self.state, self.number, frame.sparkSession
        marks = self._marks(step, event_order, frame)
        after = marks
        if step.watermark is not None:
            released_us = event_order.released_us(marks)
            since = released_us if released_us is not None else -(2**62)
            after = self._persist(event_order.marks(frame, marks, since))
            self._keep(after, f"{step.name}-marks")
        if step.deduplicate is not None:
            self._keep_keys(step, event_order, frame, after)
        if step.window_us is None:
            return out
        held = state.load(spark, step.name + HELD, number, out.schema)
        waiting = self._persist(out if held is None else held.unionByName(out))
        is_complete = event_order.is_complete(event_order.released_us(after))
        row = waiting.agg(F.count_if(is_complete), F.count_if(~is_complete)).head()
        self.tally.held(step.name, out=int(row[0]) if row else 0, held=int(row[1]) if row else 0)
        self._keep(waiting.where(~is_complete), step.name + HELD)
        return waiting.where(is_complete)

    def _keep(self, frame: DataFrame, what: str, *, full: bool = True) -> None:
        """Save a frame once the sinks are written."""
        state = self.state
        if state is not None:
            self._kept.append(lambda: state.save(frame, what, self.number, full=full))

    def _keep_keys(
        self, step: Step, event_order: EventOrder, frame: DataFrame, marks: DataFrame | None
    ) -> None:
        """Save the batch's keys; every so often all keys, without those that have expired."""
        what = f"{step.name}-keys"
        keys = event_order.keys(frame, self.number)
        if self.state is None or self.number % COMPACT_EVERY:
            self._keep(keys, what, full=False)
            return
        before = self.state.load(frame.sparkSession, what, self.number, keys.schema)
        if before is not None:
            keys = event_order.last(before.unionByName(keys))
        horizon_us = event_order.horizon_us(marks)
        if horizon_us is not None:
            keys = keys.where((F.col(LAST) >= horizon_us) | F.col(LAST).isNull())
        self._keep(keys, what)

    def _write(self) -> None:
        for writer in self.writers:
            sink = writer.sink
            part = f"sink {sink.format} of {sink.step}"
            with self._named(part, f"{part} to {sink.destination}", sink.line):
                frame = self._frames[sink.step]
                if order := writer.order(frame):
                    # Sorting reads its input twice; rows must be counted once.
                    frame = self._persist(frame).orderBy(*order)
                frame = self.tally.observed(part, frame)
                is_new = writer.write(frame, self.number)
                self.tally.wrote(sink, part, is_new=is_new)
            self.watch(f"sink {sink.destination}")
        if self._rejected:
            sink = self.quarantine.sink
            with self._named("quarantine", f"quarantine to {sink.destination}", sink.line):
                self.quarantine.write(reduce(DataFrame.unionByName, self._rejected), self.number)
            self.watch("quarantine")
