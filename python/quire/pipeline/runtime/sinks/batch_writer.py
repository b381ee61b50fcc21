"""The sinks of a pipeline; each adds a batch exactly once, even if the batch is repeated."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from quire.errors import PipelineError
from quire.pipeline.runtime.event_order import OF_QUEUES
from quire.pipeline.runtime.sinks.parquet_folder import ParquetFolder
from quire.pipeline.spec.parts import FolderSink, Pipeline, QueueSink, Sink, TableSink
from quire.spark.source_options import Given
from quire.spark.topics import local_path
from quire.staged import commits

_COMPRESSION: Final = {"compression": "zstd"}


def check_sinks(pipeline: Pipeline) -> None:
    """
    Check that the packages that sinks need are installed.

    Raises:
        PipelineError: A package that a sink needs is not installed.

    """
    for sink in pipeline.sinks:
        if sink.format == "delta" and find_spec("delta") is None:
            raise PipelineError(
                f"{pipeline.file}:{sink.line}: the sink delta needs Delta Lake: "
                "pip install delta-spark, and a session that has its jars (settings:)"
            )


class BatchWriter:
    """Writes batches to one sink under the identity of one pipeline's state."""

    def __init__(
        self, sink: Sink, name: str, identity: str, *, former: str = "", replace: bool = False
    ) -> None:
        """Take a sink, its *name* in the pipeline, and a pattern of the ids of *former* runs."""
        self.sink = sink
        self._writer = f"{identity}-{name}"
        self._former = rf"(?:{former or re.escape(identity)})-{re.escape(name)}"
        self._replace = replace

    def order(self, frame: DataFrame) -> tuple[str, ...]:
        """Return the columns to sort a batch by: messages of queues keep their order."""
        if self.sink.order_by is not None:
            return self.sink.order_by
        of_queues = OF_QUEUES if isinstance(self.sink, QueueSink) else ()
        return tuple(name for name in of_queues if name in frame.columns)

    def write(self, frame: DataFrame, batch: int) -> bool:
        """Write a batch; return False if it had been written before."""
        if isinstance(self.sink, QueueSink):
            return self._to_queue(self.sink, frame, batch)
        if self.sink.format == "delta":
            return self._to_delta(self.sink, frame, batch)
        if isinstance(self.sink, FolderSink):
            return self._to_parquet(self.sink, self.sink.path, frame, batch)
        spark = frame.sparkSession
        path = self.sink.path or _in_warehouse(spark, self.sink.table)
        is_new = self._to_parquet(self.sink, path, frame, batch)
        _register(spark, self.sink, path)
        return is_new

    def _to_parquet(
        self, sink: FolderSink | TableSink, path: str, frame: DataFrame, batch: int
    ) -> bool:
        folder = ParquetFolder(path, self._writer, self._former)
        if folder.has(batch):
            return False
        writer = _partitioned(sink, frame.write.options(**(_COMPRESSION | sink.options)))
        folder.write(batch, writer.parquet, replace=self._replace)
        return True

    def _to_queue(self, sink: QueueSink, frame: DataFrame, batch: int) -> bool:
        """Append to a queue, which stores the last batch of each writer."""
        given = Given(sink.options, _ignore)
        staged = given.text("stagingLocation")
        location = None if staged is None else local_path(staged)
        path, key = local_path(sink.path), given.key()
        if commits.has(path, self._writer, batch, staging_location=location, key=key):
            return False
        writer = frame.write.format("quire").mode("append").options(**sink.options)
        writer = writer.option("writeId", self._writer).option("batchId", str(batch))
        writer.save(sink.path)
        return True

    def _to_delta(self, sink: FolderSink, frame: DataFrame, batch: int) -> bool:
        """Append to a Delta table, which stores a transaction for each batch."""
        writer = _partitioned(sink, frame.write.format("delta").options(**sink.options))
        if not self._replace:
            writer = writer.option("txnAppId", self._writer).option("txnVersion", str(batch))
        writer.mode("overwrite" if self._replace else "append").save(sink.path)
        return True


def _ignore(problem: str) -> None:
    """Do nothing: the write itself reports what is wrong with its options."""
    del problem


def _partitioned(sink: FolderSink | TableSink, writer: DataFrameWriter) -> DataFrameWriter:
    return writer.partitionBy(*sink.partition_by) if sink.partition_by else writer


def _in_warehouse(spark: SparkSession, table: str) -> str:
    """Return the default folder of a table."""
    warehouse = spark.conf.get("spark.sql.warehouse.dir") or "spark-warehouse"
    local = unquote(urlsplit(warehouse).path) if warehouse.startswith("file:") else warehouse
    return str(Path(local) / table)


def _register(spark: SparkSession, sink: TableSink, path: str) -> None:
    """Add a folder to the catalog as a table, with its new partitions."""
    name = sink.table
    if not spark.catalog.tableExists(name):
        spark.catalog.createTable(name, path=path, source="parquet")
    if sink.partition_by:
        spark.catalog.recoverPartitions(name)
    spark.catalog.refreshTable(name)
