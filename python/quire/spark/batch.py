"""
Batch reads: planning cuts the queue into ranges of messages, tasks read them.

Planning counts, it reads no messages. A range spans as many cycles as it needs to, because a task
costs about as much as reading a hundred thousand messages, and many queues have small cycles.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import quire
from quire.spark.columns import Columns
from quire.spark.options import ReadOptions
from quire.spark.schema import columns_of

# Below this a further task costs more than it saves.
RECORDS_PER_PARTITION_MIN: Final = 10_000


@dataclass(frozen=True, slots=True)
class Run:
    """The messages of one cycle: *count* of them from *first_index* on."""

    first_index: int
    count: int


class IndexRange(InputPartition):
    """What one task reads: *count* messages from *first_index* on, over as many cycles."""

    def __init__(self, first_index: int, count: int) -> None:
        """Keep both; Spark sends the range to the task."""
        super().__init__((first_index, count))
        self.first_index = first_index
        self.count = count


class BatchReader(DataSourceReader):
    """Reads every message that the queue held when the query was planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Keep the options and the schema; files are opened by the tasks."""
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[IndexRange]:
        """
        Cut the queue into ranges of about equal size.

        Raises:
            NotAQueueError: The directory holds no queue.

        """
        with quire.open(self._options.path, read_only=True, create=False) as queue:
            runs = list(runs_of(queue))
        size = partition_size(sum(run.count for run in runs), self._options.records_per_partition)
        return list(ranges_of(runs, size)) or [IndexRange(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """
        Yield the messages of one range.

        Raises:
            WireError: A field was asked for, and a message is not a map.
            IndexOutOfRangeError: Messages that were there when the query was planned are gone.

        """
        if not isinstance(partition, IndexRange) or partition.count == 0:
            return
        left = partition.count
        with quire.open(self._options.path, read_only=True, create=False) as queue:
            columns = Columns(queue, columns_of(self._schema), partition.first_index)
            while left:
                batch = columns.read(min(left, self._options.batch_rows))
                left -= batch.num_rows
                yield batch


def runs_of(queue: quire.Queue) -> Iterator[Run]:
    """Yield the messages of each cycle that has some, in order."""
    last = queue.last_index
    if last is None:
        return
    cycle_of, index_of = queue.roll_cycle.to_cycle, queue.roll_cycle.to_index
    starts = [index_of(cycle, 0) for cycle in queue.cycles if cycle <= cycle_of(last)]
    for start, end in zip(starts, [*starts[1:], last + 1], strict=True):
        count = queue.count_excerpts(start, end)
        if count:
            yield Run(start, count)


def partition_size(total: int, records_per_partition: int) -> int:
    """Return how many messages a range gets: less than asked for when cores would be idle."""
    busy = max(ceil(total / (os.cpu_count() or 1)), RECORDS_PER_PARTITION_MIN)
    ranges = ceil(total / min(records_per_partition, busy))
    return ceil(total / max(ranges, 1))


def ranges_of(runs: Sequence[Run], size: int) -> Iterator[IndexRange]:
    """Yield ranges of *size* messages; the last may be smaller."""
    first, count = 0, 0
    for run in runs:
        taken = 0
        while taken < run.count:
            if count == 0:
                first = run.first_index + taken
            step = min(size - count, run.count - taken)
            taken, count = taken + step, count + step
            if count == size:
                yield IndexRange(first, count)
                count = 0
    if count:
        yield IndexRange(first, count)
