"""`quire.spark.scan`: the rows of the source as of its making, planned in the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructType

import quire
import quire.spark
from quire.errors import IndexOutOfRangeError, OptionsError
from spark_queues import DAYS, PER_DAY, Market, Trade, load, messages_of, record

EACH = DAYS * PER_DAY


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two topics of three days, and one of another roll cycle."""
    folder = tmp_path_factory.mktemp("queues")
    for topic in ("a", "eu/b"):
        record(folder / topic)
    with quire.open(folder / "c", roll_cycle="HOURLY") as queue, queue.appender() as appender:
        for n in range(5):
            appender.write_map({"n": n, "name": f"n{n}"})
    return folder


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=repr)


def plan_of(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    frame.explain()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"schema": "n long, name string"},
        {"schema": "n long, name string", "columns": "_index, name"},
        {"schema": "n long", "recordsPerPartition": 7, "batchRows": 5},
        {"columns": "_timestamp, n long", "timestampField": "time"},
        {"inferSchema": True, "topics": ["a"]},
        {"topics": "eu/b", "endingTimestamp": "2013-01-02"},
        {"columns": "_topic, _index, _cycle, _sequence"},
        {"columns": "_sequence", "topics": "c"},
    ],
    ids=str,
)
def test_rows_and_columns_are_those_of_the_source(
    spark: SparkSession, folder: Path, options: dict[str, Any]
) -> None:
    found = quire.spark.scan(spark, folder, **options)
    texts = {name: "a" if value == ["a"] else value for name, value in options.items()}
    expected = load(spark, folder, **texts)

    assert found.dtypes == expected.dtypes
    assert rows(found) == rows(expected)
    assert found.count() > 0


def test_a_schema_of_each_kind_is_understood(spark: SparkSession, tmp_path: Path) -> None:
    with quire.open(tmp_path / "trades") as queue, queue.appender() as appender:
        appender.write_message(Trade("EURUSD", 1.5))
    for schema in (
        quire.Schema.from_message(Trade),
        quire.Schema.from_message(Trade).to_text(),
        "spark_queues:Trade",
        "symbol string, price double",
    ):
        frame = quire.spark.scan(spark, tmp_path / "trades", schema=schema)
        assert [tuple(row)[2:] for row in frame.collect()] == [("EURUSD", 1.5)]
    exact = StructType().add("_index", LongType()).add("symbol", StringType())
    frame = quire.spark.scan(spark, tmp_path / "trades", schema=exact)
    assert frame.schema == exact

    with quire.open(tmp_path / "calls") as queue, queue.appender() as appender:
        appender.method_writer(Market).halt("EURUSD", 5)
    schema = quire.Schema.from_methods(Market)
    calls = quire.spark.scan(spark, tmp_path / "calls", schema=schema, method="halt")
    assert [tuple(row)[2:] for row in calls.collect()] == [("EURUSD", 5)]


def test_places_alone_are_made_without_python(
    spark: SparkSession,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quire.spark.read.scans._PIECE", 7)
    frame = quire.spark.scan(spark, folder, columns=["_index", "_topic"], topics=["a", "eu/b"])

    plan = plan_of(frame, capsys)
    assert "Python" not in plan
    assert "MapInArrow" not in plan
    indexes = [index for index, _ in messages_of(folder / "a")]
    assert sorted(frame.collect()) == sorted(
        (index, topic) for index in indexes for topic in ("a", "eu/b")
    )
    assert frame.count() == 2 * EACH
    part = quire.spark.scan(
        spark, folder / "a", columns="_index", startingOffsets=indexes[9], endingOffsets=indexes[60]
    )
    assert sorted(row[0] for row in part.collect()) == indexes[9:60]


def test_a_scan_is_a_snapshot_of_its_making(
    spark: SparkSession, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_map({"n": 1})
        whole = quire.spark.scan(spark, path, schema="n long")
        places = quire.spark.scan(spark, path, columns="_sequence")
        appender.write_map({"n": 2})
        for _ in range(2):
            assert (whole.count(), places.count()) == (1, 1)
            assert whole.where("n > 1").count() == 0
        assert whole.union(whole.where("n = 1")).count() == 2
        assert quire.spark.scan(spark, path).count() == 2
    assert "MapInArrow" in plan_of(whole, capsys)


def test_a_queue_without_messages_is_a_frame_without_rows(spark: SparkSession, path: Path) -> None:
    quire.open(path).close()
    for columns in ("_index", "_index, n long"):
        frame = quire.spark.scan(spark, path, columns=columns)
        assert frame.collect() == []
        assert frame.columns == [it.split()[0] for it in columns.split(", ")]


def test_what_is_wrong_is_said_when_the_scan_is_made(spark: SparkSession, folder: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"colums": "_index"}, "unknown option: colums, did you mean columns"),
        ({"maxOffsetsPerTrigger": 5}, "maxOffsetsPerTrigger is only for streams"),
        ({"topics": "x"}, "no such topic in topics: topic=x"),
        ({"columns": "n"}, "column without a type"),
    ]
    for options, expected in cases:
        with pytest.raises(OptionsError, match=expected):
            quire.spark.scan(spark, folder, **options)
    with pytest.raises(IndexOutOfRangeError, match="messages are gone"):
        quire.spark.scan(spark, folder / "a", startingOffsets=5)
