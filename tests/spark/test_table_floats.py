"""Filters of floats: archives give the rows that Spark finds in memory, NaN and -0.0 among them."""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import quire
import quire.spark
from archives import make_older
from queues import DAY_MS, START_MS
from quire import archive as archives

# Each list is a cycle, and so a file that a filter reads or passes over.
CYCLES: list[list[float | None]] = [
    [math.nan],
    [1.0, math.nan],
    [-0.0],
    [0.0],
    [math.inf],
    [-math.inf],
    [150.0, None],
]
LIVE: list[float | None] = [2.0, math.nan]
SCHEMA = quire.Schema(
    {"n": "int32", "f": "float64", "s": pa.struct([("x", pa.float32()), ("n", pa.int32())])}
)
VALUES = ["double('NaN')", "0.0D", "-0.0D", "double('Infinity')", "-double('Infinity')", "100.0D"]
FILTERS = [
    *(f"{{}} {by} {value}" for by in ("=", "<=>", "!=", "<", "<=", ">", ">=") for value in VALUES),
    "{} in (double('NaN'), 0.0D)",
    "{} in (-0.0D, 150.0D)",
    "{} not in (100.0D, -0.0D)",
    "{} between 0.0D and double('NaN')",
    "{} between -double('Infinity') and -0.0D",
    "not ({} < 100.0D)",
    "not ({} <=> -0.0D)",
    "isnan({})",
    "{} is null",
    "{} is not null",
    "{} > 100.0D or {} = -0.0D",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path, clock = tmp_path / "floats", quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**18) as queue,
        queue.appender() as appender,
    ):
        for day, values in enumerate((*CYCLES, LIVE)):
            clock.now_ms = START_MS + day * DAY_MS
            for value in values:
                appender.write_map({"n": day, "f": value, "s": {"x": value, "n": day}})
    return path


def found(frame: DataFrame, column: str) -> dict[str, list[tuple[int, str]]]:
    """What each filter finds, in one job; the plan of each has its own scan."""
    filters = [it.replace("{}", column) for it in FILTERS]
    parts = [
        frame.where(it).select(f.lit(it).alias("filter"), "_index", f.col(column).alias("value"))
        for it in filters
    ]
    rows = reduce(DataFrame.unionAll, parts).collect()
    return {it: sorted((row[1], f"{row[2]}") for row in rows if row[0] == it) for it in filters}


def in_memory(spark: SparkSession, frame: DataFrame) -> DataFrame:
    return spark.createDataFrame(frame.collect(), frame.schema)


@pytest.mark.parametrize("column", ["f", "s.x"])
def test_filters_find_what_they_find_in_memory(
    spark: SparkSession, path: Path, tmp_path: Path, column: str
) -> None:
    dest = tmp_path / "archive"
    archives.archive(path, dest, schema=SCHEMA)
    make_older(dest, only=5)
    table = quire.spark.table(spark, dest)
    assert found(table, column) == found(in_memory(spark, table), column)

    assert archives.rewrite(dest).cycles == 5
    plain = spark.read.parquet(f"{dest}/topic=floats")
    assert found(plain, column) == found(in_memory(spark, plain), column)


def test_floats_of_older_files_are_in_no_filter_that_is_pushed_down(
    spark: SparkSession, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dest = tmp_path / "archive"
    archives.archive(path, dest, schema=SCHEMA)
    make_older(dest)

    quire.spark.table(spark, dest).where("f > 100 and n > 3").explain()

    pushed = [it for it in capsys.readouterr().out.splitlines() if "PushedFilters" in it]
    assert any("GreaterThan(n,3)" in it for it in pushed)
    assert not any("(f,100" in it for it in pushed)
