"""
Streams: where each batch of ``readStream.format("quire")`` ends, and what its tasks read.

While a query runs, Spark keeps one process that plans its batches. Spark asks that process for the
end of the next batch, writes the end into the checkpoint, and then has the messages in between
read; after a crash, it reads the same messages again. An offset is a dict from topic to the index
of the next message, with sorted topics, so that equal offsets are equal texts; `checkpoints`
describes the complete form.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from quire.errors import CorruptError, DataLossError, NotAQueueError
from quire.remote.address import is_remote
from quire.spark.read import row_plan
from quire.spark.read.checkpoints import Expected, Offsets, joined, split
from quire.spark.read.missing_fields import warn_of_missing_fields
from quire.spark.read.offsets import resolved
from quire.spark.read.partitions import Partition, TopicRange, partitions_of
from quire.spark.read.rate_limits import split_limit
from quire.spark.read.read_limits import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from quire.spark.read.row_plan import RowPlan
from quire.spark.read.topic_tracker import Backlog, TopicTracker
from quire.spark.source_options import ReadOptions, refuse
from quire.spark.topics import ServedTopics, topic_in_errors, topics_of

# At most this many queues are open at once, to save file descriptors.
_OPEN_MAX: Final = 128

_log = logging.getLogger("quire.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """
    Plans the batches of a stream, and reads their shares.

    Raises:
        OptionsError: The options are for batch reads, or do not fit the schema.

    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Plan the rows; queues are opened when the first batch is planned."""
        ending = options.given & {"endingoffsets", "endingtimestamp"}
        refuse([f"a stream has no end, omit {name}" for name in sorted(ending)], of="stream")
        self._options = options
        self._plan = RowPlan.of(schema, options)
        self._followed: dict[str, TopicTracker] = {}
        self._target: Offsets | None = None
        self._newest: dict[str, dict[str, int]] | None = None
        self._turn = 0
        self._opened = 0
        self._reported: dict[str, int] = {}
        self._unreadable: set[str] = set()
        self._looked = False
        self._planned_at: float | None = None
        self._server = ServedTopics(options.path, options) if is_remote(options.path) else None

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """Return where a stream without a checkpoint starts."""
        options, topics = self._options, self._topics()
        problems = [
            f"no such topic in topics: topic={topic} known={', '.join(self.every_topic())}"
            for topic in options.topics or ()
            if topic not in topics
        ]
        options.starting.check(topics, "startingOffsets", problems.append)
        refuse(problems, of="stream")
        offsets: Offsets = {}
        for topic, path in topics.items():
            with topic_in_errors(topic), self._skipping(topic):
                queue = self._topic(topic, path).queue()
                offsets[topic] = resolved(queue, topic, options.starting, options.time_field)
        return offsets

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the option ``maxOffsetsPerTrigger``."""
        limit = self._options.max_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the query: the current end of each topic."""
        target: Offsets = {}
        for topic, path in self._topics().items():
            with topic_in_errors(topic), self._skipping(topic):
                target[topic] = self._topic(topic, path).end()
        self._target = target

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        """
        Return the end of the batch that begins at *start*.

        Raises:
            DataLossError: Messages of the batch were deleted and ``failOnDataLoss`` is not false.

        """
        offsets, seen = split(start)
        there = self._ahead(offsets, seen)
        wanted = there
        if self._target is not None:
            wanted = {
                topic: ahead.until(self._target.get(topic, 0)) for topic, ahead in there.items()
            }
        lags = {topic: ahead.count for topic, ahead in wanted.items()}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if self._waits(sum(lags.values())):
            most = 0
        counts = split_limit(lags, most, self._turn) if most != 0 else dict.fromkeys(lags, 0)
        self._turn += most or 0
        end = {topic: ahead.after(counts[topic]) for topic, ahead in wanted.items()}
        self._newest = {
            topic: {"index": ahead.end, "lag": ahead.count - counts[topic]}
            for topic, ahead in there.items()
        }
        # A new topic without messages is left out: it would lead to an empty batch.
        end = {topic: offset for topic, offset in end.items() if offset or topic in offsets}
        if end == offsets:
            return start
        expected = {topic: there[topic].expected(counts[topic]) for topic in end}
        return joined(end, self._marked(end, offsets, seen, expected))

    def _waits(self, available: int) -> bool:
        """Return whether to wait, because there are too few messages for a batch."""
        fewest, now = self._options.min_per_trigger, monotonic()
        if fewest is None or self._target is not None or not available:
            return False
        last, longest = self._planned_at, self._options.max_delay_us / 1_000_000
        if available < fewest and last is not None and now - last < longest:
            return True
        self._planned_at = now
        return False

    def _marked(
        self,
        end: Mapping[str, int],
        start: Mapping[str, int],
        seen: Mapping[str, Expected],
        expected: Mapping[str, Expected],
    ) -> dict[str, Expected]:
        """Add the marks of the messages before each end; an unchanged topic keeps its mark."""
        topics, found = self._topics(), dict[str, Expected]()
        for topic, it in expected.items():
            mark = seen.get(topic, Expected()).mark
            if topic in topics and end[topic] != start.get(topic):
                with topic_in_errors(topic), self._skipping(topic):
                    mark = self._topic(topic, topics[topic]).mark(end[topic])
            found[topic] = it._replace(mark=mark)
        return found

    def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:  # noqa: N802 - Spark's name
        """Return, for the query's progress, the newest offset and the lag of each topic."""
        return self._newest

    def partitions(self, start: Offsets, end: Offsets) -> list[Partition]:
        """
        Divide the messages between two offsets into shares.

        Raises:
            DataLossError: Messages of the batch were deleted and ``failOnDataLoss`` is not false.

        """
        topics = self.every_topic()  # not only followed ones: an earlier run may have planned it
        spans: list[TopicRange] = []
        (offsets, seen), (stops, planned) = split(start), split(end)
        for topic, stop in stops.items():
            offset = offsets.get(topic, 0)
            if offset == stop:
                continue
            path = topics.get(topic)
            before, then = seen.get(topic, Expected()), planned.get(topic, Expected())
            found = self._look(topic, path, offset, before, (stop, then))
            if path is not None:
                spans.append(self._topic(topic, path).range_of(found.runs))
        options = self._options
        if spans and not self._looked:
            self._looked = True
            warn_of_missing_fields(spans, self._plan)
        return partitions_of(
            spans, options.records_per_partition, options.min_partitions, options.parallelism
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one share; see :func:`quire.spark.read.row_plan.read`."""
        return row_plan.read(partition, self._plan)

    def stop(self) -> None:
        """Close the queues; they are opened again when needed."""
        for followed in self._followed.values():
            followed.close()
        self._opened = 0
        if self._server is not None:
            self._server.close()

    def _ahead(self, start: Mapping[str, int], seen: Mapping[str, Expected]) -> dict[str, Backlog]:
        """Return the backlog of each topic, whether it is new, known, or gone."""
        topics = self._topics()
        every = sorted({*start, *topics})
        chosen = self._options.chooses
        return {
            # A topic that is no longer selected keeps its offset.
            topic: Backlog(start[topic], ())
            if not chosen(topic)
            else self._look(
                topic, topics.get(topic), start.get(topic, 0), seen.get(topic, Expected())
            )
            for topic in every
        }

    def _look(
        self,
        topic: str,
        path: str | None,
        offset: int,
        before: Expected,
        stop: tuple[int, Expected] | None = None,
    ) -> Backlog:
        """Return the backlog from *offset*, up to *stop* if given: those messages must exist."""
        if path is None:
            found = Backlog(offset, (), is_lossy=True)
            if topic in self._followed:
                self._followed.pop(topic).close()
        else:
            followed, found = self._topic(topic, path), Backlog(offset, ())
            with topic_in_errors(topic), self._skipping(topic):
                if stop is None:
                    found = followed.ahead(offset, before.later, before.mark)
                else:
                    found = followed.between(offset, stop[0], before, stop[1])
        if found.is_lossy:
            self._warn_loss(topic, offset, found)
        return found

    def _topics(self) -> dict[str, str]:
        """Return the existing topics to follow."""
        found = self.every_topic()
        return {it: path for it, path in found.items() if self._options.chooses(it)}

    def every_topic(self) -> dict[str, str]:
        """Return the existing topics, followed or not."""
        try:
            if self._server is not None:
                return self._server.found()
            return topics_of(self._options.path)
        except (NotAQueueError, FileNotFoundError):  # all are gone, or none exists yet
            return {}

    def _topic(self, topic: str, path: str) -> TopicTracker:
        if topic not in self._followed:
            self._followed[topic] = TopicTracker(topic, path, self._options)
        followed = self._followed[topic]
        if not followed.is_open:
            if self._opened >= _OPEN_MAX:
                self.stop()
            self._opened += 1
        return followed

    @contextmanager
    def _skipping(self, topic: str) -> Generator[None]:
        """Skip a topic that cannot be read, if data loss is allowed."""
        try:
            yield
        except CorruptError as error:
            if self._options.fail_on_data_loss:
                raise
            if topic not in self._unreadable:
                self._unreadable.add(topic)
                _log.warning("a damaged topic is skipped: %s topic=%s", error, topic)
        else:
            self._unreadable.discard(topic)

    def _warn_loss(self, topic: str, offset: int, found: Backlog) -> None:
        first = f"{found.runs[0].first_index:#x}" if found.runs else "none"
        others = ", others are in their place" if found.is_replaced else ""
        problem = f"messages are gone{others}: topic={topic} expected={offset:#x} first={first}"
        hint = "failOnDataLoss=false continues with the next"
        if found.is_replaced and not found.runs:
            problem += ", the queue ends earlier"
            hint = "failOnDataLoss=false waits for later ones; a new checkpoint reads all of it"
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{problem} ({hint})")
        if self._reported.get(topic) != offset:
            self._reported[topic] = offset
            _log.warning("%s", problem)
