"""Where rows go; each of these adds a batch once, also when the batch is run again."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from quire.pipeline.errors import PipelineError
from quire.pipeline.runtime.event_order import OF_QUEUES
from quire.pipeline.runtime.sinks.parquet import ParquetFolder
from quire.pipeline.spec.model import Pipeline, Sink
from quire.spark.topics import local_path
from quire.spark.write import commits

_COMPRESSION: Final = {"compression": "zstd"}


def check_sinks(pipeline: Pipeline) -> None:
    """
    Look for what sinks need that may not be installed.

    Raises:
        PipelineError: A package is missing.

    """
    for sink in pipeline.sinks:
        if sink.format == "delta" and find_spec("delta") is None:
            raise PipelineError(
                f"{pipeline.file}:{sink.line}: the sink delta needs Delta Lake: "
                "pip install delta-spark, and a session that has its jars (settings:)"
            )


class BatchWriter:
    """Writes batches to one sink in the name of one pipeline's state."""

    def __init__(
        self, sink: Sink, name: str, identity: str, *, former: str = "", replace: bool = False
    ) -> None:
        """Remember the sink; *name* tells the sinks of a pipeline apart, *former* its runs."""
        self.sink = sink
        self._writer = f"{identity}-{name}"
        self._former = rf"(?:{former or re.escape(identity)})-{re.escape(name)}"
        self._replace = replace

    def order(self, frame: DataFrame) -> tuple[str, ...]:
        """Return the columns to sort a batch by: messages of queues keep their order."""
        if self.sink.order_by is not None:
            return self.sink.order_by
        of_queues = OF_QUEUES if self.sink.format == "quire" else ()
        return tuple(name for name in of_queues if name in frame.columns)

    def write(self, frame: DataFrame, batch: int) -> bool:
        """Write a batch; return whether it was not there yet."""
        if self.sink.format == "quire":
            return self._to_queue(frame, batch)
        if self.sink.format == "delta":
            return self._to_delta(frame, batch)
        spark = frame.sparkSession
        is_table = self.sink.format == "table"
        folder = ParquetFolder(_location(spark, self.sink), self._writer, self._former)
        is_new = not folder.has(batch)
        if is_new:
            folder.write(
                batch, lambda path: self._options(frame).parquet(path), replace=self._replace
            )
        if is_table:
            _register(spark, self.sink, folder.path)
        return is_new

    def _options(self, frame: DataFrame) -> DataFrameWriter:
        writer = frame.write.options(**(_COMPRESSION | dict(self.sink.options)))
        return writer.partitionBy(*self.sink.partition_by) if self.sink.partition_by else writer

    def _to_queue(self, frame: DataFrame, batch: int) -> bool:
        """Append to a queue, which knows the last batch of each writer."""
        given = {name.lower(): value for name, value in self.sink.options.items()}
        staged = given.get("staginglocation")
        location = None if staged is None else local_path(staged)
        if commits.has(local_path(self.sink.path), self._writer, batch, staging_location=location):
            return False
        writer = frame.write.format("quire").mode("append").options(**self.sink.options)
        writer = writer.option("writeId", self._writer).option("batchId", str(batch))
        writer.save(self.sink.path)
        return True

    def _to_delta(self, frame: DataFrame, batch: int) -> bool:
        """Append to a Delta table, which knows a batch by its transaction."""
        writer = frame.write.format("delta").options(**self.sink.options)
        if self.sink.partition_by:
            writer = writer.partitionBy(*self.sink.partition_by)
        if not self._replace:
            writer = writer.option("txnAppId", self._writer).option("txnVersion", str(batch))
        writer.mode("overwrite" if self._replace else "append").save(self.sink.path)
        return True


def _location(spark: SparkSession, sink: Sink) -> str:
    """Return the folder of a table: its path, or one of its name in the warehouse."""
    if sink.path:
        return sink.path
    warehouse = spark.conf.get("spark.sql.warehouse.dir") or "spark-warehouse"
    local = unquote(urlsplit(warehouse).path) if warehouse.startswith("file:") else warehouse
    return str(Path(local) / str(sink.table))


def _register(spark: SparkSession, sink: Sink, path: str) -> None:
    """Make the catalog know a folder as a table, and the partitions that are new."""
    name = str(sink.table)
    if not spark.catalog.tableExists(name):
        spark.catalog.createTable(name, path=path, source="parquet")
    if sink.partition_by:
        spark.catalog.recoverPartitions(name)
    spark.catalog.refreshTable(name)
