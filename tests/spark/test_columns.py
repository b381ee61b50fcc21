"""What the columns of a read hold, against what plain Python reads."""

from __future__ import annotations

import datetime as dt
import struct
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import Row, SparkSession

import quire
from quire.arrow.schema import Schema
from quire.ranges.event_time import TimeField
from spark_queues import (
    DAYS,
    START_MS,
    Market,
    Trade,
    load,
    messages_of,
    record,
)

if TYPE_CHECKING:
    from quire._native import Value


HERE = "spark_queues"


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty calls of two methods."""
    path = tmp_path_factory.mktemp("calls") / "market"
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        market = appender.method_writer(Market)
        for number in range(20):
            market.trade(Trade(f"S{number}", number / 4))
            if number % 2:
                market.halt(f"S{number}", number)
    return path


def test_metadata_tells_where_a_message_is(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "orders")
    columns = "_topic, _cycle, _sequence, _index, _timestamp, n long"
    rows = load(spark, path, columns=columns, timestampField="time").orderBy("_index").collect()

    with quire.open(path, read_only=True) as queue:
        roll_cycle = queue.roll_cycle
    assert rows == [
        (
            "orders",
            roll_cycle.to_cycle(index),
            roll_cycle.to_sequence(index),
            index,
            dt.datetime.fromtimestamp(fields["time"] / 1_000, dt.UTC).replace(tzinfo=None),
            fields["n"],
        )
        for index, fields in messages_of(path)
    ]


def test_places_alone_are_known_without_reading_messages(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = record(tmp_path / "orders")
    places = [index for index, _ in messages_of(path)]
    for file in path.glob("*.cq4"):  # what is in the messages is of no account
        file.write_bytes(file.read_bytes().replace(b"half", b"\xff\xff\xff\xff"))

    found = load(spark, path, columns="_topic,_index,_cycle,_sequence", batchRows=7).collect()
    assert sorted(row._index for row in found) == places


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        ("boolean", True, True),
        ("tinyint", 7, 7),
        ("smallint", -300, -300),
        ("int", 1 << 30, 1 << 30),
        ("bigint", 1 << 60, 1 << 60),
        ("float", 1.5, 1.5),
        ("double", 0.1, 0.1),
        ("decimal(12,3)", "12345.678", Decimal("12345.678")),
        ("string", "Zürich", "Zürich"),
        ("binary", b"\0\xff", b"\0\xff"),
        ("date", dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
        ("timestamp_ntz", dt.datetime(2024, 2, 29, 1, 2, 3), dt.datetime(2024, 2, 29, 1, 2, 3)),  # noqa: DTZ001
        ("array<bigint>", [1, 2, 3], [1, 2, 3]),
        ("struct<a:bigint,b:string>", {"a": 1, "b": "x"}, Row(a=1, b="x")),
        ("map<string,double>", {"a": 1.5}, {"a": 1.5}),
    ],
)
def test_each_type_of_spark_is_filled(
    spark: SparkSession, tmp_path: Path, declared: str, value: Value, expected: object
) -> None:
    path = tmp_path / "queue"
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_map({"value": value})
        appender.write_map({"other": 1})

    rows = load(spark, path, f"value {declared}").collect()
    assert sorted((row.value for row in rows), key=lambda it: it is None) == [expected, None]


def test_fields_that_come_later_are_null_before(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue")
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_map({"n": -1, "venue": "XNYS"})

    rows = load(spark, path, "n long, half double, venue string").collect()
    fields = [fields for _, fields in messages_of(path)]
    assert sorted(rows) == sorted(
        (each["n"], each.get("half"), each.get("venue")) for each in fields
    )


def test_a_schema_is_inferred_and_merged_across_topics(spark: SparkSession, tmp_path: Path) -> None:
    record(tmp_path / "a", per_day=4)
    record(tmp_path / "b", per_day=4, half=1, name=3, venue="XNYS")
    record(tmp_path / "c", per_day=4, n=0.5)
    frame = load(spark, tmp_path, inferSchema="true")

    assert frame.schema.simpleString() == (
        "struct<_topic:string,_index:bigint,n:double,half:double,name:string,time:bigint,"
        "venue:string>"
    )
    found: set[tuple[object, ...]] = {
        tuple(row) for row in frame.select("_topic", "n", "half", "name", "venue").collect()
    }
    assert found == {
        (topic, float(fields["n"]), float(fields["half"]), str(fields["name"]), fields.get("venue"))
        for topic in "abc"
        for _, fields in messages_of(tmp_path / topic)
    }


def test_texts_are_inferred_as_a_column_of_values(spark: SparkSession, tmp_path: Path) -> None:
    with quire.open(tmp_path / "texts") as queue, queue.appender() as appender:
        for text in ("one", "two"):
            appender.write_text(text)

    found = load(spark, tmp_path / "texts", inferSchema="true", columns="value").collect()
    assert sorted(found) == [("one",), ("two",)]


def test_calls_are_a_tagged_union(spark: SparkSession, calls: Path) -> None:
    reader = spark.read.format("quire").option("schema", f"{HERE}:Market")
    rows = reader.load(str(calls)).orderBy("_index", "method").collect()

    expected: list[tuple[Any, ...]] = []
    for number in range(20):
        expected.append(("trade", Row(symbol=f"S{number}", price=number / 4), None))
        if number % 2:
            expected.append(("halt", None, Row(symbol=f"S{number}", minutes=number)))
    assert [(row.method, row.trade, row.halt) for row in rows] == expected


def test_one_method_is_a_table(spark: SparkSession, calls: Path) -> None:
    reader = spark.read.format("quire").option("schema", f"{HERE}:Market")
    halts = reader.option("method", "halt").option("recordsPerPartition", 7).load(str(calls))

    assert halts.columns == ["_topic", "_index", "symbol", "minutes"]
    assert sorted(row.minutes for row in halts.collect()) == list(range(1, 20, 2))
    trades = reader.option("method", "trade").option("columns", "price,_sequence")
    assert sorted(trades.load(str(calls)).collect())[:2] == [(0.0, 0), (0.25, 1)]
    assert reader.option("columns", "_index").load(str(calls)).count() == 20


def test_a_message_class_and_a_schema_in_words_are_schemas(
    spark: SparkSession, tmp_path: Path
) -> None:
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        appender.write_message(Trade("EURUSD", 1.5), typed=True)

    reader = spark.read.format("quire").option("columns", "symbol,price")
    written = Schema({"symbol": "category", "price": "float64"}).to_text()
    for schema in (f"{HERE}:Trade", written, "symbol string, price double"):
        found = reader.option("schema", schema).load(str(tmp_path / "queue")).collect()
        assert found == [("EURUSD", 1.5)]


def test_uuids_are_bytes_and_times_of_day_times(spark: SparkSession, tmp_path: Path) -> None:
    @quire.message
    @dataclass
    class Seen:
        id: UUID
        at: dt.time
        count: int

    value = Seen(UUID(int=7), dt.time(1, 2, 3, 4), 2)
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        appender.write_message(value)

    for given in ({"schema": Schema.from_message(Seen).to_text()}, {"inferSchema": "true"}):
        found = load(spark, tmp_path / "queue", columns="id,at,count", **given).collect()
        assert found == [(value.id.bytes, value.at, value.count)]


def test_the_time_is_that_of_the_history_if_no_field_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    now = time.time_ns()
    with quire.open(tmp_path / "queue", source_id=3) as queue, queue.appender() as appender:
        with appender.writing_document() as document:
            document.write_bytes(history_event([now, now + 1_000, now + 2_500]))
            document.write("n", 1)
        with appender.writing_document() as document:
            document.write_bytes(history_event([1, 2, 3]))  # of a clock that is no wall clock
            document.write("n", 2)
        appender.write_map({"n": 3})

    rows = load(spark, tmp_path / "queue", "_timestamp timestamp, n long").orderBy("n").collect()
    expected = dt.datetime.fromtimestamp((now + 2_500) // 1_000 / 1e6, dt.UTC)
    assert rows[0]._timestamp.replace(tzinfo=dt.UTC) - expected < dt.timedelta(microseconds=2)
    assert [row._timestamp for row in rows[1:]] == [None, None]


def history_event(timings: list[int]) -> bytes:
    """Return the event of a history without sources, packed as a method writer packs it."""
    packed = struct.pack(f"<BBB{len(timings)}q", 0x86, 0, len(timings), *timings)
    return b"\xb9\x07history\x81" + struct.pack("<H", len(packed)) + packed


def test_the_time_may_be_inside_and_in_the_calls_of_any_method(
    spark: SparkSession, tmp_path: Path
) -> None:
    moment = dt.datetime(2024, 2, 29, 1, 2, 3, 4_000)  # noqa: DTZ001 - as Spark gives it
    ms = int(moment.replace(tzinfo=dt.UTC).timestamp() * 1_000)
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        appender.write_map({"leg": {"at": ms, "n": 1}})
        appender.write_map({"halt": {"at": ms, "n": 2}})
        appender.write_map({"leg": {"n": 3}})

    found = load(spark, tmp_path / "queue", columns="_timestamp", timestampField="leg.at")
    assert [row._timestamp for row in found.collect()] == [moment, None, None]
    inner = "leg struct<at:bigint,n:bigint>"
    frame = load(
        spark, tmp_path / "queue", f"_timestamp timestamp,{inner}", timestampField="leg.at"
    )
    assert [row._timestamp for row in frame.collect()] == [moment, None, None]

    fields = {"at": "int64", "n": "int64"}
    schema = Schema.from_methods({"leg": Schema(fields), "halt": Schema(fields)}).to_text()
    options = {"schema": schema, "columns": "_timestamp,method", "timestampField": "at"}
    calls = load(spark, tmp_path / "queue", **options).collect()
    assert sorted(calls, key=str) == sorted(
        [(moment, "leg"), (moment, "halt"), (None, "leg")], key=str
    )
    with pytest.raises(AnalysisException, match="no such field: field=when"):
        load(spark, tmp_path / "queue", **{**options, "timestampField": "when"}).collect()


def test_a_time_is_read_as_its_search_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    early = dt.datetime(1971, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    late = dt.datetime(2024, 2, 29, 1, 2, 3, 500_000, tzinfo=dt.UTC)
    values: list[Any] = [early, late, late.isoformat(), late.timestamp()]
    values += [int(late.timestamp() * 10**3), int(late.timestamp() * 10**6)]
    values += [int(late.timestamp() * 10**3) * 10**6, float(int(late.timestamp()))]
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        for value in values:
            appender.write_map({"at": value})
        with queue.tailer() as tailer:
            expected = [TimeField("at").of(payload) for payload in tailer.payloads()]

    found = load(spark, tmp_path / "queue", columns="_timestamp", timestampField="at").collect()
    assert [
        int(row._timestamp.replace(tzinfo=dt.UTC).timestamp() * 10**6) * 1_000 for row in found
    ] == expected
    with pytest.raises(
        AnalysisException, match="a column of this type cannot hold a time: field=at"
    ):
        load(
            spark, tmp_path / "queue", "_timestamp timestamp, at string", timestampField="at"
        ).collect()


def test_units_and_samples_are_heeded(spark: SparkSession, tmp_path: Path) -> None:
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        appender.write_map({"at": 86_400})
        for number in range(50):
            appender.write_map(
                {"at": 86_400 + number, "late": number} if number == 7 else {"at": 0}
            )

    options = {"columns": "_timestamp", "timestampField": "at"}
    second = dt.timedelta(seconds=86_400)
    for unit, since in (("s", second), ("ms", second / 1_000), ("us", second / 10**6)):
        rows = load(spark, tmp_path / "queue", **options, timestampUnit=unit).collect()
        found = rows[0]._timestamp.replace(tzinfo=dt.UTC)
        assert found == dt.datetime.fromtimestamp(0, dt.UTC) + since
    assert "late" in load(spark, tmp_path / "queue", inferSchema="true").columns
    assert "late" not in load(spark, tmp_path / "queue", inferSchema="true", sampleRows=1).columns


def test_a_queue_without_field_names_is_read_by_its_wire_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    with (
        quire.open(tmp_path / "queue", wire_type="FIELDLESS_BINARY") as queue,
        queue.appender() as appender,
    ):
        appender.write_text("hello")

    for options in ({}, {"wireType": "fieldless_binary"}):
        reader = load(spark, tmp_path / "queue", columns="payload", **options)
        assert [bytes(row.payload) for row in reader.collect()] == [b"\xe5hello"]


def test_sub_topics_are_a_column(spark: SparkSession, tmp_path: Path) -> None:
    with quire.open(tmp_path / "queue") as queue, queue.appender() as appender:
        for key in ("eu", "us", 7):
            appender.topic(key).write_map({"n": len(str(key))})
        appender.write_map({"n": 0})

    frame = load(spark, tmp_path / "queue", "_subtopic string, n int")
    assert {tuple(row) for row in frame.collect()} == {("eu", 2), ("us", 2), ("7", 1), (None, 0)}
    places = load(spark, tmp_path / "queue", columns="_subtopic,_sequence").collect()
    assert [row._subtopic for row in sorted(places, key=lambda row: row._sequence)] == [
        "eu",
        "us",
        "7",
        None,
    ]


def test_misfits_are_rows_with_their_reason(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=2)
    with quire.open(path) as queue, queue.appender() as appender:
        bad = appender.write_map({"n": "many"})

    reader = spark.read.format("quire").option("onError", "column").option("schema", "n int")
    frame = reader.load(str(path))
    assert frame.columns == ["_topic", "_index", "_error", "n"]
    wrong = frame.where("_error is not null").collect()
    assert [(row._index, row.n) for row in wrong] == [(bad, None)]
    assert "field=n" in wrong[0]._error
    assert frame.count() == DAYS * 2 + 1
    with pytest.raises(PythonException, match=rf"index={bad:#x}.*topic=queue"):
        load(spark, path, "n int").collect()
    with pytest.raises(AnalysisException, match="add _error string"):
        load(spark, path, "n int", onError="column").collect()
