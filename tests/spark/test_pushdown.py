"""Filters on indexes, cycles and topics reach the queue: seen in plans, and in partitions."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, LessThanOrEqual, StringContains
from pyspark.sql.types import LongType, StringType, StructType

import quire
from quire.spark.batch import FilteringReader
from quire.spark.options import ReadOptions
from spark_queues import DAYS, PER_DAY, START_MS, indexes, load, messages_of, record

pytestmark = pytest.mark.spark

SETTING = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three topics of three days."""
    folder = tmp_path_factory.mktemp("queues")
    for topic in "abc":
        record(folder / topic)
    return folder


@pytest.mark.parametrize(
    ("condition", "topics", "first", "end", "partitions"),
    [
        ("_topic = 'b'", "b", 0, 150, 3),
        ("_topic in ('a', 'c')", "ac", 0, 150, 6),
        ("_cycle = {second}", "abc", 50, 100, 3),
        ("_cycle > {first} and _cycle <= {second} and _topic = 'a'", "a", 50, 100, 1),
        ("_index >= {index60} and _topic = 'c'", "c", 60, 150, 2),
        ("_index between {index60} and {index70}", "abc", 60, 71, 1),
        ("_topic = 'nope'", "", 0, 0, 0),
    ],
)
def test_a_filter_leaves_the_plan_and_what_it_excludes_is_not_read(  # noqa: PLR0913, PLR0917
    spark: SparkSession,
    folder: Path,
    condition: str,
    topics: str,
    first: int,
    end: int,
    partitions: int,
) -> None:
    found = [index for index, _ in messages_of(folder / "a")]
    with quire.open(folder / "a", read_only=True) as queue:
        first_cycle = queue.roll_cycle.cycle_at(START_MS)
    text = condition.format(
        first=first_cycle, second=first_cycle + 1, index60=found[60], index70=found[70]
    )
    frame = load(spark, folder, columns="_topic,_cycle,_index", recordsPerPartition=50).where(text)

    assert indexes(frame) == sorted(found[first:end] * len(topics))
    assert {row._topic for row in frame.collect()} == set(topics)
    assert not has_filter(frame)
    assert frame.rdd.getNumPartitions() == max(partitions, 1)


def test_what_spark_has_to_do_stays_in_the_plan(spark: SparkSession, folder: Path) -> None:
    found = [index for index, _ in messages_of(folder / "a")]
    wanted = f"_index in ({found[3]}, {found[140]}) and _sequence > 5"
    frame = load(spark, folder, columns="_topic,_index,_sequence").where(wanted)

    assert indexes(frame) == [found[140]] * 3
    assert has_filter(frame)


def test_without_the_setting_reading_works(spark: SparkSession, folder: Path) -> None:
    spark.conf.set(SETTING, "false")
    try:
        frame = load(spark, folder, columns="_topic,_index").where("_topic = 'b'")
        assert frame.count() == DAYS * PER_DAY
        assert has_filter(frame)
    finally:
        spark.conf.set(SETTING, "true")


def test_a_reader_gives_back_what_it_does_not_do(folder: Path) -> None:
    schema = StructType().add("_index", LongType()).add("_topic", StringType())
    reader = FilteringReader(ReadOptions(str(folder)), schema)
    taken: list[Filter] = [EqualTo(("_topic",), "a"), GreaterThan(("_index",), 5)]
    left: list[Filter] = [
        In(("_index",), (7, 9)),
        StringContains(("_topic",), "a"),
        EqualTo(("n",), 1),
        LessThanOrEqual(("_index", "inner"), 9),
    ]

    assert [*reader.pushFilters([*taken, *left])] == left


def has_filter(frame: DataFrame) -> bool:
    """Return whether Spark filters rows itself."""
    with redirect_stdout(StringIO()) as shown:
        frame.explain()
    return re.search(r"\bFilter \(", shown.getvalue()) is not None
