"""Queries on streams, held against a computation of the same in plain Python."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

import quire
from queues import START_MS
from streams import Sink, Source, stream

MINUTE_MS = 60_000


def result(frame: DataFrame, mode: str, checkpoint: Path) -> list[Row]:
    """Return the final result of a query over the messages so far."""
    name = f"told_{uuid4().hex}"
    writer = frame.writeStream.format("memory").queryName(name).outputMode(mode)
    writer = writer.option("checkpointLocation", str(checkpoint))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    return frame.sparkSession.table(name).collect()


def test_a_live_writer_is_followed_over_its_rolls(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(tmp_path / "queues")
    source.record("orders", 1)
    sink = Sink(spark, tmp_path / "checkpoint", source)

    def write() -> None:
        for _ in range(6):
            for topic in ("orders", "trades"):
                source.record(topic, 40)
            source.roll()

    writer = threading.Thread(target=write)
    query = sink.follow(maxOffsetsPerTrigger=70)
    try:
        writer.start()
        writer.join()
        query.processAllAvailable()
    finally:
        query.stop()

    assert sink.numbers() == source.numbers()
    assert max(len(batch) for batch in sink.batches) <= 70
    for topic in source.counts:
        came = [row["_index"] for row in sink.rows if row["_topic"] == topic]
        assert sorted(came) == source.indexes(topic)


@pytest.fixture
def late(tmp_path: Path) -> Path:
    """Messages with times: in order, then two again, and one that is an hour late."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(tmp_path / "late", roll_cycle="TEST4_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for n in [*range(90), 88, 89, 0]:
            appender.write_map({"n": n, "kind": "ab"[n % 2], "at": START_MS + n * MINUTE_MS})
    return tmp_path / "late"


def test_windows_of_message_times_count_what_a_loop_counts(
    spark: SparkSession, late: Path, tmp_path: Path
) -> None:
    rows = stream(
        spark, late, "_timestamp timestamp, kind string", timestampField="at", minPartitions=3
    )
    windows = rows.groupBy(f.window("_timestamp", "10 minutes"), "kind").count()
    result_rows = result(windows, "complete", tmp_path / "checkpoint")

    found = {(int(row.window.start.timestamp()), row.kind): row["count"] for row in result_rows}
    wanted = Counter(
        ((START_MS + n * MINUTE_MS) // 600_000 * 600, "ab"[n % 2]) for n in [*range(90), 88, 89, 0]
    )
    assert found == wanted


def test_what_comes_twice_or_late_is_dropped_by_the_watermark(
    spark: SparkSession, late: Path, tmp_path: Path
) -> None:
    rows = stream(
        spark, late, "_timestamp timestamp, n long", timestampField="at", maxOffsetsPerTrigger=30
    )
    once = rows.withWatermark("_timestamp", "5 minutes").dropDuplicatesWithinWatermark(["n"])
    result_rows = result(once, "append", tmp_path / "checkpoint")

    assert sorted(row.n for row in result_rows) == list(range(90))
