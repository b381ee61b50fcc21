"""Method calls as columns: a table for each method, or all in one."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

import quire
import wire_forms as wire
from batches import rows, values
from paths import GOLDEN
from queues import copy_of

QUEUES = GOLDEN / "java-5.27ea11"
DTO = {
    "name": "utf8",
    "qty": "int32",
    "id": "int64",
    "px": "float64",
    "ok": "bool",
    "tags": ["utf8"],
}
MARKET = quire.Schema.from_methods(
    {
        "trade": quire.Schema({"symbol": "utf8", "price": "float64"}),
        "note": {"text": "utf8"},
        "move": {"x": "int32", "y": "int32"},
        "close": {},
    },
    ids={"note": 115},
)
JAVA = quire.Schema.from_methods(
    {
        "noArg": {},
        "intArg": {"value": "int32"},
        "longArg": {"value": "int64"},
        "dblArg": {"value": "float64"},
        "boolArg": {"value": "bool"},
        "strArg": {"value": "utf8"},
        "dto": quire.Schema(DTO),
        "two": {"text": "utf8", "number": "int32"},
        "three": {"text": "utf8", "number": "int32", "dto": DTO},
        "anEnum": {"value": "category"},
        "listArg": {"value": ["utf8"]},
        "via": {"name": "utf8"},
        "done": {"text": "utf8"},
        "deeper": {"level": "int32"},
    }
)


def trade(symbol: str, price: float) -> bytes:
    row = wire.fields([("symbol", wire.text(symbol)), ("price", wire.float_forms(price)[0])])
    return wire.event("trade", wire.block(row))


CALLS = [
    trade("A", 1.5),
    wire.event("note", wire.text("hello")),
    wire.event("move", b"\xa1\x01", b"\xa4\xff"),
    wire.event("close"),
    b"\xba\x73" + wire.text("by id"),
    wire.event("note", wire.text("before")) + trade("B", 2.5),
    wire.event("later", b"\xa1\x07"),
    wire.event("trade", wire.NULL),
]
KNOWN = [CALLS[place] for place in (0, 1, 2, 3, 4, 5, 7)]


def test_each_method_is_a_table(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many(KNOWN)

    batches = tailer.read_batches(schema=MARKET)

    assert {name: batch.schema for name, batch in batches.items()} == MARKET.methods
    assert {name: rows(batch) for name, batch in batches.items()} == {
        "trade": [
            {"symbol": "A", "price": 1.5},
            {"symbol": "B", "price": 2.5},
            {"symbol": None, "price": None},
        ],
        "note": [{"text": "hello"}, {"text": "by id"}, {"text": "before"}],
        "move": [{"x": 1, "y": -1}],
        "close": [{}],
    }
    assert batches["note"]["index"][2] == batches["trade"]["index"][1]


def test_one_method_alone_passes_over_the_others(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many(CALLS)
    first = queue.first_index or 0

    trades = tailer.read_batch(2, schema=MARKET, method="trade")

    assert trades.schema == MARKET.methods["trade"]
    assert trades.to_pydict() == {
        "index": [first, first + 5],
        "symbol": ["A", "B"],
        "price": [1.5, 2.5],
    }
    assert rows(tailer.read_batch(2, schema=MARKET, method="trade")) == [
        {"symbol": None, "price": None}
    ]
    assert tailer.read_batch(schema=MARKET, method="trade").num_rows == 0


def test_a_batch_of_one_method_is_empty_only_at_the_end(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many([*[wire.event("close")] * 3000, trade("A", 1.5), wire.event("close")])

    assert rows(tailer.read_batch(5, schema=MARKET, method="trade")) == [
        {"symbol": "A", "price": 1.5}
    ]
    assert tailer.read_batch(5, schema=MARKET, method="trade").num_rows == 0


def test_the_union_has_a_row_for_each_call_in_their_order(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many(CALLS)

    batch = tailer.read_batch(schema=MARKET)

    assert batch.schema == MARKET.arrow
    assert batch.schema.names == ["index", "method", "trade", "note", "move", "close"]
    found = [(it["method"], it.get(it["method"], "?")) for it in rows(batch)]
    assert found == [
        ("trade", {"symbol": "A", "price": 1.5}),
        ("note", {"text": "hello"}),
        ("move", {"x": 1, "y": -1}),
        ("close", {}),
        ("note", {"text": "by id"}),
        ("note", {"text": "before"}),
        ("trade", {"symbol": "B", "price": 2.5}),
        ("later", "?"),
        ("trade", {"symbol": None, "price": None}),
    ]
    others = [row[name] for row in rows(batch) for name in MARKET.names if name != row["method"]]
    assert set(others) == {None}


def test_what_is_no_call_of_a_known_method_is_an_error_or_in_a_table_of_its_own(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    odd = [
        wire.event("later", b"\xa1\x07"),
        wire.text("a text"),
        b"\x8f",
        wire.event("note", wire.text("good")) + wire.event("move", b"\xa1\x01"),
        wire.event("note", wire.text("kept")) + b"\xb9\x02m",
        wire.event("move", b"\xa1\x01", wire.text("x")),
    ]
    appender.write_many(odd)

    batches = tailer.read_batches(schema=MARKET, errors="column")

    first = queue.first_index or 0
    said = batches["_error"].to_pydict()
    assert said["index"] == [first, first + 1, first + 2, first + 4]
    assert "no method of this name: field=later" in said["_error"][0]
    assert "expected=a name" in said["_error"][1]
    assert "expected=a method call" in said["_error"][2]
    assert rows(batches["note"]) == [
        {"text": "good", "_error": None},
        {"text": "kept", "_error": None},
    ]
    moves = rows(batches["move"])
    assert [(it["x"], it["y"]) for it in moves] == [(None, None), (None, None)]
    assert "field=move expected=a list of arguments" in moves[0]["_error"]
    assert "field=move.y expected=int32" in moves[1]["_error"]

    for _ in odd:
        tailer.move_to_index(first)
        with pytest.raises(quire.errors.WireError, match=f"index={first:#x}"):
            tailer.read_batches(schema=MARKET)
        first += 1


def test_nothing_is_left_of_a_message_whose_second_call_does_not_fit(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    half = wire.event("note", wire.text("half")) + wire.event("move", wire.text("x"))
    appender.write_many([trade("A", 1.5), half])

    batches = tailer.read_batches(schema=MARKET)
    assert {name: batch.num_rows for name, batch in batches.items()} == {
        "trade": 1,
        "note": 0,
        "move": 0,
        "close": 0,
    }
    tailer.to_start()
    assert values(tailer.read_batch(schema=MARKET), "method") == ["trade"]


def test_misfits_of_the_union_and_of_one_method_keep_their_place(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    bad = wire.event("trade", wire.block(wire.field("price", wire.text("x"))))
    appender.write_many([trade("A", 1.5), bad, wire.text("none"), trade("B", 2.5)])

    union = rows(tailer.read_batch(schema=MARKET, errors="column"))
    tailer.to_start()
    alone = rows(tailer.read_batch(schema=MARKET, method="trade", errors="column"))

    assert [it["method"] for it in union] == ["trade", "trade", None, "trade"]
    assert [it["trade"] is None for it in union] == [False, True, True, False]
    for said in (union, alone):
        assert [it["_error"] is None for it in said] == [True, False, False, True]
        assert "field=trade.price expected=float64" in said[1]["_error"]
    assert [it["symbol"] for it in alone] == ["A", None, None, "B"]


def test_some_of_the_methods_and_fields_may_be_selected(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many(KNOWN)
    some = MARKET.select(["move", "trade.price"])

    batches = tailer.read_batches(schema=some)

    assert some.names == ["trade", "move"]
    assert {name: batch.schema.names for name, batch in batches.items()} == {
        "trade": ["index", "price"],
        "move": ["index", "x", "y"],
    }
    assert values(batches["trade"], "price") == [1.5, 2.5, None]
    tailer.to_start()
    assert some.arrow.names == ["index", "method", "trade", "move"]
    assert values(tailer.read_batch(schema=some), "method") == ["trade", "move", *["trade"] * 2]
    for wrong, problem in {"sale": "sale", "move.x": "move", "trade.volume": "volume"}.items():
        with pytest.raises(KeyError, match=problem):
            MARKET.select([wrong])


def test_the_text_of_a_selection_is_as_archives_have_kept_it() -> None:
    some = MARKET.select(["trade.price"])
    text = some.to_text()

    assert '"takes": "passed over"' in text
    assert quire.Schema.from_text(text) == some
    assert quire.Schema.from_text(text).names == ["trade"]


def test_a_schema_of_methods_pickles_and_shows_its_methods() -> None:
    assert pickle.loads(pickle.dumps(MARKET)) == MARKET
    assert "trade(symbol: string, price: float64)" in repr(MARKET)
    assert "close()" in repr(MARKET)
    assert MARKET != JAVA


def test_methods_that_are_not_there_are_refused(tailer: quire.JournalTailer) -> None:
    with pytest.raises(ValueError, match="method=sale known=trade, note, move, close"):
        tailer.read_batch(schema=MARKET, method="sale")
    with pytest.raises(ValueError, match="no methods"):
        tailer.read_batch(schema=quire.Schema({"a": "int8"}), method="trade")
    with pytest.raises(ValueError, match="no methods"):
        tailer.read_batches(schema=quire.Schema({"a": "int8"}))
    with pytest.raises(ValueError, match="two methods of one id: field=b"):
        quire.Schema.from_methods({"a": {}, "b": {}}, ids={"a": 1, "b": 1})


def test_the_calls_that_java_wrote_are_in_their_tables(tmp_path: Path) -> None:
    with (
        quire.open(copy_of(QUEUES / "c_methods", tmp_path / "q"), read_only=True) as queue,
        queue.tailer() as tailer,
    ):
        batches = tailer.read_batches(schema=JAVA, errors="column")

    def column(method: str, *names: str) -> list[Any]:
        good = [it for it in rows(batches[method]) if it["_error"] is None]
        return [tuple(it[name] for name in names) for it in good]

    def values_of(method: str) -> list[Any]:
        return [value for row in column(method, JAVA.methods[method].names[1]) for value in row]

    assert values_of("intArg") == [1, -70000]
    assert values_of("longArg") == [2**50]
    assert values_of("dblArg") == [2.5]
    assert values_of("boolArg") == [True]
    assert values_of("strArg") == ["hello", None, "中"]
    assert column("dto", *DTO) == [
        ("bob", 3, 2**33, 10.5, True, ["x", "yy"]),
        (None, 0, 0, 0.0, False, []),
    ]
    assert column("two", "text", "number") == [("a", 2)]
    assert column("three", "text", "number", "dto") == [
        ("a", 2, {"name": "z", "qty": 1, "id": 2, "px": 3.0, "ok": False, "tags": []})
    ]
    assert values_of("anEnum") == ["SELL"]
    assert values_of("listArg") == [["p", "q"]]
    assert values_of("via") == ["v1", "v2"]
    assert values_of("deeper") == [9, 1]
    assert all("no method of this name" in it for it in values(batches["_error"], "_error"))


def test_the_history_that_java_wrote_is_a_column(tmp_path: Path) -> None:
    calls = quire.Schema.from_methods({"noArg": {}, "intArg": {"value": "int32"}}, history=True)
    with (
        quire.open(copy_of(QUEUES / "c_methods_history", tmp_path / "q"), read_only=True) as queue,
        queue.tailer() as tailer,
    ):
        none, ints = (tailer.read_batch(1, schema=calls, method=it) for it in ("noArg", "intArg"))

    assert none.schema.names == ["index", "history"]
    assert rows(none) == [{"history": {"sources": [], "timings": [1_700_000_000_000_001_000]}}]
    (first,) = rows(ints)
    assert first["value"] == 1
    assert len(first["history"]["timings"]) == 1


@quire.message(alias="ColumnsQuote")
@dataclass
class Quote:
    symbol: str = ""
    bid: float = 0.0
    ask: float | None = None


class Routed(Protocol):
    def deliver(self, text: str, quote: Quote) -> None: ...


class Desk(Protocol):
    def quote(self, quote: Quote) -> None: ...
    def halt(self) -> None: ...
    def limit(self, symbol: str, most: quire.types.int32, flags: list[int]) -> None: ...
    @quire.calls.method_id(77)
    def tick(self, at: datetime) -> None: ...
    def to(self, name: str) -> Routed: ...


class Unclear(Protocol):
    def say(self, value: object) -> None: ...


def test_the_tables_of_an_interface_are_those_of_its_annotations(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    desk = appender.method_writer(Desk)
    when = datetime(2024, 1, 15, tzinfo=UTC)
    desk.quote(Quote("ABC", 1.5, 2.0))
    desk.halt()
    desk.limit("ABC", -7, [1, 2**40])
    desk.tick(when)
    desk.to("x").deliver("y", Quote("Z"))
    schema = quire.Schema.from_methods(Desk)

    batches = tailer.read_batches(schema=schema)

    assert {name: batch.schema for name, batch in batches.items()} == schema.methods
    assert {name: rows(batch) for name, batch in batches.items()} == {
        "quote": [{"symbol": "ABC", "bid": 1.5, "ask": 2.0}],
        "halt": [{}],
        "limit": [{"symbol": "ABC", "most": -7, "flags": [1, 2**40]}],
        "tick": [{"at": when}],
        "to": [{"name": "x"}],
        "deliver": [{"text": "y", "quote": {"symbol": "Z", "bid": 0.0, "ask": None}}],
    }
    assert values(batches["to"], "index") == values(batches["deliver"], "index")
    with pytest.raises(ValueError, match="name=value"):
        quire.Schema.from_methods(Unclear)
