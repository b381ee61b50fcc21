"""Schemas, and batches decoded with them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pyarrow as pa
import pytest

import quire
import wire_forms as wire
from batches import rows, values
from paths import GOLDEN
from queues import DAY_MS, copy_of, payloads
from quire import JournalAppender as Appender
from quire import JournalTailer as Tailer

if TYPE_CHECKING:
    from quire._native import Value
    from quire.arrow.declared import TypeLike

JAVA = GOLDEN / "java-5.27ea11"
TRADE = quire.Schema({"symbol": "utf8", "price": "float64", "qty": "int32"})


NO_ID = UUID(int=0)


class Side(Enum):
    BUY = 1
    SELL = 2


@quire.message(alias="ColumnsLeg")
@dataclass
class Leg:
    name: str = ""
    weights: list[float] | None = None


@quire.message(alias="ColumnsOrder")
@dataclass
class Order:
    symbol: str = ""
    price: Decimal = Decimal(0)
    qty: quire.types.int32 = 0
    side: Side = Side.BUY
    placed: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    due: date = date(1970, 1, 1)
    at: time = time(0)
    id: UUID = NO_ID
    raw: bytes = b""
    legs: list[Leg] | None = None
    notes: dict[str, int] | None = None
    best: Leg | None = None


@quire.message(alias="ColumnsNode")
@dataclass
class Node:
    inside: Node | None = None


@quire.message(alias="ColumnsFixed", bytes_layout=True)
@dataclass
class Fixed:
    number: int = 0


@quire.message(alias="ColumnsAnything")
@dataclass
class Anything:
    name: str = ""
    value: Any = None


def trade(symbol: str, price: float, qty: int) -> bytes:
    return wire.fields(
        [
            ("symbol", wire.text(symbol)),
            ("price", wire.float_forms(price)[0]),
            ("qty", wire.int_forms(qty)[-2]),
        ]
    )


def test_maps_that_quire_wrote_are_columns(appender: Appender, tailer: Tailer) -> None:
    written = [{"symbol": f"S{n}", "price": n / 2, "qty": n} for n in range(1000)]
    for value in written:
        appender.write_map(cast("dict[str, Value]", value))

    assert rows(tailer.read_batch(schema=TRADE)) == written
    assert tailer.read_batch(schema=TRADE).num_rows == 0


def test_the_index_comes_first_under_its_name_or_not_at_all(
    queue: quire.JournalQueue, appender: Appender, tailer: Tailer
) -> None:
    appender.write_bytes(wire.field("index", b"\xa1\x05"))

    with pytest.raises(ValueError, match="duplicate column name: name=index"):
        quire.Schema({"index": "int8"})
    named = tailer.read_batch(schema=quire.Schema({"index": "int8"}, index="_index"))
    tailer.to_start()
    without = tailer.read_batch(schema=quire.Schema({"index": "int8"}, index=None))

    assert named.to_pydict() == {"_index": [queue.first_index], "index": [5]}
    assert without.to_pydict() == {"index": [5]}


def test_a_batch_ends_at_its_count_and_at_its_bytes(appender: Appender, tailer: Tailer) -> None:
    text = quire.Schema.of_value()
    appender.write_many([wire.text("x" * 100)] * 50)

    assert tailer.read_batch(10, schema=text).num_rows == 10
    assert tailer.read_batch(schema=text, max_bytes=1000).num_rows == 9
    assert tailer.read_batch(schema=text, max_bytes=1).num_rows == 1
    assert tailer.read_batch(0, schema=text).num_rows == 0
    assert tailer.read_batch(schema=text).num_rows == 30


def test_texts_and_other_bare_values_are_one_column(appender: Appender, tailer: Tailer) -> None:
    for text in ("", "hello", "😀", "x" * 300):
        appender.write_text(text)

    schema = quire.Schema.of_value(name="text")
    assert values(tailer.read_batch(schema=schema), "text") == ["", "hello", "😀", "x" * 300]
    appender.write_bytes(wire.block(b"\xa1\x01\xbb\xa1\x02"))
    lists = quire.Schema.of_value(["int8"])
    assert values(tailer.read_batch(schema=lists), "value") == [[1, None, 2]]
    appender.write_bytes(wire.text("one") + wire.text("two"))
    with pytest.raises(quire.errors.WireError, match="expected=the end of the message"):
        tailer.read_batch(schema=schema)


def test_an_error_names_the_message_and_the_field_and_the_tailer_stays(
    queue: quire.JournalQueue, appender: Appender, tailer: Tailer
) -> None:
    appender.write_bytes(trade("A", 1.5, 3))
    bad = appender.write_bytes(wire.field("qty", wire.text("many")))
    appender.write_bytes(trade("B", 2.5, 4))

    assert rows(tailer.read_batch(schema=TRADE)) == [{"symbol": "A", "price": 1.5, "qty": 3}]
    for _ in range(2):
        with pytest.raises(quire.errors.WireError, match="field=qty"):
            tailer.read_batch(schema=TRADE)
        assert tailer.index == bad
    with pytest.raises(quire.errors.WireError) as raised:
        tailer.read_batch(schema=TRADE)
    (file,) = Path(queue.path).glob("*.cq4")
    assert str(raised.value).startswith(
        'the value does not fit: field=qty expected=int32 found="many" offset=4 code=0xe4 (STRING)'
        f" index={bad:#x} file={file} position=0x"
    )
    tailer.read()
    assert rows(tailer.read_batch(schema=TRADE)) == [{"symbol": "B", "price": 2.5, "qty": 4}]


EDGES = sorted(
    {sign * (2**bit + off) for bit in range(63) for off in (-1, 0, 1) for sign in (1, -1)}
)
FORMS = [(value, form) for value in EDGES for form in wire.int_forms(value)]
FLOATS = [
    (value, form)
    for whole in EDGES
    if abs(whole) < 2**52
    for value in (whole / 100, whole / 10**4, whole / 10**6)
    for form in wire.float_forms(value)
]


@pytest.mark.parametrize(
    ("kind", "cases"), [("int64", FORMS), ("float64", FORMS), ("float64", FLOATS)]
)
def test_every_form_of_a_number_is_read_and_stepped_over(
    queue: quire.JournalQueue,
    appender: Appender,
    kind: str,
    cases: list[tuple[float, bytes]],
) -> None:
    appender.write_many(
        [wire.field("v", form) + wire.field("after", b"\xa1\x07") for _, form in cases]
    )
    schema = quire.Schema({"v": kind, "after": "int8"})

    with queue.tailer() as tailer:
        batch = tailer.read_batch(schema=schema)
        tailer.to_start()
        alone = tailer.read_batch(schema=schema, columns=["after"])

    assert values(batch, "v") == [pytest.approx(value, rel=1e-15) for value, _ in cases]
    assert values(batch, "after") == values(alone, "after") == [7] * len(cases)


def test_a_field_that_must_be_there_is_missed(appender: Appender, tailer: Tailer) -> None:
    strict = quire.Schema(
        pa.schema([pa.field("a", pa.int8(), nullable=False), pa.field("b", pa.int8())])
    )
    appender.write_many(
        [wire.field("a", b"\x01"), wire.field("b", b"\x01"), wire.field("a", wire.NULL)]
    )

    batch = tailer.read_batch(schema=strict, errors="column")

    assert [(it["a"], it["b"]) for it in rows(batch)] == [(1, None), (None, None), (None, None)]
    said = values(batch, "_error")
    assert said[0] is None
    assert all("must not be null: field=a expected=int8" in it for it in said[1:])
    tailer.to_start()
    one = tailer.read_batch(schema=strict)
    assert (one.schema, one.num_rows) == (strict.arrow, 1)


def test_a_named_tailer_finishes_a_batch_when_the_next_is_asked_for(
    queue: quire.JournalQueue, appender: Appender
) -> None:
    appender.write_many([trade("A", 1.5, n) for n in range(6)])

    def left() -> list[int]:
        with queue.tailer("reader") as again:
            found = [it["qty"] for it in rows(again.read_batch(schema=TRADE))]
            raise_nothing = again.move_to_index(queue.first_index or 0)
            assert raise_nothing
        return found

    tailer = queue.tailer("columns")
    first = tailer.read_batch(2, schema=TRADE)
    other = queue.tailer("columns", shared=True)
    assert rows(other.read_batch(1, schema=TRADE)) == rows(first)[:1]
    tailer.read_batch(2, schema=TRADE)
    late = queue.tailer("columns", shared=True)
    assert rows(late.read_batch(1, schema=TRADE)) == [{"symbol": "A", "price": 1.5, "qty": 2}]
    assert left() == [0, 1, 2, 3, 4, 5]


def test_batches_may_be_read_backward(appender: Appender, tailer: Tailer) -> None:
    appender.write_many([trade("A", 1.5, n) for n in range(4)])
    tailer.direction = "backward"
    tailer.to_end()

    assert values(tailer.read_batch(3, schema=TRADE), "qty") == [3, 2, 1]


def test_of_sub_topics_only_those_asked_for_are_decoded(appender: Appender, tailer: Tailer) -> None:
    for n in range(6):
        appender.topic(n % 3).write_map({"symbol": "A", "qty": n})
    appender.write_map({"symbol": "B", "qty": 7})
    tailer.topics(1, 2)

    batch = tailer.read_batch(schema=TRADE)

    assert values(batch, "qty") == [1, 2, 4, 5]
    assert tailer.read_batch(schema=TRADE).num_rows == 0


def test_a_batch_outlives_its_queue(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_bytes(trade("A", 1.5, 3))
        batch = tailer.read_batch(schema=TRADE)
    for file in path.iterdir():
        file.unlink()

    assert rows(batch) == [{"symbol": "A", "price": 1.5, "qty": 3}]


def test_columns_are_selected_by_name_also_inside_others(
    appender: Appender, tailer: Tailer
) -> None:
    appender.write_map({"a": 1, "b": {"c": 2, "d": {"e": 3, "f": "x"}}, "g": [{"h": 4}]})
    schema = quire.Schema(
        {"a": "int8", "b": {"c": "int8", "d": {"e": "int8", "f": "utf8"}}, "g": [{"h": "int8"}]}
    )

    def picked(*names: str) -> list[dict[str, Any]]:
        tailer.to_start()
        return rows(tailer.read_batch(schema=schema, columns=names))

    assert picked("g", "a") == [{"g": [{"h": 4}], "a": 1}]
    assert picked("b.d.e") == [{"b": {"d": {"e": 3}}}]
    assert picked("b.d", "a", "b.c") == [{"b": {"d": {"e": 3, "f": "x"}, "c": 2}, "a": 1}]
    assert picked("b.c", "b") == [{"b": {"c": 2, "d": {"e": 3, "f": "x"}}}]
    assert picked() == [{}]
    for wrong in ("x", "b.x", "a.x", "g.h"):
        with pytest.raises(KeyError, match="no such column"):
            schema.select([wrong])
    with pytest.raises(ValueError, match="require schema="):
        tailer.read_batch(columns=["a"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"a": "int7"},
        {"a": pa.large_string()},
        {"a": pa.timestamp("ns", "Europe/Paris")},
        {"a": [pa.float16()]},
        {"a": pa.map_(pa.int8(), pa.int8())},
        {"a": pa.decimal128(5, -1)},
        {"_error": "int8"},
        {"a": {"€": "int8"}},
        pa.schema([("a", pa.int8()), ("a", pa.int8())]),
    ],
    ids=str,
)
def test_what_is_no_schema_is_refused(wrong: dict[str, TypeLike]) -> None:
    with pytest.raises(ValueError, match=r"type|duplicate column name|Latin-1"):
        quire.Schema(wrong)


def test_nesting_has_a_bound() -> None:
    kind: Any = "int8"
    for _ in range(80):
        kind = [kind]

    with pytest.raises(ValueError, match="nested too deep"):
        quire.Schema({"a": kind})


def test_schemas_pickle_compare_and_can_be_read() -> None:
    schema = quire.Schema({"a": "int8", "b": {"c": ["utf8"]}}, history=True, index="n")

    again = pickle.loads(pickle.dumps(schema))

    assert again == schema
    assert hash(again) == hash(schema)
    assert again.arrow == schema.arrow
    assert schema != TRADE
    assert schema.names == ["a", "b"]
    assert schema.arrow.names == ["n", "a", "b", "history"]
    assert repr(TRADE) == "Schema(\n  symbol: string,\n  price: float64,\n  qty: int32,\n)"


def test_the_columns_of_a_class_are_those_of_its_annotations(
    appender: Appender, tailer: Tailer
) -> None:
    order = Order(
        "ABC",
        Decimal("1.50"),
        -7,
        Side.SELL,
        datetime(2024, 1, 15, 10, 30, 0, 123456, tzinfo=UTC),
        date(2024, 1, 16),
        time(1, 2, 3, 4),
        UUID(int=2**127 + 5),
        b"\0\xff",
        [Leg("one", [1.5, 2.0]), Leg("two")],
        {"x": 1},
        Leg("best"),
    )
    appender.write_message(order)
    appender.write_message(order, typed=True)
    appender.write_message(Order())
    schema = quire.Schema.from_message(Order, types={"price": "decimal128(10, 2)"})

    batch = tailer.read_batch(schema=schema)

    assert batch.schema == schema.arrow
    first, second, empty = rows(batch)
    assert first == second
    assert first == {
        "symbol": "ABC",
        "price": Decimal("1.50"),
        "qty": -7,
        "side": "SELL",
        "placed": order.placed,
        "due": order.due,
        "at": order.at,
        "id": order.id.bytes,
        "raw": b"\0\xff",
        "legs": [{"name": "one", "weights": [1.5, 2.0]}, {"name": "two", "weights": None}],
        "notes": [("x", 1)],
        "best": {"name": "best", "weights": None},
    }
    assert (empty["qty"], empty["side"], empty["legs"]) == (0, "BUY", None)
    assert schema.arrow.field("price").type == pa.decimal128(10, 2)
    assert quire.Schema.from_message(Order).arrow.field("price").type == pa.string()


@quire.message(alias="ColumnsBigLeg")
@dataclass
class BigLeg(Leg):
    size: int = 0


def test_a_message_that_names_another_type_is_a_misfit(appender: Appender, tailer: Tailer) -> None:
    for leg in (Leg("one"), BigLeg("two")):
        appender.write_message(leg)
        appender.write_message(leg, typed=True)
    appender.write_message(Order(), typed=True)
    schema = quire.Schema.from_message(Leg)

    batch = tailer.read_batch(schema=schema, errors="column")

    assert values(batch, "name") == ["one", "one", "two", "two", None]
    assert "expected=ColumnsLeg or ColumnsBigLeg found=!ColumnsOrder" in values(batch, "_error")[-1]
    tailer.to_start()
    strict = quire.Schema.from_message(BigLeg).select(["name"])
    assert values(tailer.read_batch(1, schema=strict), "name") == ["one"]
    with pytest.raises(quire.errors.WireError, match="expected=ColumnsBigLeg found=!ColumnsLeg"):
        tailer.read_batch(1, schema=strict)
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_a_class_without_columns_is_refused() -> None:
    with pytest.raises(TypeError, match=r"quire\.message"):
        quire.Schema.from_message(int)
    with pytest.raises(ValueError, match="contains itself"):
        quire.Schema.from_message(Node)
    with pytest.raises(ValueError, match="name=value"):
        quire.Schema.from_message(Anything)
    with pytest.raises(ValueError, match="class=ColumnsFixed bytes_layout"):
        quire.Schema.from_message(Fixed)
    known = quire.Schema.from_message(Anything, types={"value": "int64"})
    assert known.arrow.field("value").type == pa.int64()


def test_a_schema_is_inferred_from_what_is_there(
    queue: quire.JournalQueue, appender: Appender
) -> None:
    appender.write_map({"n": 1, "x": 1, "s": "a", "nested": {"deep": [1, 2.5]}, "none": None})
    appender.write_map({"s": 5, "n": 2**40, "x": 2.5, "flag": True, "list": [], "raw": b"x"})
    appender.write_map({"nested": {"other": "t"}, "list": [{"k": 1}, {"l": None}]})
    appender.write_bytes(wire.field("when", wire.temporal(datetime(2024, 1, 1, tzinfo=UTC))))
    appender.write_bytes(wire.field("id", wire.uuid(UUID(int=7))))

    schema = quire.Schema.infer(queue)

    assert schema == quire.Schema(
        {
            "n": "int64",
            "x": "float64",
            "s": "utf8",
            "nested": {"deep": ["float64"], "other": "utf8"},
            "none": "utf8",
            "flag": "bool",
            "list": [{"k": "int64", "l": "utf8"}],
            "raw": "binary",
            "when": "timestamp",
            "id": "uuid",
        }
    )
    with queue.tailer() as tailer:
        assert tailer.read_batch(schema=schema).num_rows == 5
    with pytest.raises(ValueError, match="field=s types=int, text"):
        quire.Schema.infer(queue, conflicts="raise")


def test_what_cannot_be_inferred_is_said(queue: quire.JournalQueue, appender: Appender) -> None:
    with pytest.raises(ValueError, match="no messages to infer"):
        quire.Schema.infer(queue)
    appender.write_map({"a": {"b": 1}})
    appender.write_map({"a": {"b": [2]}})
    with pytest.raises(ValueError, match=r"field=a\.b types=int, list"):
        quire.Schema.infer(queue)
    appender.write_text("hello")
    with pytest.raises(ValueError, match="types=text, struct"):
        quire.Schema.infer(queue)
    index = appender.write_bytes(b"\x93")
    with pytest.raises(quire.errors.WireError, match=f"index={index:#x}"):
        quire.Schema.infer(queue)


def test_the_history_in_front_of_a_message_is_no_column(
    queue: quire.JournalQueue, appender: Appender
) -> None:
    past = bytes.fromhex("ba8000810b00860001e8032a36fe9c9717")
    appender.write_bytes(past + wire.event("n", b"\x01"))

    assert quire.Schema.infer(queue).names == ["n"]
    appender.write_map({"history": "mine"})
    assert quire.Schema.infer(queue).names == ["n", "history"]
    seen = quire.Schema({"n": "int8"}, history=True)
    with queue.tailer() as tailer:
        (row,) = rows(tailer.read_batch(1, schema=seen))
    assert row == {"n": 1, "history": {"sources": [], "timings": [1_700_000_000_000_001_000]}}


def test_texts_are_inferred_as_one_column(queue: quire.JournalQueue, appender: Appender) -> None:
    appender.write_text("hello")

    assert quire.Schema.infer(queue) == quire.Schema.of_value("utf8")


def test_a_sample_is_spread_over_the_whole_queue(
    queue: quire.JournalQueue, appender: Appender, clock: quire.ManualClock
) -> None:
    for day in range(4):
        appender.write_many([wire.field(f"day{day}", b"\x01")] * 500)
        clock.advance(DAY_MS)
    appender.write_bytes(wire.field("last", b"\x01"))

    names = quire.Schema.infer(queue, sample=100).names

    assert names == ["day0", "day1", "day2", "day3", "last"]
    assert quire.Schema.infer(queue, sample=1).names == ["day0"]


def test_the_scalars_that_java_wrote_are_inferred_and_decoded(
    tmp_path: Path,
    queue: quire.JournalQueue,
    appender: Appender,
    tailer: Tailer,
) -> None:
    with quire.open(copy_of(JAVA / "b_scalars", tmp_path / "q"), read_only=True) as java:
        appender.write_many(payloads(java)[:9])  # behind them are bare values

    schema = quire.Schema.infer(queue)
    batch = tailer.read_batch(schema=schema)
    found = {name: value for row in rows(batch) for name, value in row.items() if value is not None}

    expected: dict[str, Any] = {
        "i8min": -128,
        "u8": 200,
        "u16": 60_000,
        "i32min": -(2**31),
        "u32": 4_000_000_000,
    }
    expected |= {"i64": float(2**40), "e-32769": -32769, "f32": 1.5, "d123.45": 123.45}
    expected |= {"d1.0E-10": 1e-10, "d4.9E-324": 5e-324, "d-Infinity": float("-inf"), "t": True}
    assert {name: found[name] for name in expected} == expected


def test_a_declared_long_is_whole_where_java_stored_a_float(tmp_path: Path) -> None:
    longs = {"i64": 2**40, "i64n": -(2**40), "i64max": 2**63 - 1, "i64min": -(2**63)}
    with (
        quire.open(copy_of(JAVA / "b_scalars", tmp_path / "q"), read_only=True) as queue,
        queue.tailer() as tailer,
    ):
        batch = tailer.read_batch(schema=quire.Schema(dict.fromkeys(longs, "int64")))

    assert longs in rows(batch)


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1a\xa7\x01",
        b"\xc1a\x82\xff\xff\xff\x7f\x01",
        b"\xc5a",
        b"\xc1a" + b"\xb6\x00" * 30_000,
        b"\xc1a\xb8" + b"\xff" * 9 + b"\x7f",
        b"\xc1a\x8d" + b"\xff" * 16,
        b"\xc1a\x8b\x00",
        b"\xc1a\xe3\xff\xfe\xfd",
        wire.field("d", wire.typed("gzip", wire.blob(b"\x1f\x8b"))),
        b"\x86\x05\x01",
        b"\xff\xfe",
    ],
    ids=lambda data: data[:12].hex(),
)
def test_bytes_that_are_no_message_are_a_misfit(
    appender: Appender, tailer: Tailer, data: bytes
) -> None:
    schema = quire.Schema({"b": "int64", "a": "utf8", "c": ["binary"], "d": "binary"})
    appender.write_many([wire.field("b", b"\x01"), data, wire.field("b", b"\x02")])

    batch = tailer.read_batch(schema=schema, errors="column")

    assert values(batch, "b") == [1, None, 2]
    assert [it is None for it in values(batch, "_error")] == [True, False, True]
    tailer.to_start()
    assert tailer.read_batch(schema=schema).num_rows == 1
    with pytest.raises(quire.errors.WireError, match=r"index=.* file=.* position="):
        tailer.read_batch(schema=schema)


def test_quire_is_imported_without_pyarrow() -> None:
    program = "import sys, quire; quire.Schema; sys.exit('pyarrow' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_batch_is_a_data_frame(appender: Appender, tailer: Tailer) -> None:
    appender.write_many([trade("A", 1.5, 3), trade("B", 2.5, 4)])

    frame = tailer.read_batch(schema=TRADE).to_pandas()

    assert frame["qty"].sum() == 7
    assert list(frame["symbol"]) == ["A", "B"]
