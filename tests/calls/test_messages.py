"""Message classes: what is written, what comes back, and what is refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import gc
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quire


@quire.message
class Venue(enum.Enum):
    XLON = "London"
    XPAR = "Paris"


@quire.message(alias="test.Leg")
@dataclass(frozen=True, slots=True)
class Leg:
    symbol: str
    ratio: quire.types.int16 = 1


@quire.message(alias="test.Order", unknown="keep")
@dataclass
class Order:
    symbol: str
    quantity: int
    price: float | None = None
    venue: Venue = Venue.XLON
    legs: list[Leg] = field(default_factory=list[Leg])
    parent: Order | None = None
    notes: dict[str, Any] = field(default_factory=dict[str, Any])


@quire.message(alias="test.Counted")
@dataclass
class Counted:
    value: int
    doubled: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.doubled = 2 * self.value


ORDER = Order("EURUSD", 100, 1.25, Venue.XPAR, [Leg("EUR"), Leg("USD", -1)], Order("x", 1))


def test_an_object_comes_back_equal(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_message(ORDER)
    appender.write_message(ORDER, typed=True)
    appender.write_message(Venue.XPAR)

    assert tailer.read_message(Order) == ORDER
    assert tailer.read_message() == ORDER
    assert tailer.read_message() is Venue.XPAR
    assert tailer.read_message() is None


orders: st.SearchStrategy[Order] = st.deferred(
    lambda: st.builds(
        Order,
        symbol=st.text(),
        quantity=st.integers(-(2**63), 2**63 - 1),
        price=st.none() | st.floats(allow_nan=False).map(lambda x: x + 0.0),
        venue=st.sampled_from(Venue),
        legs=st.lists(st.builds(Leg, st.text(), st.integers(-(2**15), 2**15 - 1)), max_size=3),
        parent=st.none() | orders,
        notes=st.dictionaries(
            st.text(st.characters(max_codepoint=255, exclude_categories=["Cs"])),
            st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary(),
            max_size=3,
        ),
    )
)


@given(order=orders, typed=st.booleans())
def test_any_object_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, *, order: Order, typed: bool
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "any_object"
    with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        tailer.to_end()
        appender.write_message(order, typed=typed)
        assert tailer.read_message(Order) == order


def test_fields_may_come_in_any_order_and_may_be_missing(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_map({"price": 2, "quantity": 7, "symbol": "x"})

    assert tailer.read_message(Order) == Order("x", 7, 2.0)


def test_a_missing_field_without_default_is_named(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    index = appender.write_map({"symbol": "x"})

    message = rf"a field is missing and has no default.*field=quantity.*index={index:#x} file=.*cq4"
    with pytest.raises(quire.errors.WireError, match=message):
        tailer.read_message(Order)
    assert tailer.index == index


def test_unknown_fields_are_kept_or_ignored(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    later: dict[str, Any] = {"symbol": "x", "quantity": 1, "flags": [1, 2]}
    appender.write_map(later)
    order = tailer.read_message(Order)
    assert order is not None
    appender.write_message(order)
    document = tailer.read_map()
    assert document is not None
    assert document["flags"] == [1, 2]

    appender.write_map({"symbol": "x", "ratio": 3, "flags": {"deep": [1]}})
    assert tailer.read_message(Leg) == Leg("x", 3)


def test_post_init_runs_and_fields_outside_init_are_read(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_message(Counted(4))

    assert tailer.read_message(Counted) == Counted(4)


def test_nobody_makes_a_class_that_is_not_registered(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_map({"x": quire.Typed("subprocess.Popen", {"args": ["true"]})})

    assert tailer.read_map() == {"x": quire.Typed("subprocess.Popen", {"args": ["true"]})}


def test_a_value_that_does_not_fit_is_named_and_nothing_is_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    bad = dataclasses.replace(ORDER, legs=[Leg("ok"), Leg("bad", 2**15)])

    with pytest.raises(
        quire.errors.WireError, match=r"field=legs\[1\].ratio expected=int16 found=32768"
    ):
        appender.write_message(bad)
    assert queue.entry_count == 0


def test_a_field_that_does_not_fit_is_named_when_read(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    index = appender.write_map(
        {"symbol": "x", "quantity": 1, "parent": {"symbol": "y", "quantity": "many"}}
    )

    with pytest.raises(
        quire.errors.WireError, match=r'field=parent.quantity .*found="many" offset='
    ):
        tailer.read_message(Order)
    assert tailer.index == index


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ({"__annotations__": {"x": object}}, "not a dataclass"),
    ],
)
def test_a_plain_class_is_refused(namespace: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        quire.message(type("Plain", (), namespace))


def test_a_type_without_encoding_is_refused_with_its_field() -> None:
    @dataclass
    class Bad:
        reader: type[Path]
        number: complex

    with pytest.raises(TypeError, match=r"no encoding.*field=.*Bad\.(reader|number)"):
        quire.message(Bad)


def test_an_alias_belongs_to_one_class() -> None:
    @dataclass
    class Other:
        x: int

    with pytest.raises(TypeError, match=r"alias=test\.Order class=.*Other other=.*Order"):
        quire.message(alias="test.Order")(Other)


def test_names_can_be_made_javas() -> None:
    @quire.message(rename="camel")
    @dataclass
    class Renamed:
        last_price: float
        from_: str

    assert [name for name, _, _ in Renamed.__quire_codec__.fields] == ["lastPrice", "from"]  # type: ignore[attr-defined]


def test_a_fixed_layout_has_no_names(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    @quire.message(bytes_layout=True)
    @dataclass
    class Tick:
        time_ns: int
        price: float
        size: quire.types.int32
        firm: bool
        venue: Venue
        text: str | None

    tick = Tick(1_700_000_000_000_000_000, 1.25, -3, firm=True, venue=Venue.XPAR, text="é")
    appender.write_message(tick, typed=True)
    assert tailer.read_message() == tick
    appender.write_message(tick)
    payload = queue.tailer().read_many(2)[1]
    assert payload == bytes.fromhex(
        "00002a36fe9c9717 000000000000f43f fdffffff 59 0458504152 02c3a9"
    )
    assert tailer.read_message(Tick) == tick

    appender.write_bytes(payload[:-1])
    with pytest.raises(quire.errors.WireError, match="field=text"):
        tailer.read_message(Tick)


def test_a_fixed_layout_of_lists_is_refused() -> None:
    @dataclass
    class Listed:
        items: list[int]

    with pytest.raises(quire.errors.WireError, match=r"bytes_layout.*field=items"):
        quire.message(bytes_layout=True)(Listed)


def test_a_queue_without_field_names(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q", wire_type="FIELDLESS_BINARY") as queue:
        queue.appender().write_message(ORDER)
        (payload,) = queue.tailer().read_many(1)
        assert b"symbol" not in payload
        assert queue.tailer().read_message(Order) == ORDER


def test_documents_hold_values_one_by_one(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    with appender.writing_document() as document:
        document.wire.write_value("EURUSD")
        document.wire.write_value(7, quire.types.int64)
        document.wire.write_value(ORDER)
        document.wire.write_value([1.5, None])
    with tailer.reading_document() as document:
        wire = document.wire
        assert wire.read_value(str) == "EURUSD"
        assert wire.read_value(int) == 7
        assert wire.read_value() == ORDER
        assert wire.has_more
        wire.skip_value()
        assert not wire.has_more
        with pytest.raises(quire.errors.WireError, match="found=the end"):
            wire.read_value()


def test_documents_hold_fields_in_any_order(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    with appender.writing_document() as document:
        document.wire.write("a", 1, int)
        document.wire.write_comment("between")
        document.wire.write("b", "two")
        document.wire.write_event("c")
        document.wire.write_value(3.0)
    with tailer.reading_document() as document:
        assert document.wire.read("c", float) == 3.0
        assert document.wire.read("a", int) == 1
        assert document.wire.read_name() == "b"
        assert document.wire.read_value(str) == "two"
        with pytest.raises(quire.errors.WireError, match="no such field: field=d"):
            document.wire.read("d")


def test_documents_hold_raw_numbers(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    with appender.writing_document() as document:
        raw = document.raw
        raw.write_int8(-1)
        raw.write_uint16(65_535)
        raw.write_int32(-5)
        raw.write_int64(2**40)
        raw.write_float32(0.5)
        raw.write_float64(1.25)
        raw.write_stop_bit(300)
        raw.write_utf8("é")
        raw.write_utf8(None)
        raw.write_bool(True)  # noqa: FBT003 - a value
        raw.write_bytes(b"xy")
        with pytest.raises(quire.errors.WireError, match="expected=int8 found=128"):
            raw.write_int8(128)
    with tailer.reading_document() as found:
        raw_in = found.raw
        assert raw_in.read_int8() == -1
        assert raw_in.read_uint16() == 65_535
        assert raw_in.read_int32() == -5
        assert raw_in.read_int64() == 2**40
        assert raw_in.read_float32() == 0.5
        assert raw_in.read_float64() == 1.25
        assert raw_in.read_stop_bit() == 300
        assert raw_in.read_utf8() == "é"
        assert raw_in.read_utf8() is None
        assert raw_in.read_bool()
        assert raw_in.read_bytes(2) == b"xy"
        assert raw_in.remaining == 0
        with pytest.raises(quire.errors.WireError, match="expected=int32"):
            raw_in.read_int32()
        raw_in.position = 1
        assert raw_in.read_uint16() == 65_535
        with pytest.raises(quire.errors.WireError, match="after the end"):
            raw_in.position = 100


def test_reserved_memory_is_written_in_place(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    with appender.writing_document() as document:
        document.write_bytes(b"head")
        memory = document.reserve(8)
        document.write_bytes(b"tail")
        memory[2:4] = b"xx"
    assert tailer.read_bytes() == b"head\0\0xx\0\0\0\0tail"
    with appender.writing_document() as document, pytest.raises(quire.errors.MessageTooLargeError):
        document.reserve(2**40)


def test_a_value_that_looks_at_its_document_finds_it(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    class Nosy(dict[str, int]):
        def items(self) -> Any:  # noqa: ANN401 - of a dict
            document.write("seen", 1)
            return super().items()

    with appender.writing_document() as document:
        document.write("nosy", {"x": Nosy(a=1)})
    assert tailer.read_map() is not None


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\xc1f\x82\xff\xff\xff\x7f", "ends early"),
        (b"\xc1f" + b"\x82\x05\0\0\0" * 200, "ends early|nested too deep"),
        (b"\xc1f" + b"\xb6\x01T" * 100, "nested too deep"),
        (b"\xc1f\xb6\x04gzip\x80\x05\x8aabcd", "does not unpack"),
        (b"\xc1f\x8b", r"found=0x8b \(U16_ARRAY\)"),
        (b"\xc1f\xe3\xff\xff\xff", "not a text"),
    ],
)
def test_bad_messages_are_refused_with_their_place(
    appender: quire.JournalAppender, tailer: quire.JournalTailer, payload: bytes, message: str
) -> None:
    index = appender.write_bytes(payload)

    with pytest.raises(
        quire.errors.WireError,
        match=rf"({message})[^\n]*index={index:#x} file=\S+\.cq4 position=0x",
    ):
        tailer.read_map()
    assert tailer.index == index


def test_a_class_may_name_itself_and_be_defined_again(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    for _ in range(2):  # as when a cell of a notebook runs again

        @quire.message(alias="test.Node")
        @dataclass
        class Node:
            value: int
            kids: list[Node] = field(default_factory=list["Node"])

        appender.write_message(Node(1, [Node(2)]))
        assert tailer.read_message(Node) == Node(1, [Node(2)])


def test_a_class_with_its_own_init_is_made_of_its_fields(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    @quire.message(alias="test.Own")
    @dataclass
    class Own:
        a: int
        b: int

        def __init__(self, b: int, a: int = 1) -> None:
            self.a, self.b = a, b

    appender.write_message(Own(30, 4))

    assert tailer.read_message(Own) == Own(30, 4)


def test_a_message_without_names_is_no_object(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_text("hello")

    with pytest.raises(quire.errors.WireError, match="expected=the name of a field"):
        tailer.read_message(Leg)
    assert tailer.read_text() == "hello"


def test_a_fixed_layout_within_itself_has_a_bound(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    @quire.message(alias="test.Inner", bytes_layout=True)
    @dataclass
    class Inner:
        value: quire.types.int8
        next: Inner

    appender.write_bytes(b"\1" * 10_000)
    with pytest.raises(quire.errors.WireError, match="nested too deep"):
        tailer.read_message(Inner)


@pytest.mark.parametrize(
    "text",
    [
        "2024-10-27T02:30+02:00[Europe/Berlin]",
        "2024-10-27T02:30+01:00[Europe/Berlin]",
        "2024-07-01T00:00+09:00[Europe/Berlin]",
    ],
)
def test_a_moment_keeps_its_offset(
    appender: quire.JournalAppender, tailer: quire.JournalTailer, text: str
) -> None:
    appender.write_bytes(b"\xc1t\xb5" + bytes([len(text)]) + text.encode())

    found = tailer.read_map()

    assert found is not None
    meant = dt.datetime.fromisoformat(text.split("[", maxsplit=1)[0])
    assert found["t"].timestamp() == meant.timestamp()
    assert found["t"].utcoffset() == meant.utcoffset()


@pytest.mark.parametrize(
    "value",
    [
        dt.time(1, 2, tzinfo=dt.UTC),
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(microseconds=1))),
        re.ASCII | re.IGNORECASE,
    ],
    ids=repr,
)
def test_what_nobody_could_read_is_not_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender, value: object
) -> None:
    with appender.writing_document() as document:
        with pytest.raises(quire.errors.WireError):
            document.wire.write("x", value)
        document.rollback_on_close()
    assert queue.entry_count == 0


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b"\xc1f\xb6\x04!set\xa1\x05", quire.Typed("!set", 5)),
        (b"\xc1f\xb6\x04!set\xe3abc", quire.Typed("!set", "abc")),
    ],
)
def test_what_is_no_set_is_none(
    appender: quire.JournalAppender, tailer: quire.JournalTailer, payload: bytes, value: object
) -> None:
    appender.write_bytes(payload)

    assert tailer.read_map() == {"f": value}


def test_tailers_shared_by_threads_deliver_each_message_once(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    count = 3000
    appender.write_many(b"\xc1n\xa6" + n.to_bytes(4, "little") for n in range(count))
    found: list[int] = []

    def read() -> None:
        while (message := tailer.read_map()) is not None:
            found.append(message["n"])

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(count))


def test_a_finaliser_may_look_at_the_document(appender: quire.JournalAppender) -> None:
    class Nosy:
        def __init__(self) -> None:
            self.myself = self

        def __del__(self) -> None:
            indexes.append(document.index)

    indexes: list[int] = []
    with appender.writing_document() as document:
        old = gc.get_threshold()
        gc.set_threshold(1)
        try:
            Nosy()
            views = [document.reserve(8) for _ in range(10)]
        finally:
            gc.set_threshold(*old)
    assert len(views) == 10
    assert indexes


@quire.message(alias="test.Attrs", unknown="keep")
@attrs.define(slots=False)
class Attrs:
    symbol: str
    ratio: quire.types.int16 = 1
    tags: list[str] = attrs.Factory(list[str])


@quire.message(alias="test.Frozen")
@attrs.frozen
class Frozen:
    symbol: str
    legs: list[Leg] = attrs.Factory(list[Leg])


@quire.message(alias="test.Struct")
class Struct(msgspec.Struct, frozen=True):
    symbol: str
    ratio: quire.types.int16 = 1
    tags: list[str] = []


@pytest.mark.parametrize(
    "value", [Attrs("x", 3, ["a"]), Frozen("x", [Leg("y")]), Struct("x", 3, ["a"])], ids=repr
)
def test_classes_of_attrs_and_msgspec_are_messages_too(
    appender: quire.JournalAppender, tailer: quire.JournalTailer, value: object
) -> None:
    appender.write_message(value)
    appender.write_message(value, typed=True)
    appender.write_map({"symbol": "z"})

    assert tailer.read_message(type(value)) == value
    assert tailer.read_message() == value
    assert tailer.read_message(type(value)) == type(value)("z")  # type: ignore[call-arg]


def test_an_argument_that_is_no_field_is_refused() -> None:
    @dataclass
    class Extra:
        value: int
        scale: dataclasses.InitVar[int]

    with pytest.raises(TypeError, match=r"InitVar.*scale"):
        quire.message(Extra)


def test_the_error_about_a_class_that_is_no_message_says_how_to_make_it_one(
    tailer: quire.JournalTailer,
) -> None:
    class Loose(NamedTuple):
        a: int

    with pytest.raises(TypeError, match=r"Loose'> \(decorate it with quire\.message\)"):
        tailer.read_message(Loose)
