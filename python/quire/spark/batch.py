"""Batch reads: every message between two offsets that the queues held when it was planned."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from quire.spark import rows
from quire.spark.filters import Limits
from quire.spark.offsets import resolved
from quire.spark.options import ReadOptions, refuse
from quire.spark.ranges import Share, Span, check_start, shares_of, span_between
from quire.spark.rows import RowPlan
from quire.spark.topics import naming, open_queue, topics_of

# Spark refuses a reader that takes filters unless a setting is on, and tells the reader of the
# setting by nothing but this module, which it imports to hand the filters over.
_PUSHES_FILTERS: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class BatchReader(DataSourceReader):
    """Plans a batch query, and reads its shares."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Plan the rows; files are opened by the tasks."""
        self._plan = RowPlan.of(schema, options)
        self._limits = Limits()

    def partitions(self) -> list[Share]:
        """
        Cut what is wanted into shares of about equal size.

        Raises:
            OptionsError: An option names a topic that is not there.
            IndexOutOfRangeError: The messages to start from are gone.

        """
        options = self._plan.options
        topics = topics_of(options.path)
        problems: list[str] = []
        options.starting.check(topics, "startingOffsets", problems.append)
        options.ending.check(topics, "endingOffsets", problems.append)
        refuse(problems)
        spans = [
            _span(path, topic, options, self._limits)
            for topic, path in topics.items()
            if self._limits.has_topic(topic)
        ]
        return shares_of(spans, options.records_per_partition, options.min_partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one share; see :func:`quire.spark.rows.read`."""
        return rows.read(partition, self._plan)


class FilteringReader(BatchReader):
    """A reader that Spark tells the filters of the query."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take what tells of places in the queue; yield what Spark has to do itself."""
        return [one for one in filters if not self._limits.take(one)]


def reader(options: ReadOptions, schema: StructType) -> BatchReader:
    """Return the reader that fits the session's settings."""
    kind = FilteringReader if _PUSHES_FILTERS in sys.modules else BatchReader
    return kind(options, schema)


def _span(path: str, topic: str, options: ReadOptions, limits: Limits) -> Span:
    with naming(topic), open_queue(path, options) as queue:
        start = resolved(queue, topic, options.starting, options.time_field)
        end = resolved(queue, topic, options.ending, options.time_field, is_end=True)
        if options.fail_on_data_loss and options.starting.time_ns is None:
            check_start(queue, topic, start)
        first, behind = limits.indexes(queue.roll_cycle)
        return span_between(queue, topic, max(start, first), min(end, behind))
