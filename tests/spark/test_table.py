"""Tables of an archive and its live queues: each message once, whatever happens meanwhile."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import quire
import quire.spark
from queues import DAY_MS, START_MS
from quire.archive import archive
from quire.errors import OptionsError
from reference import read_queue

PER_DAY = 100
SCHEMA = quire.Schema({"n": "int32", "price": "float64", "name": "utf8"})


class Market(Protocol):
    """What the tests call."""

    def to(self, key: str) -> Market: ...
    def trade(self, symbol: str, price: float) -> None: ...
    def halt(self, symbol: str) -> None: ...


def fill(path: Path, days: list[int], **more: Any) -> None:  # noqa: ANN401 - values of a message
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**18) as queue,
        queue.appender() as appender,
    ):
        for day in days:
            clock.now_ms = START_MS + day * DAY_MS
            for n in range(PER_DAY):
                appender.write_map({"n": n, "price": n / 4, "name": f"{day}.{n}", **more})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue of three days; the last is still written to."""
    path = tmp_path / "a [b] {c}*?" / "orders"
    fill(path, [0, 1, 2])
    return path


@pytest.fixture
def dest(path: Path) -> Path:
    return path.parent / "archive"


def messages(table: DataFrame) -> list[tuple[int, bytes]]:
    rows = table.select("_index", "payload").collect()
    return sorted((row[0], bytes(row[1])) for row in rows)


def test_each_message_is_there_once(spark: SparkSession, path: Path, dest: Path) -> None:
    archive(path, dest)
    expected = read_queue(path)

    assert messages(quire.spark.table(spark, dest)) == expected
    table = quire.spark.table(spark, path, dest)
    assert messages(table) == expected
    assert table.columns == ["_index", "_cycle", "_sequence", "_topic", "payload"]
    assert {row[0] for row in table.select("_topic").collect()} == {"orders"}

    fill(path, [2, 3])
    assert messages(table) == expected  # a snapshot
    assert messages(quire.spark.table(spark, path, dest)) == read_queue(path)


def test_archived_cycles_may_be_deleted(spark: SparkSession, path: Path, dest: Path) -> None:
    archive(path, dest, schema=SCHEMA)
    expected = read_queue(path)
    before = quire.spark.table(spark, dest)
    archive(path, dest, delete=True)
    assert len([*path.glob("*.cq4")]) == 1

    assert messages(before) == expected
    table = quire.spark.table(spark, dest)
    assert messages(table) == expected
    assert table.agg(f.sum("n"), f.count("price")).head() == (
        3 * sum(range(PER_DAY)),
        3 * PER_DAY,
    )


def test_a_cycle_that_went_after_the_table_was_made_is_an_error(
    spark: SparkSession, path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(path, dest)
    before = read_queue(path)
    small = quire.spark.table(spark, dest)
    monkeypatch.setattr("quire.spark.tables.SMALL_MESSAGES", 0)
    table = quire.spark.table(spark, dest)
    fill(path, [3])
    archive(path, dest, delete=True)
    expected = read_queue(path)

    with pytest.raises(Exception, match=r"are gone \(was a cycle deleted"):
        table.count()
    assert messages(small) == before

    assert messages(quire.spark.table(spark, dest))[-PER_DAY:] == expected
    assert quire.spark.table(spark, dest).count() == 4 * PER_DAY


def test_the_archive_is_read_by_parquets_reader_with_the_filters(
    spark: SparkSession, path: Path, dest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(path, dest, schema=SCHEMA)
    first = read_queue(path)[0][0]
    table = quire.spark.table(spark, dest).where((f.col("_index") < first + 10) & (f.col("n") > 2))

    table.select("n", "name").explain()

    plan = capsys.readouterr().out
    (scan,) = [line for line in plan.splitlines() if "FileScan parquet" in line]
    assert f"LessThan(_index,{first + 10})" in scan
    assert "GreaterThan(n,2)" in scan
    assert "ReadSchema: struct<_index:bigint,n:int,name:string>" in scan
    assert "Python" not in plan  # the live part is small
    assert [row[0] for row in table.select("n").collect()] == [*range(3, 10)]


def test_topics_of_a_directory_are_one_table(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path / "queues/eu/trades", [0, 1])
    fill(tmp_path / "queues/us/trades", [0, 1, 2])
    archive(tmp_path / "queues", tmp_path / "archive")
    fill(tmp_path / "queues/eu/trades", [5])

    table = quire.spark.table(spark, tmp_path / "archive")

    counts = {row[0]: row[1] for row in table.groupBy("_topic").count().collect()}
    assert counts == {"eu/trades": 3 * PER_DAY, "us/trades": 3 * PER_DAY}
    assert table.select("_topic", "_index").distinct().count() == 6 * PER_DAY


KINDS = {
    "a": "bool", "b": "int8", "c": "int16", "d": "int64", "e": "uint8", "f": "uint32",
    "g": "uint64", "h": "float32", "i": "category", "j": "binary", "k": "timestamp[ms, UTC]",
    "l": "timestamp[us]", "m": "date", "n": "time", "o": "decimal128(20, 4)", "p": "uuid",
}  # fmt: skip
VALUES: dict[str, Any] = {
    "a": True, "b": -5, "c": 300, "d": 2**40, "e": 200, "f": 2**32 - 1, "g": 2**62, "h": 0.5,
    "i": "few", "j": b"\x00\xff", "k": datetime(2024, 1, 15, 10, 30, 0, 1000, UTC),
    "l": datetime.fromisoformat("2024-01-15T10:30:00"), "m": date(2024, 1, 15),
    "n": time(10, 30, 1, 5),
    "o": Decimal("12.5"), "p": UUID(int=7),
}  # fmt: skip


@pytest.mark.parametrize("small", [0, 65_536])
def test_columns_have_the_same_types_in_both_parts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr("quire.spark.tables.SMALL_MESSAGES", small)
    path, dest = tmp_path / "kinds", tmp_path / "archive"
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for _ in range(2):
            with appender.writing_document() as document:
                for name, value in VALUES.items():
                    document.wire.write(name, value)
                document.wire.write("q", {"x": 1, "y": {"z": "deep"}})
                document.wire.write("r", [1, 2, 3])
            clock.advance(DAY_MS)
    kinds: dict[str, Any] = {**KINDS, "q": {"x": "int32", "y": {"z": "utf8"}}, "r": ["uint16"]}
    archive(path, dest, schema=quire.Schema(kinds))

    one, other = quire.spark.table(spark, dest).orderBy("_index").drop("_index").collect()

    assert one["_error"] is None
    assert {name: one[name] for name in kinds} == {name: other[name] for name in kinds}
    assert [one[name] for name in ("d", "g", "i", "o")] == [2**40, 2**62, "few", Decimal("12.5")]
    assert (one["q"]["y"]["z"], one["r"], bytes(one["j"])) == ("deep", [1, 2, 3], b"\x00\xff")


@pytest.mark.parametrize("archived", [None, "trade"])
def test_calls_of_one_method_are_those_that_the_source_gives(
    spark: SparkSession, tmp_path: Path, archived: str | None
) -> None:
    path, dest = tmp_path / "calls", tmp_path / "archive"
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        market = appender.method_writer(Market)
        for _ in range(2):
            market.trade("EURUSD", 1.5)
            market.halt("EURUSD")
            market.to("key").trade("USDJPY", 2.5)
            appender.write_text("junk")
            clock.advance(DAY_MS)
    schema = quire.Schema.from_methods(Market)
    archive(path, dest, schema=schema, method=archived)

    table = quire.spark.table(spark, dest, method="trade")

    columns = ["_index", "_subtopic", "symbol", "price", "_error"]
    reader = spark.read.format("quire").option("schema", schema.to_text())
    source = reader.option("method", "trade").option("onError", "column")
    expected = source.option("columns", ", ".join(columns)).load(str(path))
    found = table.select(*columns).orderBy("_index", "symbol").collect()
    assert found == expected.orderBy("_index", "symbol").collect()
    assert len(found) == 6
    assert quire.spark.table(spark, dest).select("_index").distinct().count() == 8
    with pytest.raises(OptionsError, match="no such method: method=sell"):
        quire.spark.table(spark, dest, method="sell")


def test_a_cycle_that_could_not_be_archived_is_read_from_the_queue(
    spark: SparkSession, path: Path, dest: Path
) -> None:
    expected = read_queue(path)
    middle = path / "20240116T4.cq4"
    whole = middle.read_bytes()
    middle.write_bytes(whole[: len(whole) // 400])
    assert len(archive(path, dest).failed) == 1

    with pytest.raises((PythonException, Exception), match=middle.name):
        quire.spark.table(spark, dest).count()
    middle.write_bytes(whole)
    assert messages(quire.spark.table(spark, dest)) == expected


def test_a_table_that_would_lack_messages_is_refused(
    spark: SparkSession, path: Path, dest: Path
) -> None:
    archive(path, dest)
    fill(path, [3])
    (path / "20240117T4.cq4").unlink()

    with pytest.raises(
        quire.errors.ArchiveError, match="cycle=19739 was deleted before it was archived"
    ):
        quire.spark.table(spark, dest)
    left = quire.spark.table(spark, dest, failOnDataLoss=False)
    assert left.count() == 3 * PER_DAY

    path.rename(path.with_name("moved"))
    with pytest.raises(quire.errors.ArchiveError, match="its queue is gone"):
        quire.spark.table(spark, dest)
    assert quire.spark.table(spark, dest, failOnDataLoss="false").count() == 2 * PER_DAY


def test_columns_that_some_files_lack_are_refused(
    spark: SparkSession, path: Path, dest: Path
) -> None:
    archive(path, dest, schema=quire.Schema({"n": "int32"}))
    fill(path, [3])
    archive(path, dest, schema=SCHEMA)

    with pytest.raises(
        quire.errors.ArchiveError, match=r"column=price.*cycles=2 first=19737 last=19738"
    ):
        quire.spark.table(spark, dest)
    table = quire.spark.table(spark, dest, columns="_index, n")
    assert table.agg(f.count("n")).head() == (4 * PER_DAY,)
    table = quire.spark.table(spark, dest, schema=quire.Schema({"n": "int32"}))
    assert table.agg(f.count("n")).head() == (4 * PER_DAY,)


def test_inferred_columns_are_null_in_older_files(
    spark: SparkSession, path: Path, dest: Path
) -> None:
    archive(path, dest, schema="infer")
    fill(path, [3], late="yes")
    fill(path, [4], late="yes")
    archive(path, dest, schema="infer")

    found = quire.spark.table(spark, dest).groupBy("late").count().collect()

    assert sorted((row[1], row[0]) for row in found) == [(2 * PER_DAY, "yes"), (3 * PER_DAY, None)]


def test_what_does_not_go_with_a_table_is_refused(
    spark: SparkSession, path: Path, dest: Path
) -> None:
    with pytest.raises(quire.errors.ArchiveError, match="no archive here"):
        quire.spark.table(spark, path)
    archive(path, dest)
    with pytest.raises(OptionsError, match="does not support the option startingOffsets"):
        quire.spark.table(spark, dest, startingOffsets="earliest")
    with pytest.raises(OptionsError, match="failOnDataLoss must be"):
        quire.spark.table(spark, dest, failOnDataLoss="maybe")
    with pytest.raises(OptionsError, match="no such column: column=price"):
        quire.spark.table(spark, dest, columns=["price"])
    with pytest.raises(quire.errors.ArchiveError, match=r"column=n topic=orders.*archived=None"):
        quire.spark.table(spark, dest, schema=SCHEMA)
    fill(path.parent / "others", [0])
    with pytest.raises(quire.errors.ArchiveError, match="holds no cycle of this queue"):
        quire.spark.table(spark, path.parent / "others", dest)


def test_a_table_is_right_while_an_archive_run_is_at_work(
    spark: SparkSession, path: Path, dest: Path
) -> None:
    archive(path, dest)
    for day in range(3, 6):
        fill(path, [day])
        expected = [index for index, _ in read_queue(path)]
        run = threading.Thread(target=archive, args=(path, dest))
        run.start()
        tables = [quire.spark.table(spark, dest) for _ in range(3)]
        found = [[row[0] for row in it.select("_index").collect()] for it in tables]
        run.join()
        assert [sorted(indexes) for indexes in found] == [expected] * 3


def test_what_is_archived_to_its_end_needs_no_python(
    spark: SparkSession, path: Path, dest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(path, dest)
    expected = read_queue(path)[: 2 * PER_DAY]
    path.rename(path.with_name("moved"))

    table = quire.spark.table(spark, dest, failOnDataLoss=False)
    table.explain()

    plan = capsys.readouterr().out
    assert plan.count("Scan") == 1
    assert "Python" not in plan
    assert messages(table) == expected


def test_a_rest_of_large_messages_is_left_to_the_workers(
    spark: SparkSession, path: Path, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(path, dest)
    monkeypatch.setattr("quire.spark.tables._SMALL_BYTES", 1_000)

    assert messages(quire.spark.table(spark, dest)) == read_queue(path)
