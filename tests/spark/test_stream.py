"""Streams of queues: what each batch holds, where a query goes on, and what it says."""

import json
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from quire.spark import lag_of
from streams import Sink, Source, stream


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Two topics over two days: 10 + 4 and 5 + 0 messages."""
    return Source.of_two_topics(tmp_path / "queues")


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path, source: Source) -> Sink:
    return Sink(spark, tmp_path / "checkpoint", source)


def test_batches_are_as_large_as_allowed_and_cover_every_message_once(
    sink: Sink, source: Source
) -> None:
    query = sink.run(maxOffsetsPerTrigger=4)

    assert [len(batch) for batch in sink.batches] == [4, 4, 4, 4, 3]
    assert sink.numbers() == source.numbers()
    assert {row["_topic"] for row in sink.batches[0]} == {"orders", "eu/trades"}
    lags = [sum(lag_of(progress).values()) for progress in query.recentProgress]
    assert lags[:5] == [15, 11, 7, 3, 0]
    assert query.recentProgress[0]["numInputRows"] == 4
    assert sink.partitions == [1] * 5
    assert query.recentProgress[1]["processedRowsPerSecond"] > 0


def test_a_query_goes_on_where_its_checkpoint_says(sink: Sink, source: Source) -> None:
    starts = {"orders": source.indexes("orders")[7], "eu/trades": "latest"}
    sink.run(startingOffsets=json.dumps(starts))
    assert sink.numbers() == [("orders", n) for n in range(7, 14)]

    source.record("orders", 2)
    source.roll()
    source.record("eu/trades", 1)
    sink.run(startingOffsets="earliest", maxOffsetsPerTrigger=2)

    more = [("orders", 14), ("orders", 15), ("eu/trades", 5)]
    assert sink.numbers() == sorted([("orders", n) for n in range(7, 14)] + more)
    assert [len(batch) for batch in sink.batches] == [7, 2, 1]


def test_the_end_of_available_now_is_fixed_when_it_starts(sink: Sink, source: Source) -> None:
    def also() -> None:
        source.record("orders", 3)
        source.record("late", 1)

    query = sink.run(maxOffsetsPerTrigger=10, also=also)
    assert sink.numbers() == source.numbers(
        *(("orders", n) for n in range(14, 99)), *(("late", n) for n in range(99))
    )
    assert lag_of(query.lastProgress)["orders"] >= 3

    sink.run()
    assert sink.numbers() == source.numbers()


def test_a_new_topic_is_read_from_its_first_message(sink: Sink, source: Source) -> None:
    query = sink.follow(startingOffsets="latest")
    try:
        query.processAllAvailable()
        source.record("us/trades", 3)
        source.roll()
        source.record("us/trades", 2)
        source.record("orders", 1)
        query.processAllAvailable()
    finally:
        query.stop()

    assert sink.numbers() == [("orders", 14), *(("us/trades", n) for n in range(5))]


def test_a_stream_follows_the_topics_that_it_is_given(sink: Sink, source: Source) -> None:
    sink.run(topics="orders")
    assert sink.numbers() == source.numbers(*(("eu/trades", n) for n in range(99)))

    source.record("orders", 1)
    source.record("us/trades", 1)
    sink.run(topics="eu/trades")  # the others keep their places
    sink.run()
    assert sink.numbers() == source.numbers()

    with pytest.raises(StreamingQueryException, match="topic=ordres known=eu/trades, orders, us"):
        Sink(sink.spark, sink.path.with_name("other"), source).run(topics="ordres")


def test_pruned_messages_fail_the_stream_with_one_line(sink: Sink, source: Source) -> None:
    sink.run(startingOffsets=json.dumps({"orders": source.indexes("orders")[3]}))
    source.roll()
    source.record("orders", 1)
    source.prune("orders", 2)
    expected, first = source.indexes("orders")[0] - 2**32 + 4, source.indexes("orders")[0]

    with pytest.raises(StreamingQueryException) as raised:
        sink.run()

    line = f"messages are gone: topic=orders expected={expected:#x} first={first:#x}"
    assert f"DataLossError: {line} (failOnDataLoss=false" in str(raised.value)


def test_a_stream_may_go_on_after_pruned_messages(sink: Sink, source: Source) -> None:
    sink.run()
    source.record("orders", 2)
    source.roll()
    source.record("orders", 3)
    source.prune("orders", 2)

    sink.run(failOnDataLoss=False)

    assert sink.numbers() == source.numbers(("orders", 14), ("orders", 15))


def test_columns_of_a_stream_are_those_of_a_batch_read(
    spark: SparkSession, sink: Sink, source: Source
) -> None:
    sink.columns = None
    sink.run()
    batch = spark.read.format("quire").load(str(source.path))

    assert stream(spark, source.path, None).schema == batch.schema
    assert sorted(sink.rows) == sorted(batch.collect())


def test_a_stream_takes_no_end(spark: SparkSession, source: Source) -> None:
    frame = stream(spark, source.path, endingOffsets="latest")

    with pytest.raises((AnalysisException, StreamingQueryException), match="a stream has no end"):
        frame.writeStream.format("noop").start().awaitTermination(30)
