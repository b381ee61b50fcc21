"""Batch reads: the messages between two offsets that the queues had when the read was planned."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import quire
from quire.errors import CorruptError
from quire.spark.read import row_plan
from quire.spark.read.missing_fields import warn_of_missing_fields
from quire.spark.read.offsets import EARLIEST, Bound, resolved
from quire.spark.read.partitions import (
    Partition,
    TopicRange,
    check_start,
    partitions_of,
    topic_range,
)
from quire.spark.read.row_plan import RowPlan
from quire.spark.source_options import ReadOptions, refuse
from quire.spark.topics import open_queue, selected_topics, topic_in_errors

_log = logging.getLogger("quire.spark")


class BatchReader(DataSourceReader):
    """
    Plans a batch query, and reads its shares.

    It accepts no filters: Spark 4.3 applies the filters of one query to every other query of the
    same frame. See ``docs/spark-pushdown-report.md``.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Plan the rows; files are opened by the tasks."""
        refuse_limits(options)
        self._plan = RowPlan.of(schema, options)

    def partitions(self) -> list[Partition]:
        """Divide the messages into shares of about equal size; see :func:`planned`."""
        options = self._plan.options
        spans = planned(options)
        warn_of_missing_fields(spans, self._plan)
        return partitions_of(
            spans, options.records_per_partition, options.min_partitions, options.parallelism
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one share; see :func:`quire.spark.read.row_plan.read`."""
        return row_plan.read(partition, self._plan)


def refuse_limits(options: ReadOptions) -> None:
    """
    Refuse options that limit the batches of a stream.

    Raises:
        OptionsError: An option that limits a stream's batches was given.

    """
    names = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
    refuse(
        [
            f"{name} is only for streams: limit a batch read with endingOffsets"
            for name in names
            if name.lower() in options.given
        ]
    )


def planned(options: ReadOptions) -> list[TopicRange]:
    """
    Return the messages that a batch query reads, topic by topic.

    Raises:
        OptionsError: An option names a topic that does not exist.
        IndexOutOfRangeError: The messages at the start were deleted.

    """
    problems: list[str] = []
    topics = selected_topics(options.path, options, problems.append)
    options.starting.check(topics, "startingOffsets", problems.append)
    options.ending.check(topics, "endingOffsets", problems.append)
    refuse(problems)
    read = _span if options.fail_on_data_loss else _readable_span
    return [read(path, topic, options) for topic, path in topics.items()]


def _span(path: str, topic: str, options: ReadOptions) -> TopicRange:
    with topic_in_errors(topic), open_queue(path, options) as queue:
        start = resolved(queue, topic, options.starting, options.time_field)
        end = resolved(queue, topic, options.ending, options.time_field, is_end=True)
        if options.starting.time_ns is None:
            check_start(queue, topic, start)
        return topic_range(queue, topic, start, end)


def _readable_span(path: str, topic: str, options: ReadOptions) -> TopicRange:
    """Return the readable messages, without damaged cycles and topics."""

    def skipped(error: CorruptError) -> None:
        _log.warning("damaged messages are skipped: %s topic=%s", error, topic)

    try:
        with (
            topic_in_errors(topic),
            open_queue(path, options) as queue,
        ):
            start, end = (
                _resolved_anyhow(queue, topic, bound, options, is_end=is_end)
                for bound, is_end in ((options.starting, False), (options.ending, True))
            )
            return topic_range(queue, topic, start, end, skipped)
    except CorruptError as error:
        skipped(error)
        return TopicRange(topic, path, ())


def _resolved_anyhow(
    queue: quire.Queue, topic: str, bound: Bound, options: ReadOptions, *, is_end: bool
) -> int:
    """Resolve a bound; ``earliest`` and ``latest`` even if files are damaged."""
    try:
        return resolved(queue, topic, bound, options.time_field, is_end=is_end)
    except CorruptError:
        if bound.time_ns is not None or isinstance(bound.of(topic), int):
            raise
        return 0 if bound.of(topic) == EARLIEST else 2**63 - 1
