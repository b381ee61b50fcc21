"""Compressed cycles on Spark: rows as of any others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quire
from queues import copy_of
from spark_queues import DAYS, PER_DAY, load, record


@pytest.mark.slow
def test_rows_are_those_of_the_files_before(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue")
    plain = copy_of(path, tmp_path / "plain")
    compressed = quire.prune(path, max_cycles=1, action="compress").removed
    assert len(compressed) == DAYS - 1

    found, expected = (load(spark, it).drop("_topic") for it in (path, plain))
    assert found.count() == DAYS * PER_DAY
    assert found.exceptAll(expected).count() == expected.exceptAll(found).count() == 0
    late = load(spark, path, startingTimestamp="2013-01-02")
    assert late.count() == load(spark, plain, startingTimestamp="2013-01-02").count() > 0
