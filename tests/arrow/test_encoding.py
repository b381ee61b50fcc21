"""Arrow columns as messages: byte for byte what the writers of single messages make of the rows."""

# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quire
from batches import plain, rows
from queues import payloads
from quire._native import entry_bytes
from quire.arrow.column_types import encoded_type
from quire.arrow.encoder import Encoder, Form

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
record_batch: Any = pa.record_batch  # its stubs want one type of values
NAMES = ["a", "price", "12", "é", "x" * 31, "y" * 40]
MOMENT = datetime(2026, 3, 1, 12, 30, 0, 500, tzinfo=UTC)


class Kind(NamedTuple):
    """A type of columns; values as pyarrow takes them, and as `write_map` does."""

    type: Any
    values: st.SearchStrategy[Any]
    plain: Callable[[Any], Any] = lambda value: value


def as_float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def whole(kind: pa.DataType, bits: int, *, signed: bool) -> Kind:
    low = -(2 ** (bits - 1)) if signed else 0
    return Kind(kind, st.integers(low, 2 ** min(bits - signed, 63) - 1))


SCALARS = [
    *(
        whole(kind(), bits, signed=True)
        for kind, bits in [(pa.int8, 8), (pa.int16, 16), (pa.int32, 32), (pa.int64, 64)]
    ),
    *(
        whole(kind(), bits, signed=False)
        for kind, bits in [(pa.uint8, 8), (pa.uint16, 16), (pa.uint32, 32), (pa.uint64, 64)]
    ),
    Kind(pa.float32(), st.floats(width=32, allow_nan=False)),
    Kind(pa.float64(), st.floats(allow_nan=False)),
    Kind(pa.bool_(), st.booleans()),
    Kind(pa.string(), TEXT),
    Kind(pa.large_string(), TEXT),
    Kind(pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["", "one", "zwölf", "😀"])),
    Kind(pa.binary(), st.binary(max_size=300)),
    Kind(pa.large_binary(), st.binary(max_size=3)),
    Kind(pa.binary(16), st.binary(min_size=16, max_size=16), lambda it: UUID(bytes=it)),
    Kind(pa.date32(), st.dates()),
    Kind(pa.time64("us"), st.times()),
    Kind(pa.time32("s"), st.times().map(lambda it: it.replace(microsecond=0))),
    Kind(pa.timestamp("us"), st.datetimes()),
    Kind(pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    Kind(
        pa.timestamp("ms", "Europe/Paris"),
        st.datetimes(timezones=st.just(UTC)).map(
            lambda it: it.replace(microsecond=it.microsecond // 1000 * 1000)
        ),
    ),
    Kind(
        pa.decimal128(38, 9),
        st.integers(-(10**37), 10**37).map(lambda it: Decimal(it).scaleb(-9)),
        lambda it: it.quantize(Decimal("1E-9")),
    ),
    # The last, for columns alone: under a null struct pyarrow makes codes without values of it.
    Kind(pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["one", "two"])),
]


def optional(kind: Kind) -> Kind:
    """The same, or null."""
    return Kind(
        kind.type,
        st.none() | kind.values,
        lambda value: None if value is None else kind.plain(value),
    )


def struct_of(fields: dict[str, Kind]) -> Kind:
    parts = {name: optional(kind) for name, kind in fields.items()}
    return Kind(
        pa.struct([(name, kind.type) for name, kind in parts.items()]),
        st.fixed_dictionaries({name: kind.values for name, kind in parts.items()}),
        lambda value: {name: kind.plain(value[name]) for name, kind in parts.items()},
    )


def list_of(kind: Kind) -> Kind:
    item = optional(kind)
    return Kind(
        pa.list_(item.type),
        st.lists(item.values, max_size=3),
        lambda value: [item.plain(it) for it in value],
    )


def map_of(kind: Kind) -> Kind:
    item = optional(kind)
    keys = st.sampled_from(NAMES)
    return Kind(
        pa.map_(pa.string(), item.type),
        st.lists(st.tuples(keys, item.values), max_size=3, unique_by=lambda it: it[0]),
        lambda value: {name: item.plain(it) for name, it in value},
    )


# A place among the scalars, `{name: kind}`, `[kind]`, and `(kind,)` for a map.
SHAPES: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, len(SCALARS) - 2),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3),
        st.lists(inner, min_size=1, max_size=1),
        st.tuples(inner),
    ),
    max_leaves=4,
)


def kind_of(shape: Any) -> Kind:  # noqa: ANN401 - as above
    """Return the type of a shape."""
    if isinstance(shape, int):
        return SCALARS[shape]
    if isinstance(shape, dict):
        return struct_of({name: kind_of(inner) for name, inner in shape.items()})
    (inner,) = shape
    return list_of(kind_of(inner)) if isinstance(shape, list) else map_of(kind_of(inner))


def table(kinds: dict[str, Kind], values: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    columns = {
        name: pa.array([row[name] for row in values], kind.type) for name, kind in kinds.items()
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.RecordBatch, list[dict[str, Any]]]:
    """A batch, perhaps a slice of a longer one, and its rows as `write_map` takes them."""
    column = SHAPES | st.just(len(SCALARS) - 1)
    shapes = draw(st.dictionaries(st.sampled_from(NAMES), column, min_size=1, max_size=4))
    kinds = {name: optional(kind_of(shape)) for name, shape in shapes.items()}
    row = st.fixed_dictionaries({name: kind.values for name, kind in kinds.items()})
    values = draw(st.lists(row, min_size=1, max_size=20))
    first = draw(st.integers(0, len(values) - 1))
    plain = [{name: kind.plain(row[name]) for name, kind in kinds.items()} for row in values]
    return table(kinds, values).slice(first), plain[first:]


@settings(max_examples=60)
@given(tables())
def test_rows_are_the_maps_that_write_map_writes(
    given: tuple[pa.RecordBatch, list[dict[str, Any]]],
) -> None:
    batch, maps = given

    found = Encoder(batch.schema, form="map").encode(batch)

    found.validate(full=True)
    expected = [b"".join(entry_bytes(*it) for it in row.items()) for row in maps]
    assert found.to_pylist() == expected


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[quire.JournalQueue]:
    """One queue for many examples."""
    with quire.open(tmp_path_factory.mktemp("shared")) as queue:
        yield queue


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given=tables(), form=st.sampled_from(["map", "fields", "typed"]))
def test_what_is_encoded_is_decoded_to_the_same_columns(
    shared: quire.JournalQueue, given: tuple[pa.RecordBatch, list[dict[str, Any]]], form: Form
) -> None:
    batch, _ = given
    encoder = Encoder(batch.schema, form=form, type="T" if form == "typed" else None)
    schema = quire.Schema(_decodable(batch.schema))

    with shared.appender() as appender, shared.tailer() as tailer:
        tailer.to_end()
        appender.write_batch(encoder.encode(batch))
        found = tailer.read_batch(schema=schema)

    whole: Any = batch.cast(schema.columns)
    assert rows(found) == plain(whole.to_pylist())


def _decodable(columns: pa.Schema) -> pa.Schema:
    """Return the columns as the decoder makes them."""
    fields: list[Any] = list(columns)
    return pa.schema([field.with_type(encoded_type(field.type)) for field in fields])


@quire.message
@dataclass
class Leg:
    """What is inside a trade."""

    quantity: quire.types.int32
    price: float


@quire.message(alias="Deal")
@dataclass
class Deal:
    """A message of every type that a class may have a field of."""

    symbol: str
    size: quire.types.int32
    tiny: quire.types.int8
    ratio: quire.types.float32
    price: float
    done: bool
    data: bytes
    day: date
    at: time
    when: datetime
    id: UUID
    leg: Leg
    legs: list[Leg]
    sizes: list[int]
    nested: list[list[quire.types.int16]]
    by_name: dict[str, float]
    note: str | None


DEALS = [
    Deal(
        *("EURUSD", 1_000_000, -5, 1.25, 1.1, True, b"\1\2", MOMENT.date(), time(1, 2, 3), MOMENT),
        *(UUID(int=2**100 + 7), Leg(5, 2.0), [Leg(1, 0.5), Leg(2, 1e300)], [1, 2**40], [[1], []]),
        *({"x": 1.0, "é": float("inf")}, None),
    ),
    Deal(
        *("", -1, 127, 2.0**-40, 0.0, False, b"", date(1, 1, 1), time(), MOMENT.replace(year=1969)),
        *(UUID(int=0), Leg(0, -0.0), [], [], [], {}, "n" * 200),
    ),
]


def deals() -> pa.RecordBatch:
    """The same as columns, decoded."""
    with (
        tempfile.TemporaryDirectory() as folder,
        quire.open(Path(folder, "q")) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        for deal in DEALS:
            appender.write_message(deal)
        return tailer.read_batch(schema=quire.Schema.from_message(Deal))


@pytest.mark.parametrize("typed", [False, True])
def test_rows_are_the_messages_that_write_message_writes(
    queue: quire.JournalQueue, appender: quire.JournalAppender, *, typed: bool
) -> None:
    schema = quire.Schema.from_message(Deal)
    batch = deals()
    for deal in DEALS:
        appender.write_message(deal, typed=typed)

    appender.write_batch(batch, schema=schema, type="Deal" if typed else None)

    first, second, *found = payloads(queue)
    assert found == [first, second]


def test_a_typed_message_is_read_as_an_object_of_its_class(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    batch: Any = deals().drop_columns(["index"])

    appender.write_batch(batch, type="Deal")

    assert [tailer.read_message(), tailer.read_message()] == DEALS


class Market(Protocol):
    """Methods of each kind."""

    def trade(self, leg: Leg) -> None:
        """Take one object."""

    def quote(self, symbol: str, price: float, levels: list[int]) -> None:
        """Take several arguments."""

    def say(self, text: str | None) -> None:
        """Take one value."""

    def halt(self) -> None:
        """Take nothing."""


def call(market: Market) -> None:
    market.trade(Leg(3, 1.5))
    market.quote("EURUSD", 1.1, [1, 2**40])
    market.halt()
    market.say("hello")
    market.say(None)
    market.trade(Leg(4, 2.5))


def test_the_union_of_calls_is_written_as_it_was_read(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    call(appender.method_writer(Market))
    schema = quire.Schema.from_methods(Market)

    appender.write_batch(tailer.read_batch(schema=schema), schema=schema)

    found = payloads(queue)
    assert found[6:] == found[:6]


@pytest.mark.parametrize("method", ["trade", "quote", "say"])
def test_the_calls_of_one_method_are_written_as_they_were_read(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    tailer: quire.JournalTailer,
    method: str,
) -> None:
    call(appender.method_writer(Market))
    schema = quire.Schema.from_methods(Market)
    batch = tailer.read_batch(schema=schema, method=method)

    appender.write_batch(batch, schema=schema, method=method)

    before, found = payloads(queue)[:6], payloads(queue)[6:]
    assert len(found) == {"trade": 2, "quote": 1, "say": 2}[method]
    assert found == [it for it in before if method.encode() in it[:10]]


def test_columns_are_the_arguments_of_a_method_without_a_schema(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_batch(record_batch({"price": [1.5], "text": ["x"]}), method="quote")

    (found,) = payloads(queue)
    assert found == b"\xb9\x05quote\x82\x05\0\0\0\x92\x96\x01\xe1x"


def test_a_method_id_stands_for_the_name(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    schema = quire.Schema.from_methods({"say": {"text": "utf8"}}, ids={"say": 7})

    appender.write_batch(record_batch({"text": ["x"]}), schema=schema, method="say")

    assert payloads(queue) == [b"\xba\x07\xe1x"]


def test_forms_follow_from_the_columns(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_batch(record_batch({"payload": [b"\1\2", b"\3"]}))
    appender.write_batch(record_batch({"value": ["a😀"]}))
    appender.write_batch(record_batch({"payload": ["a"]}))
    appender.write_batch(pa.table({"n": [1, 2]}).slice(1))
    appender.write_text("a😀")
    appender.write_map({"payload": "a"})
    appender.write_map({"n": 2})

    *found, text, payload, number = payloads(queue)
    assert found == [b"\1\2", b"\3", text, payload, number]


def test_nulls_are_written_or_left_out(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    batch = record_batch({"a": [1, None], "b": [None, None]})
    assert batch.schema.field("b").type == pa.null()

    appender.write_batch(batch)
    appender.write_batch(batch, omit_nulls=True)

    wanted = [{"a": 1, "b": None}, {"a": None, "b": None}, {"a": 1}]
    with queue.tailer() as tailer:
        assert [tailer.read_map() for _ in wanted] == wanted
    assert payloads(queue)[3] == b"\x8f"


def test_a_queue_without_names_of_fields_gets_none(tmp_path: Path) -> None:
    with (
        quire.open(tmp_path / "q", wire_type="FIELDLESS_BINARY") as queue,
        queue.appender() as appender,
    ):
        appender.write_message(Leg(5, 2.5))
        appender.write_batch(
            record_batch({"quantity": pa.array([5], pa.int32()), "price": [2.5]}), form="fields"
        )

        found = payloads(queue)

    assert found[0] == found[1] == b"\xa1\x05\x92\xfa\x01"


def test_a_schema_casts_what_fits_and_leaves_out_what_it_added(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    schema = quire.Schema({"n": "int32", "t": "utf8"}, index="_i")
    batch = record_batch({"t": ["x"], "_i": [99], "n": pa.array([7], pa.int64())})

    appender.write_batch(batch, schema=schema)

    with queue.tailer() as tailer:
        assert tailer.read_map() == {"n": 7, "t": "x"}
    with pytest.raises(ValueError, match="does not fit: column=n type=int64 expected=int32"):
        appender.write_batch(record_batch({"t": ["x"], "n": [2**31]}), schema=schema)


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ({"a": pa.int8()}, {"form": "yaml"}, "unknown form of messages: form=yaml"),
        ({"a": pa.int8()}, {"form": "raw"}, "form=raw requires one binary column: found=a int8"),
        ({"a": pa.int8()}, {"form": "text"}, "form=text requires one string column"),
        (
            {"a": pa.int8()},
            {"form": "typed"},
            "type= and form=typed require each other: form=typed type=None",
        ),
        ({"a": pa.int8()}, {"form": "map", "type": "T"}, "type= and form=typed require"),
        ({"a": pa.int8()}, {"form": "map", "method": "m"}, "method= requires form=method"),
        ({"a": pa.int8()}, {"form": "method"}, "requires method= or a schema of methods"),
        ({"a": pa.duration("us")}, {}, "no values of this type: column=a type=duration"),
        ({"€": pa.int8()}, {}, "Latin-1"),
        ({}, {}, "at least one value: columns=0"),
        (
            {"a": pa.int8(), "c": pa.int8()},
            {"schema": quire.Schema({"a": "date32", "b": "utf8"})},
            "no such column: column=c known=a, b; .* not fit .*: column=a .*; .*missing: column=b",
        ),
        (
            {"a": pa.int8()},
            {"schema": quire.Schema.from_methods(Market), "method": "none"},
            "no such method in the schema: method=none known=trade, quote, say, halt",
        ),
    ],
)
def test_columns_that_make_no_messages_are_refused(
    columns: dict[str, pa.DataType], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises((ValueError, quire.errors.WireError), match=problem):
        Encoder(pa.schema(list(columns.items())), **options).encode(
            pa.RecordBatch.from_pylist([], pa.schema(list(columns.items())))
        )


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        (record_batch({"a": pa.array([1, 2**63], pa.uint64())}), "field=a value=.* row=1"),
        (record_batch({"value": ["x", None]}), "a message cannot be null: row=1"),
        (record_batch({"payload": [b"x", None]}), "a message cannot be null: null_count=1"),
        (record_batch({"payload": [b"x", b""]}), "at least one byte"),
        (record_batch({"a": [{"b": [1, 2**63]}]}, pa.schema([
            ("a", pa.struct([("b", pa.list_(pa.uint64()))]))])), r"field=a\.b\[1\] .*row=0"),
    ],
)  # fmt: skip
def test_a_value_without_encoding_is_named_and_nothing_is_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender, batch: pa.RecordBatch, problem: str
) -> None:
    with pytest.raises((ValueError, quire.errors.WireError), match=problem):
        appender.write_batch(batch)

    assert payloads(queue) == []


@pytest.mark.parametrize(
    ("name", "problem"), [("nope", "no such method in the schema: method=nope"), (None, "=null")]
)
def test_a_call_of_an_unknown_method_is_refused(
    appender: quire.JournalAppender, name: str | None, problem: str
) -> None:
    schema = quire.Schema.from_methods({"say": {"text": "utf8"}})
    batch = pa.RecordBatch.from_pylist([{"method": name, "say": {"text": "x"}}], schema.union)

    with pytest.raises(quire.errors.WireError, match=problem):
        appender.write_batch(batch, schema=schema)


def test_buffers_that_are_too_short_are_an_error() -> None:
    from quire import _native

    encoder = _native.Encoder("entries", [("a", True, "int64", (0, 0), [])])
    parts: list[Any] = [(0, [None, b"1234567"]), (1, [None, b"12345678"]), (2**63, [b"", b""])]
    for start, buffers in parts:
        with pytest.raises(quire.errors.WireError, match="too short"):
            encoder.encode(1, [(1, start, False, buffers, [], None)])


def test_a_note_stands_in_front_of_a_column_where_no_tailer_looks(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    offsets, data = struct.pack("<3q", 0, 1, 3), b"abb"

    appender._write_column(
        offsets, data, count=2, start=0, wide=True, text=False, note=b"\xb9\x01n\xe1x"
    )

    assert payloads(queue) == [b"a", b"bb"]
    with queue.tailer() as tailer:
        documents: list[tuple[bool, bytes]] = []
        while not documents or documents[-1] != (False, b"bb"):
            with tailer.reading_document(include_metadata=True) as document:
                documents.append((document.is_metadata, bytes(document.bytes)))
    note = documents.index((True, b"\xb9\x01n\xe1x"))
    assert [it for it in documents[note:] if not it[0]] == [(False, b"a"), (False, b"bb")]
    assert all(is_metadata for is_metadata, _ in documents[:note])
