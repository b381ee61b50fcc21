"""What a restarted stream knows of messages that were deleted, and what it steps over."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from quire.errors import CorruptError, DataLossError
from quire.spark.read.batch_reader import BatchReader
from quire.spark.read.partitions import Partition
from quire.spark.read.stream import StreamReader
from quire.spark.source_options import ReadOptions
from streams import FIELDS, Driver, Source, pairs


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A topic of four days with three messages each, and one of a day with two."""
    source = Source(tmp_path / "queues")
    source.record("trades", 2)
    for _ in range(4):
        source.record("orders", 3)
        source.roll()
    return source


def file_of(source: Source, topic: str, number: int) -> Path:
    return sorted((source.path / topic).glob("*.cq4"))[number]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_planned_batch_without_one_of_its_cycles_is_a_loss(source: Source, number: int) -> None:
    driver = Driver(source)
    end = driver.plan()
    file_of(source, "orders", number).unlink()
    driver.restart()

    with pytest.raises(DataLossError, match="topic=orders expected=0x0 first=0x"):
        driver.read({"trades": 0}, end)

    driver.options["failOnDataLoss"] = "false"
    driver.restart()
    assert len([it for it in pairs(driver.read({}, end)) if it[0] == "orders"]) == 9


@pytest.mark.parametrize("number", [1, 2])
def test_a_restart_misses_a_cycle_that_was_seen_and_not_read(source: Source, number: int) -> None:
    driver = Driver(source, topics="orders")
    driver.batch(2)
    file_of(source, "orders", number).unlink()
    driver.restart()

    with pytest.raises(DataLossError, match="topic=orders expected=0x"):
        driver.batch(2)

    driver.options["failOnDataLoss"] = "false"
    driver.restart()
    while driver.batch(2):
        pass
    assert driver.numbers() == source.numbers(*(("orders", 3 * number + n) for n in range(3)))[:9]


def test_days_without_messages_are_no_loss(source: Source) -> None:
    driver = Driver(source, topics="orders")
    source.roll()
    source.roll()
    source.record("orders", 1)
    while driver.batch(2):
        driver.restart()

    assert driver.numbers() == source.numbers(("trades", 0), ("trades", 1))
    assert driver.offsets is not None
    driver.offsets.pop("/expected")  # a digest of the messages before the offset
    assert driver.offsets == {"orders": source.indexes("orders")[-1] + 1}


def test_a_checkpoint_of_offsets_alone_goes_on(source: Source) -> None:
    driver = Driver(source)
    driver.offsets = {"orders": source.indexes("orders")[5] + 1}

    assert driver.batch() == 8
    assert json.dumps(driver.plan()) == json.dumps(driver.offsets)


@pytest.mark.parametrize("damaged", ["metadata.cq4t", 1, 2, 3])
def test_a_corrupt_topic_is_stepped_over_where_losses_are_allowed(
    source: Source, damaged: str | int, caplog: pytest.LogCaptureFixture
) -> None:
    path = source.path / "orders"
    file = path / damaged if isinstance(damaged, str) else file_of(source, "orders", damaged)
    file.write_bytes(b"\1" * file.stat().st_size)
    with pytest.raises(CorruptError, match="topic=orders"):
        Driver(source).batch()

    driver = Driver(source, failOnDataLoss="false")
    driver.batch(4)
    source.record("trades", 1)
    driver.restart()
    while driver.batch(4):
        pass

    numbers = driver.numbers()
    assert [n for topic, n in numbers if topic == "trades"] == [0, 1, 2]
    readable = [n for day in range(4) if day != damaged for n in range(3 * day, 3 * day + 3)]
    expected = [] if isinstance(damaged, str) else readable
    assert [n for topic, n in numbers if topic == "orders"] == expected
    logged = [it.message for it in caplog.records if it.name == "quire.spark"]
    assert any(str(file) in line and "topic=orders" in line for line in logged)


@pytest.mark.parametrize("damaged", ["metadata.cq4t", 1, 2, 3])
def test_a_batch_read_steps_over_what_is_corrupt_where_losses_are_allowed(
    source: Source, damaged: str | int, caplog: pytest.LogCaptureFixture
) -> None:
    path = source.path / "orders"
    file = path / damaged if isinstance(damaged, str) else file_of(source, "orders", damaged)
    file.write_bytes(b"\1" * file.stat().st_size)
    with pytest.raises(CorruptError, match="topic=orders"):
        rows_of(source)

    found = rows_of(source, failOnDataLoss="false")

    days = [] if isinstance(damaged, str) else [day for day in range(4) if day != damaged]
    expected = [("orders", 3 * day + n) for day in days for n in range(3)]
    assert found == sorted([*expected, ("trades", 0), ("trades", 1)])
    assert str(file) in caplog.text


@pytest.mark.parametrize("streamed", [False, True])
def test_a_message_that_is_damaged_when_it_is_read_ends_its_cycle(
    source: Source, caplog: pytest.LogCaptureFixture, *, streamed: bool
) -> None:
    kind = StreamReader if streamed else BatchReader
    strict, lenient = (
        kind(ReadOptions.of({"path": str(source.path), "failOnDataLoss": word}), FIELDS)
        for word in ("true", "false")
    )
    if isinstance(strict, StreamReader):
        partitions = strict.partitions({}, strict.latestOffset({}, ReadAllAvailable()))
    else:
        partitions = strict.partitions()
    file = file_of(source, "orders", 1)
    content = file.read_bytes()
    at = [it.start() for it in re.finditer(rb"\xb9\x01n", content)][1]
    file.write_bytes(content[: at - 4] + b"\x00\x00\x00\x20" + content[at:])

    with pytest.raises(CorruptError, match="topic=orders"):
        read(strict, partitions)
    assert read(lenient, partitions) == source.numbers(("orders", 4), ("orders", 5))
    assert str(file) in caplog.text


def rows_of(source: Source, **options: str) -> list[tuple[str, int]]:
    """Plan and read everything, as Spark's processes do."""
    reader = BatchReader(ReadOptions.of({"path": str(source.path), **options}), FIELDS)
    return read(reader, reader.partitions())


def read(reader: BatchReader | StreamReader, partitions: list[Partition]) -> list[tuple[str, int]]:
    batches = [it for share in partitions for it in reader.read(share)]
    return pairs(row for batch in batches for row in batch.to_pylist())
