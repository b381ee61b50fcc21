"""Spark's columns of the messages of each kind of class, declared and inferred."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import quire.spark
from message_classes import BY_KIND, ROWS
from quire import Schema


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    columns = ["symbol", "lots", "price", "at", "legs"]
    return [row.asDict(recursive=True) for row in frame.orderBy("_index").select(columns).collect()]


@pytest.mark.parametrize("kind", BY_KIND)
def test_spark_reads_the_fields_of_each_kind_of_class(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    cls, make = BY_KIND[kind]
    path = tmp_path / "queue"
    with quire.open(path) as queue, queue.appender() as appender:
        for row in ROWS:
            appender.write_message(make(**row), cls)
    declared = Schema.from_message(cls)
    loaded = spark.read.format("quire").option("schema", declared.to_text()).load(str(path))
    inferred = spark.read.format("quire").option("inferSchema", "true").load(str(path))
    scanned = quire.spark.scan(spark, path, schema=declared)
    for frame in (loaded, inferred, scanned, quire.spark.scan(spark, path, inferSchema=True)):
        assert rows_of(frame) == ROWS
