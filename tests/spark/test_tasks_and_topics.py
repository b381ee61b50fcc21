"""How many tasks there are, which topics are read, how long a batch waits, and warnings."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructType

import quire
from quire.errors import OptionsError
from quire.ranges.cycles import CycleRange
from quire.spark import scan
from quire.spark.read import stream as stream_module
from quire.spark.read.partitions import TopicRange, partitions_of
from quire.spark.read.stream import StreamReader
from quire.spark.sessions.registration import parallelism_of, register
from quire.spark.source_options import ReadOptions
from spark_queues import DAYS, load, record

COLUMNS = StructType().add("n", LongType())


@pytest.mark.parametrize(("parallelism", "tasks"), [(1, 1), (3, 3), (40, 40), (200, 100)])
def test_there_are_as_many_tasks_as_the_cluster_runs_at_once(parallelism: int, tasks: int) -> None:
    spans = [TopicRange("orders", "", (CycleRange(0, 1_000_000),))]
    assert len(partitions_of(spans, 1_000_000, parallelism=parallelism)) == tasks


def test_the_source_knows_the_parallelism_of_its_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "queue"
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"x"] * 40_000)
    register(spark)
    assert parallelism_of(spark) == spark.sparkContext.defaultParallelism
    expected = min(spark.sparkContext.defaultParallelism, 4)
    assert load(spark, path).rdd.getNumPartitions() == expected
    assert scan(spark, path).rdd.getNumPartitions() == expected


def test_topics_are_chosen_by_a_pattern_of_the_whole_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("orders", "eu/trades", "us/trades", "us/trades-old"):
        record(tmp_path / name, per_day=1)

    def topics(pattern: str, **options: object) -> list[str]:
        frame = load(spark, tmp_path, topicsPattern=pattern, **options)
        return sorted({row._topic for row in frame.select("_topic").collect()})

    assert topics("(eu|us)/trades") == ["eu/trades", "us/trades"]
    assert topics("us/.*", inferSchema=True) == ["us/trades", "us/trades-old"]
    for pattern, expected in (
        ("trades", "no topic matches topicsPattern: topicsPattern=trades known=eu/trades, orders"),
        ("(", "topicsPattern is not a regular expression"),
    ):
        with pytest.raises(AnalysisException) as caught:
            topics(pattern)
        assert expected in str(caught.value)
    with pytest.raises(OptionsError, match="give topics or topicsPattern, not both"):
        scan(spark, tmp_path, topics="orders", topicsPattern="orders")


def reader(path: Path, **options: object) -> StreamReader:
    texts = {name: str(value) for name, value in options.items()}
    return StreamReader(ReadOptions.of({"path": str(path), **texts}), COLUMNS)


def test_a_stream_follows_topics_that_come_to_match(tmp_path: Path) -> None:
    record(tmp_path / "eu" / "trades", per_day=1)
    record(tmp_path / "orders", per_day=1)
    stream = reader(tmp_path, topicsPattern=".*/trades")
    start = stream.initialOffset()
    assert [*start] == ["eu/trades"]
    record(tmp_path / "us" / "trades", per_day=1)
    end = stream.latestOffset(start, ReadAllAvailable())
    assert [it for it in end if not it.startswith("/")] == ["eu/trades", "us/trades"]
    assert sum(span.count for it in stream.partitions(start, end) for span in it.spans) == 2 * DAYS
    stream.stop()


def test_a_batch_waits_for_messages_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(stream_module, "monotonic", lambda: now)
    path = record(tmp_path / "queue", per_day=1)
    stream = reader(path, minOffsetsPerTrigger=5, maxTriggerDelay="10 minutes")
    first = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert first != stream.initialOffset()  # as Spark's connector for Kafka: the first does not

    append(path, 4)
    now += 599
    assert stream.latestOffset(first, ReadAllAvailable()) == first
    append(path, 1)
    second = stream.latestOffset(first, ReadAllAvailable())
    assert second != first
    append(path, 1)
    assert stream.latestOffset(second, ReadAllAvailable()) == second
    now += 600
    third = stream.latestOffset(second, ReadAllAvailable())
    assert third != second
    now += 10_000
    assert stream.latestOffset(third, ReadAllAvailable()) == third
    stream.stop()


def append(path: Path, count: int) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for number in range(count):
            appender.write_map({"n": number})


def test_a_query_of_what_is_available_does_not_wait(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=1)
    for number in range(2):
        stream = spark.readStream.format("quire").schema("n long")
        stream = stream.option("minOffsetsPerTrigger", 100).option("maxOffsetsPerTrigger", 100)
        query = stream.load(str(path)).writeStream.format("parquet")
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start(str(tmp_path / "rows")).awaitTermination()
        assert spark.read.parquet(str(tmp_path / "rows")).count() == DAYS + number
        append(path, 1)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"maxTriggerDelay": "1m"}, "maxTriggerDelay has no effect without minOffsetsPerTrigger"),
        ({"minOffsetsPerTrigger": 0}, "minOffsetsPerTrigger must be a positive whole number"),
        (
            {"minOffsetsPerTrigger": 5, "maxOffsetsPerTrigger": 4},
            "minOffsetsPerTrigger is larger than maxOffsetsPerTrigger",
        ),
        (
            {"minOffsetsPerTrigger": 5, "maxTriggerDelay": "soon"},
            "maxTriggerDelay: not a duration: found='soon'",
        ),
    ],
)
def test_waits_that_cannot_be_are_refused(
    tmp_path: Path, options: dict[str, Any], expected: str
) -> None:
    path = record(tmp_path / "queue", per_day=1)
    with pytest.raises(OptionsError, match=expected):
        reader(path, **options)


def test_batch_reads_do_not_wait(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=1)
    with pytest.raises(OptionsError, match="minOffsetsPerTrigger is only for streams"):
        scan(spark, path, minOffsetsPerTrigger=5)


def test_a_field_that_no_message_has_is_a_warning(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = record(tmp_path / "queue")
    with caplog.at_level(logging.WARNING, "quire.spark"):
        scan(spark, path, schema="n long, name string, _index long, payload binary")
        assert caplog.messages == []
        scan(spark, path, schema="n long, naem string")
        scan(spark, path, schema="naem string", where="naem = 'n1'")
        stream = reader(path)
        start = stream.initialOffset()
        stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
        stream.stop()
    line = (
        "none of the sampled messages has the field, is its name right? field=naem messages=64"
        " topics=queue known=n, half, name, time"
    )
    assert caplog.messages == [line, line]
