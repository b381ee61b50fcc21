"""Where a read begins and ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

import quire
from quire.errors import IndexOutOfRangeError
from quire.spark.read.batch_reader import BatchReader
from quire.spark.read.partitions import Partition
from quire.spark.source_options import ReadOptions
from spark_queues import DAY_MS, DAYS, PER_DAY, START_MS, indexes, load, messages_of, record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics; the second is in a folder of its own."""
    folder = tmp_path_factory.mktemp("queues")
    record(folder / "orders")
    record(folder / "eu" / "trades", per_day=20)
    return folder


@pytest.fixture(scope="module")
def orders(folder: Path) -> list[int]:
    """The indexes of the first topic."""
    return [index for index, _ in messages_of(folder / "orders")]


def test_every_queue_below_a_directory_is_a_topic(spark: SparkSession, folder: Path) -> None:
    found = load(spark, folder).groupBy("_topic").count().collect()

    assert {row._topic: row["count"] for row in found} == {
        "orders": DAYS * PER_DAY,
        "eu/trades": DAYS * 20,
    }


def test_offsets_are_indexes_the_end_excluded(
    spark: SparkSession, folder: Path, orders: list[int]
) -> None:
    start, end = orders[49], orders[101]
    found = load(spark, folder / "orders", startingOffsets=start, endingOffsets=hex(end))

    assert indexes(found) == orders[49:101]
    assert indexes(load(spark, folder / "orders", startingOffsets="latest")) == []
    assert indexes(load(spark, folder / "orders", startingOffsets="EARLIEST")) == orders


def test_offsets_by_topic(spark: SparkSession, folder: Path, orders: list[int]) -> None:
    found = load(
        spark,
        folder,
        startingOffsets=json.dumps({"eu/trades": "latest"}),
        endingOffsets=json.dumps({"orders": orders[7]}),
    )

    assert {row._topic for row in found.select("_topic").collect()} == {"orders"}
    assert indexes(found) == orders[:7]


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"startingTimestamp": "2013-01-02"}, PER_DAY),
        ({"startingTimestamp": START_MS + DAY_MS + 7_000}, PER_DAY),
        ({"startingTimestamp": START_MS + DAY_MS + 7_000, "timestampField": "time"}, PER_DAY + 7),
        ({"startingTimestamp": "2013-01-02T00:00:06.5", "timestampField": "time"}, PER_DAY + 7),
        ({"startingTimestamp": "2013-01-02T02:00:07+02:00", "timestampField": "time"}, PER_DAY + 7),
        ({"startingTimestamp": "1990-01-01"}, 0),
        ({"startingTimestamp": "2030-01-01"}, DAYS * PER_DAY),
    ],
)
def test_a_time_begins_at_its_cycle_or_at_its_first_message(
    spark: SparkSession, folder: Path, orders: list[int], options: dict[str, Any], first: int
) -> None:
    assert indexes(load(spark, folder / "orders", **options)) == orders[first:]


def test_an_ending_time_is_excluded(spark: SparkSession, folder: Path, orders: list[int]) -> None:
    found = load(
        spark,
        folder / "orders",
        startingTimestamp="2013-01-02",
        endingTimestamp="2013-01-02T00:00:10",
        timestampField="time",
    )

    assert indexes(found) == orders[PER_DAY : PER_DAY + 10]


def test_times_are_exact_where_cycles_have_an_index_of_append_times(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = record(tmp_path / "queue")
    everything = [index for index, _ in messages_of(path)]
    quire.maintenance.build_time_index(path, time_field="time")
    start, end = START_MS + DAY_MS + 6_500, START_MS + DAY_MS + 10_000
    found = load(spark, path, startingTimestamp=start, endingTimestamp=end)
    assert indexes(found) == everything[PER_DAY + 7 : PER_DAY + 10]


def test_what_is_written_after_planning_is_not_read(tmp_path: Path) -> None:
    path = record(tmp_path / "queue")
    before = [index for index, _ in messages_of(path)]
    reader = reader_of(path)
    partitions = reader.partitions()
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_map({"n": -1})

    assert index_bounds(reader, partitions) == before


def test_a_pruned_start_is_an_error_unless_loss_is_allowed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = record(tmp_path / "queue")
    all_indexes = [index for index, _ in messages_of(path)]
    remove_cycle(path, 0)

    assert indexes(load(spark, path)) == all_indexes[PER_DAY:]
    with pytest.raises(
        AnalysisException, match=r"messages are gone.* topic=queue wanted="
    ) as raised:
        load(spark, path, startingOffsets=all_indexes[3]).collect()
    assert "quire.errors.IndexOutOfRangeError: " in str(raised.value)
    found = load(spark, path, startingOffsets=all_indexes[3], failOnDataLoss="false")
    assert indexes(found) == all_indexes[PER_DAY:]


@pytest.mark.parametrize("column", ["half double", "payload binary"])
@pytest.mark.parametrize("cycle", [0, 1, 2])
def test_cycles_deleted_after_planning_are_an_error_unless_loss_is_allowed(
    tmp_path: Path, cycle: int, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = record(tmp_path / "queue")
    all_indexes = [index for index, _ in messages_of(path)]
    strict = reader_of(path, column, per_share=70)
    lenient = reader_of(path, column, per_share=70, fail_on_data_loss=False)
    partitions = strict.partitions()
    remove_cycle(path, cycle)

    with pytest.raises(IndexOutOfRangeError, match=r"was a cycle deleted\?\): topic=queue"):
        index_bounds(strict, partitions)
    left = index_bounds(lenient, partitions)
    assert left == all_indexes[: cycle * PER_DAY] + all_indexes[(cycle + 1) * PER_DAY :]
    assert "topic=queue" in caplog.text


def test_a_topic_that_is_not_there_is_refused(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(AnalysisException, match=r"no such topic in startingOffsets: topic=nope"):
        load(spark, folder, startingOffsets='{"nope": 1}').collect()


@pytest.mark.parametrize("column", ["half double", "payload binary"])
def test_a_file_that_its_writer_never_ended_is_read_like_the_others(
    tmp_path: Path, column: str
) -> None:
    path = record(tmp_path / "queue")
    all_indexes = [index for index, _ in messages_of(path)]
    with quire.open(path, read_only=True) as queue:
        first = queue.cycles[0]
        ended = queue.end_of_cycle(first)
        assert ended is not None
        file = Path(queue.file_for_cycle(first))
    with file.open("r+b") as content:  # the end marker, which the documents end with
        content.seek(ended[0])
        content.write(bytes(4))
    reader = reader_of(path, column)

    assert index_bounds(reader, reader.partitions()) == all_indexes


def test_a_time_ends_within_a_cycle_only_where_a_field_tells(
    spark: SparkSession, folder: Path, orders: list[int]
) -> None:
    found = load(spark, folder / "orders", endingTimestamp="2013-01-02")
    assert indexes(found) == orders[:PER_DAY]
    with pytest.raises(AnalysisException, match=r"cannot seek inside a cycle .* topic=orders"):
        load(spark, folder / "orders", endingTimestamp="2013-01-02T06:00").collect()
    with pytest.raises(AnalysisException, match=r"no message has the field: field=tyme"):
        load(
            spark, folder / "orders", startingTimestamp="2013-01-02", timestampField="tyme"
        ).collect()


def reader_of(
    path: Path,
    column: str = "half double",
    *,
    per_share: int = 1_000,
    fail_on_data_loss: bool = True,
) -> BatchReader:
    options = ReadOptions(
        str(path), records_per_partition=per_share, fail_on_data_loss=fail_on_data_loss
    )
    name, kind = column.split()
    schema = StructType().add(name, kind).add("_index", LongType())
    return BatchReader(options, schema)


def index_bounds(reader: BatchReader, partitions: list[Partition]) -> list[int]:
    batches = [batch for share in partitions for batch in reader.read(share)]
    return [row["_index"] for batch in batches for row in batch.to_pylist()]


def remove_cycle(path: Path, number: int) -> None:
    files = sorted(path.glob("*.cq4"))
    shutil.move(files[number], path.parent / f"gone-{number}")
