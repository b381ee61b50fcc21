"""The data source named ``quire``, which Spark calls."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from quire.spark import _pyspark
from quire.spark.catalog_tables import options_of_new, with_options, with_those_of_table
from quire.spark.read.batch_reader import BatchReader
from quire.spark.read.older_stream import OlderStreamReader
from quire.spark.read.stream import StreamReader
from quire.spark.source_options import ReadOptions
from quire.spark.spark_columns import checked, default_columns
from quire.spark.write.queue_writer import QuireStreamWriter, QuireWriter
from quire.spark.write.sink_options import WriteOptions


class QuireDataSource(DataSource):
    """
    Reads and writes queues; see ``docs/spark.md`` and ``docs/sinks.md`` for the options.

    >>> quire.spark.register(spark)  # doctest: +SKIP
    >>> spark.read.format("quire").load("/data/trades")  # doctest: +SKIP
    >>> (
    ...     spark.read.format("quire")
    ...     .schema("_index long, symbol string, price double")
    ...     .load("/data/trades")
    ... )  # doctest: +SKIP
    """

    parallelism: ClassVar[int | None] = None
    """How many tasks the session runs at once; None: unknown."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "quire"

    def schema(self) -> str | StructType:
        """Return the columns if the user gave no schema."""
        new = options_of_new(self.options)
        if new is None:
            return default_columns(ReadOptions.of(self.options))
        return with_options(default_columns(ReadOptions.of(new)), new)

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of a batch query."""
        options = ReadOptions.of(with_those_of_table(self.options, schema), self.parallelism)
        return BatchReader(options, checked(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream."""
        options = ReadOptions.of(with_those_of_table(self.options, schema), self.parallelism)
        reader = StreamReader if _pyspark.has(_pyspark.READ_LIMITS) else OlderStreamReader
        return reader(options, checked(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> QuireWriter:  # noqa: FBT001
        """Return the writer of a batch query."""
        return QuireWriter(WriteOptions.of(self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> QuireStreamWriter:  # noqa: FBT001, N802
        """Return the writer of a stream."""
        return QuireStreamWriter(WriteOptions.of(self.options, schema, overwrite=overwrite))
