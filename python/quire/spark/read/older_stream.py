"""The reader of a stream on PySpark 4.1, which says neither where a batch begins nor ends."""

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
    Keeps in mind where the next batch begins.

    After a restart this is not known before Spark plans: the first batch is planned as if nothing
    had been read, which gives the same end, and Spark cuts it where the checkpoint says.

    Raises:
        UnsupportedError: The options ask for batches of a limited length.

    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Refuse what takes a newer PySpark."""
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
        """Return the end of the next batch, which is all there is."""
        self._start = self._reader.latestOffset(self._start, ReadAllAvailable())
        return self._start

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """
        Cut the messages between two offsets into shares.

        Raises:
            DataLossError: Messages of the batch were deleted and ``failOnDataLoss`` is not false.

        """
        (before, _), (after, _) = split(start), split(end)
        gone = before.keys() - after.keys() - self._reader.every_topic().keys()
        # Planned as if nothing had been read: a topic that is gone is missing from the plan.
        missed = {topic: before[topic] + 1 for topic in gone}
        self._start = end
        return self._reader.partitions(start, {**end, **missed})

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one share."""
        return self._reader.read(partition)

    def commit(self, end: Offsets) -> None:
        """Keep nothing: Spark does."""

    def stop(self) -> None:
        """Close the queues."""
        self._reader.stop()
