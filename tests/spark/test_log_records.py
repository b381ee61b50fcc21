"""Log records of :mod:`quire.logging`, read by Spark with their schema."""

from __future__ import annotations

import logging
from pathlib import Path

from pyspark.sql import SparkSession

import quire.logging


def test_spark_counts_records_by_their_message(spark: SparkSession, path: Path) -> None:
    handler = quire.logging.Handler(path)
    for number in range(3):
        record = logging.makeLogRecord(
            {"name": "orders", "levelno": 20, "msg": "order %s", "args": (number,), "order": number}
        )
        handler.handle(record)
    handler.close()
    schema = quire.logging.schema(extra={"order": "int64"}).to_text()
    frame = spark.read.format("quire").option("schema", schema).load(str(path))
    (counted,) = frame.groupBy("logger", "message").agg({"extra.order": "max"}).collect()
    assert tuple(counted) == ("orders", "order %s", 2)
