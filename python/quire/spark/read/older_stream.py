"""The reader of a stream on PySpark 4.1, which does not pass the start and limit of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from quire.spark import _pyspark
from quire.spark.read.checkpoints import Offsets, split
from quire.spark.read.read_limits import ReadAllAvailable
from quire.spark.read.stream import StreamReader
from quire.spark.source_options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa


class OlderStreamReader(DataSourceStreamReader):
    """
    Remembers where the next batch begins.

    After a restart, that is unknown before Spark plans. So the end of the first batch is determined
    as if nothing had been read, which gives the same end, and Spark takes the start of the batch
    from the checkpoint.

    Raises:
        UnsupportedError: An option limits the length of batches.

    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Refuse options that need a newer PySpark."""
        limits = (options.max_per_trigger, options.min_per_trigger)
        for name, limit in zip(
            ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"), limits, strict=True
        ):
            if limit is not None:
                raise _pyspark.refusal(name, _pyspark.READ_LIMITS)
        self._reader = StreamReader(options, schema)
        self._start: Offsets = {}

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """Return where a stream without a checkpoint starts."""
        self._start = self._reader.initialOffset()
        return self._start

    def latestOffset(self) -> Offsets:  # type: ignore[override] # noqa: N802 - Spark's name
        """Return the end of the next batch, which has all available messages."""
        self._start = self._reader.latestOffset(self._start, ReadAllAvailable())
        return self._start

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """
        Divide the messages between two offsets into shares.

        Raises:
            DataLossError: Messages of the batch were deleted and ``failOnDataLoss`` is not false.

        """
        (before, _), (after, _) = split(start), split(end)
        gone = before.keys() - after.keys() - self._reader.every_topic().keys()
        # The plan was made as if nothing had been read, so it lacks topics that are gone.
        missed = {topic: before[topic] + 1 for topic in gone}
        self._start = end
        return self._reader.partitions(start, {**end, **missed})

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one share."""
        return self._reader.read(partition)

    def commit(self, end: Offsets) -> None:
        """Do nothing: Spark stores the offset."""

    def stop(self) -> None:
        """Close the queues."""
        self._reader.stop()
