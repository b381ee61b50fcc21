"""``scan(where=…)``: the rows of Spark's own filter, from fewer messages."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import quire
from quire.errors import OptionsError
from quire.spark import scan
from quire.spark.read.batch_reader import planned
from quire.spark.read.condition_ranges import pruned
from quire.spark.read.scan_conditions import Compared, Condition, condition_of
from quire.spark.source_options import ReadOptions
from spark_queues import DAY_MS, DAYS, PER_DAY, START_MS, record

SCHEMA = (
    "_topic string, _index long, _cycle int, _timestamp timestamp, n long, half double,"
    " name string, time long"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    record(tmp_path / "queues" / "orders")
    record(tmp_path / "queues" / "trades", odd=float("nan"))
    return tmp_path / "queues"


def first_index(path: Path, day: int) -> int:
    with quire.open(path / "orders", read_only=True) as queue:
        return queue.roll_cycle.to_index(queue.cycles[day], 0)


CONDITIONS = [
    "_topic = 'orders'",
    "_topic in ('trades', 'none') and n < 3",
    "_index >= {day1}",
    "_index > {day1} and _index <= {day2} and half * 2 = n",
    "{day1} > _index or n = 149",
    "_index between {day1} and {day1} + 5",
    "_index in ({day1}, {day2})",
    "_cycle = 15707",
    "_cycle > 15707 and name like 'n14%'",
    "_cycle <= 15706 and not (n > 5)",
    "_timestamp >= timestamp'2013-01-02' and _timestamp < timestamp'2013-01-02T00:00:10.5'",
    "_timestamp = timestamp'2013-01-03T00:00:01'",
    "name in ('n1', 'n77') or (name = 'n3' and half > 1)",
    "half > 73.5 or half = 0.0",
    "odd > 5 and n >= 148",
    "odd is not null and n = 9",
    "odd is null and n = 9",
    "n > 1000",
    "n = 5 and n = 6",
    "length(name) = 2 and time % 2000 = 0",
    "cast(n as string) = '7'",
    "true",
    "false",
]


@pytest.mark.parametrize("lateness", [None, "1 s"])
def test_the_rows_are_those_of_sparks_filter(
    spark: SparkSession, path: Path, lateness: str | None
) -> None:
    day1, day2 = first_index(path, 1), first_index(path, 2)
    options: dict[str, Any] = {"schema": SCHEMA + ", odd double", "timestampField": "time"}
    rows = scan(spark, path, **options)
    # Not cached: filters of Spark's cache lose rows with NaN.
    whole = spark.createDataFrame(rows.collect(), rows.schema)
    for text in CONDITIONS:
        where = text.format(day1=day1, day2=day2)
        found = scan(spark, path, where=where, lateness=lateness, **options)
        expected = sorted(map(repr, whole.where(where).collect()))
        assert sorted(map(repr, found.collect())) == expected, where
    positions = scan(spark, path, columns="_topic,_index", where=f.col("_index") < day1)
    assert positions.count() == 2 * PER_DAY


def test_zeros_with_a_sign_and_far_times_are_compared_as_spark_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    times = [(1, 1, 1), (1, 1, 2), (1500, 6, 1), (1500, 6, 5), (1890, 1, 1), (2024, 1, 1)]
    times += [(9998, 12, 31), (9999, 12, 31)]
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        for number, day in enumerate(times):
            zero = (0.0, -0.0, 2.5)[number % 3]
            appender.write_map({"x": zero, "at": datetime(*day, tzinfo=UTC)})
    schema = "_index long, x double, at timestamp"
    rows = scan(spark, tmp_path / "q", schema=schema)
    whole = spark.createDataFrame(rows.toArrow())
    texts = ["0001-01-01", "1500-06-03", "1890-01-01", "9999-12-31", "-0010-01-01", "+12000-01-01"]
    for where in (
        "x in (0.0, 1.5)",
        "x in (-0.0D, 1.5D)",
        "x = 0 or x = -1",
        *(f"at {sign} timestamp'{text} 00:00:00Z'" for sign in (">=", "<") for text in texts),
    ):
        found = scan(spark, tmp_path / "q", schema=schema, where=where)
        assert found.toArrow().sort_by("_index") == whole.where(where).toArrow(), where


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ([Compared("_topic", "equal", "orders")], DAYS * PER_DAY),
        ([Compared("_cycle", "greater_equal", 15707)], 2 * 2 * PER_DAY),
        ([Compared("_cycle", "equal", 15707), Compared("_topic", "equal", "trades")], PER_DAY),
        ([Compared("_index", "less", (15707 << 32) + 5)], 2 * (PER_DAY + 6)),
        ([Compared("_index", "greater_equal", (15708 << 32) + 40)], 2 * 10),
        ([Compared("n", "equal", 5)], 2 * DAYS * PER_DAY),
        ([Compared("_index", "equal", 5)], 0),
    ],
)
def test_messages_out_of_range_are_in_no_task(
    path: Path, conditions: list[Condition], left: int
) -> None:
    read = ReadOptions.of({"path": str(path)})
    spans = pruned(planned(read), tuple(conditions), read, None)
    assert sum(span.count for span in spans) == left


def test_a_time_range_needs_an_order_of_times(spark: SparkSession, path: Path) -> None:
    start = START_MS + DAY_MS
    options = {"schema": "_timestamp timestamp, n long", "timestampField": "time"}
    read = ReadOptions.of({"path": str(path), "timestampField": "time"})
    from_day = condition_of(
        spark,
        scan(spark, path, **options).schema,
        f.col("_timestamp") >= f.timestamp_millis(f.lit(start)),
    )
    counts = [
        sum(span.count for span in pruned(planned(read), from_day, read, lateness))
        for lateness in (None, 0, 3_000_000, 10**18)
    ]
    assert counts == [2 * DAYS * PER_DAY, 2 * 2 * PER_DAY, 2 * 2 * PER_DAY, 2 * DAYS * PER_DAY]


def test_late_messages_within_the_lateness_are_found(spark: SparkSession, tmp_path: Path) -> None:
    times = [0, 10, 4, 20, 12, 30, 24, 40, 31, 50, 45, 60, None, 70]
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        for seconds in times:
            at = None if seconds is None else START_MS + seconds * 1000
            appender.write_map({"at": at})
    options: dict[str, Any] = {"schema": "_timestamp timestamp", "timestampField": "at"}
    for low in range(0, 71, 7):
        for high in (low, low + 9, low + 33):
            bounds = [f.timestamp_millis(f.lit(START_MS + it * 1000)) for it in (low, high)]
            where = f.col("_timestamp").between(*bounds)
            found = scan(spark, tmp_path / "queue", where=where, lateness="9 s", **options)
            expected = sum(it is not None and low <= it <= high for it in times)
            assert found.count() == expected, (low, high)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"where": "price >"}, "quire scan: where=price >: "),
        ({"where": "price > 1"}, "(columns: _index, n)"),
        ({"where": "n"}, "quire scan: where=n: "),
        ({"lateness": "1 s"}, "lateness requires where"),
        (
            {"where": "n > 1", "lateness": "soon", "timestampField": "time"},
            "lateness: not a duration: found='soon'",
        ),
    ],
)
def test_a_condition_that_is_none_is_refused(
    spark: SparkSession, path: Path, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(OptionsError) as caught:
        scan(spark, path, schema="_index long, n long", columns="_index, n", **options)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
