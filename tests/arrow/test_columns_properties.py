"""
Decoding into columns, against an oracle: documents are made by hand from values, in any form and
any order, and the columns must hold those values.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
import wire_forms as wire
from batches import rows, values

if TYPE_CHECKING:
    from quire.arrow.declared import TypeLike

ZERO = datetime(1970, 1, 1, tzinfo=UTC)
NAMES = ["a", "price", "qty", "12", "é", "x" * 31, "y" * 32, "z" * 200]
WHOLE = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**63 - 1),
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SCALARS = [
    *WHOLE,
    *("float32", "float64", "bool", "utf8", "category", "binary", "uuid", "date32"),
    *("timestamp[us, UTC]", "timestamp[ns, UTC]", "time64[us]", "decimal128(20, 4)"),
]
KINDS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        st.lists(inner, min_size=1, max_size=1),
        st.tuples(inner),
    ),
    max_leaves=4,
)
SCHEMAS = st.dictionaries(st.sampled_from(NAMES), KINDS, min_size=1, max_size=5)
UNKNOWN = [
    wire.NULL,
    b"\xa1\x05",
    wire.text("x" * 40),
    wire.block(b"\xa1\x05" * 3),
    wire.blob(b""),
    wire.typed("Other", wire.block(wire.field("price", b"\xb0"))),
    b"\xb5\x01?",
    b"\xbc\x01T",
]


# A name of a type, `{name: type}`, `[type]`, and `(type,)` for a map.
Kind: TypeAlias = "str | Mapping[str, Kind] | list[Kind] | tuple[Kind]"


class Case(NamedTuple):
    """A value as it is in a message, and as it is in a column."""

    data: bytes
    value: Any


MISFIT = object()


def of_kind(kind: Kind) -> st.SearchStrategy[Case]:
    """Values of a type, a null now and then."""
    return st.one_of(_of_kind(kind), _of_kind(kind), st.just(Case(wire.NULL, None)))


def _of_kind(kind: Kind) -> st.SearchStrategy[Case]:
    if isinstance(kind, Mapping):
        return documents(kind).map(lambda row: Case(wire.block(row.data), row.value))
    if isinstance(kind, list):
        return st.lists(of_kind(kind[0]), max_size=4).map(
            lambda items: Case(
                wire.block(b"".join(it.data for it in items)), [it.value for it in items]
            )
        )
    if isinstance(kind, tuple):
        return st.dictionaries(st.sampled_from(NAMES), of_kind(kind[0]), max_size=4).flatmap(
            lambda items: entries([*items.items()])
        )
    return SIMPLE[kind] if kind in SIMPLE else forms(whole(*WHOLE[kind]), wire.int_forms)


def whole(least: int, most: int) -> st.SearchStrategy[int]:
    """Small ones as often as large ones: most forms hold small ones only."""
    bound = 70_000
    return st.one_of(st.integers(max(least, -bound), min(most, bound)), st.integers(least, most))


def forms(
    values: st.SearchStrategy[Any], of: Callable[[Any], list[bytes]]
) -> st.SearchStrategy[Case]:
    return values.flatmap(
        lambda value: st.sampled_from(of(value)).map(lambda data: Case(data, value))
    )


def entries(items: Sequence[tuple[str, Case]]) -> st.SearchStrategy[Case]:
    heads = st.tuples(*[st.sampled_from(wire.name_forms(name)) for name, _ in items])
    pairs = [(name, case.value) for name, case in items]
    return heads.map(
        lambda heads: Case(
            wire.block(
                b"".join(head + case.data for head, (_, case) in zip(heads, items, strict=True))
            ),
            pairs,
        )
    )


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


MOMENTS = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
SIMPLE: dict[str, st.SearchStrategy[Case]] = {
    "float64": forms(
        st.one_of(st.floats(allow_nan=False), st.integers(-(10**9), 10**9).map(lambda n: n / 100)),
        wire.float_forms,
    ),
    "float32": forms(st.floats(width=32, allow_nan=False), wire.float_forms),
    "bool": forms(st.booleans(), lambda it: [b"\xb1", wire.text("true")] if it else [b"\xb0"]),
    "utf8": st.one_of(
        forms(TEXT, lambda it: [wire.text(it), wire.long_text(it.encode())]),
        st.integers(*WHOLE["int64"]).map(lambda it: Case(b"\xa7" + struct.pack("<q", it), str(it))),
        st.just(Case(b"\xb1", "true")),
    ),
    "category": forms(st.sampled_from(["BUY", "SELL", ""]), lambda it: [wire.text(it)]),
    "binary": forms(
        st.binary(max_size=300), lambda it: [wire.blob(it), wire.typed("byte[]", wire.blob(it))]
    ),
    "uuid": st.uuids().flatmap(
        lambda it: st.sampled_from([wire.uuid(it), wire.text(str(it))]).map(
            lambda data: Case(data, it.bytes)
        )
    ),
    "date32": forms(st.dates(), lambda it: [wire.temporal(it), wire.text(it.isoformat())]),
    "timestamp[us, UTC]": forms(
        MOMENTS,
        lambda it: [wire.temporal(it), wire.temporal(it.replace(tzinfo=None)), *_count(it, 1)],
    ),
    "timestamp[ns, UTC]": forms(MOMENTS, lambda it: [wire.temporal(it), *_count(it, 1000)]),
    "time64[us]": forms(st.times(), lambda it: [wire.temporal(it), wire.text(it.isoformat())]),
    "decimal128(20, 4)": forms(
        st.decimals(-(10**15), 10**15, places=4),
        lambda it: [wire.text(str(it)), wire.text(f"{it}00")],
    ),
}


def _count(moment: datetime, unit: int) -> list[bytes]:
    return [b"\xa7" + struct.pack("<q", (moment - ZERO) // timedelta(microseconds=1) * unit)]


def misfits(kind: Kind) -> st.SearchStrategy[Case]:
    """Values that no column of this type takes."""
    wrong = {wire.block(b"\xe1x" * 2)} if not isinstance(kind, list) else {wire.text("x"), b"\xb1"}
    if isinstance(kind, str) and kind in WHOLE:
        least, most = WHOLE[kind]
        wrong |= {wire.text("x"), b"\x92\x01", b"\xb0"}
        wrong |= {
            b"\xa7" + struct.pack("<q", it)
            for it in (least - 1, most + 1)
            if -(2**63) <= it < 2**63
        }
    elif isinstance(kind, str) and kind in {
        "bool",
        "uuid",
        "date32",
        "time64[us]",
        "decimal128(20, 4)",
    }:
        wrong |= {wire.text("x"), wire.blob(b"1")}
    elif isinstance(kind, Mapping | tuple):
        wrong |= {b"\xa1\x05", wire.text("x")}
    return st.sampled_from(sorted(wrong)).map(lambda data: Case(data, MISFIT))


@st.composite
def documents(draw: st.DrawFn, schema: Mapping[str, Any], *, misfit: bool = False) -> Case:
    """Named values in any order, some missing, some unknown; the last of a name counts."""
    names = draw(st.permutations([*schema]))
    names = names[: draw(st.integers(0, len(names)))]
    wrong = draw(st.sampled_from([None, *names])) if misfit else None
    parts: list[bytes] = []
    value: dict[str, Any] = dict.fromkeys(schema)
    for name in names:
        if draw(st.integers(0, 9)) == 0:
            twice = draw(of_kind(schema[name]))
            parts.append(draw(st.sampled_from(wire.name_forms(name))) + twice.data)
        case = draw(misfits(schema[name]) if name == wrong else of_kind(schema[name]))
        value[name] = case.value
        parts.append(draw(st.sampled_from(wire.name_forms(name))) + case.data)
    for _ in range(draw(st.integers(0, 2))):
        unknown = wire.field(draw(st.sampled_from(["other", "q"])), draw(st.sampled_from(UNKNOWN)))
        parts.insert(draw(st.integers(0, len(parts))), unknown)
    return Case(b"".join(parts), MISFIT if wrong is not None else value)


def wrapped(row: Case) -> st.SearchStrategy[Case]:
    """As a message: fields at its top, or an object with or without a type's name."""
    inside = wire.block(row.data)
    return st.sampled_from([row.data or b"\x8f", inside, wire.typed("Trade", inside)]).map(
        lambda data: Case(data, row.value)
    )


def arrow(kind: Kind) -> TypeLike:
    """The type as `Schema` takes it: a tuple here is a map."""
    if isinstance(kind, tuple):
        inside: Any = quire.Schema({"it": arrow(kind[0])}).columns
        types: Any = pa
        made: pa.DataType = types.map_(pa.string(), inside.field("it").type)
        return made
    if isinstance(kind, list):
        return [arrow(kind[0])]
    return {n: arrow(k) for n, k in kind.items()} if isinstance(kind, Mapping) else kind


@st.composite
def queues(draw: st.DrawFn, *, misfit: bool) -> tuple[dict[str, Any], list[Case]]:
    schema = draw(SCHEMAS)
    messages = documents(schema, misfit=misfit).flatmap(wrapped)
    return schema, draw(st.lists(messages, min_size=1, max_size=8))


def written(folder: Path, messages: list[Case]) -> quire.JournalQueue:
    queue = quire.open(folder, block_bytes=2**16)
    with queue.appender() as appender:
        appender.write_many([message.data for message in messages])
    return queue


few = settings(max_examples=40)  # each makes a queue, and reads it in many ways


@few
@given(queues(misfit=False), st.integers(1, 4))
def test_columns_hold_the_values_whatever_their_form_and_order(
    made: tuple[dict[str, Any], list[Case]], count: int
) -> None:
    kinds, messages = made
    schema = quire.Schema({name: arrow(kind) for name, kind in kinds.items()})
    folder = Path(tempfile.mkdtemp())
    with written(folder, messages) as queue, queue.tailer() as tailer:
        batch = tailer.read_batch(schema=schema)
        assert batch.schema == schema.arrow
        assert rows(batch) == [it.value for it in messages]
        assert values(batch, "index") == [it.index for it in queue.tailer()]

        tailer.to_start()
        small = [tailer.read_batch(count, schema=schema) for _ in messages]
        assert [row for part in small for row in rows(part)] == rows(batch)

        for name in kinds:
            tailer.to_start()
            assert tailer.read_batch(schema=schema, columns=[name]) == batch.select(["index", name])
    shutil.rmtree(folder)


@pytest.mark.check
@few
@given(queues(misfit=True))
def test_a_message_that_does_not_fit_is_a_row_that_says_why_or_an_error(
    made: tuple[dict[str, Any], list[Case]],
) -> None:
    kinds, messages = made
    schema = quire.Schema({name: arrow(kind) for name, kind in kinds.items()})
    nothing = dict.fromkeys(kinds)
    folder = Path(tempfile.mkdtemp())
    with written(folder, messages) as queue, queue.tailer() as tailer:
        batch = tailer.read_batch(schema=schema, errors="column")
        found = rows(batch.drop_columns(["_error"]))
        assert found == [nothing if it.value is MISFIT else it.value for it in messages]
        said = values(batch, "_error")
        assert [it is not None for it in said] == [it.value is MISFIT for it in messages]

        tailer.to_start()
        good: list[dict[str, object]] = []
        for place in [it for it, why in enumerate(said) if why]:
            if len(good) < place:
                good += rows(tailer.read_batch(schema=schema))
            good += [{}]
            with pytest.raises(
                quire.errors.WireError, match=rf"field=.* index={tailer.index:#x} file="
            ):
                tailer.read_batch(schema=schema)
            assert tailer.read() is not None
        good += rows(tailer.read_batch(schema=schema))
        expected = rows(batch.drop_columns(["_error"]))
        assert good == [{} if why else row for row, why in zip(expected, said, strict=True)]
    shutil.rmtree(folder)


def test_the_forms_are_those_of_the_page() -> None:
    assert wire.text("msg0") == bytes.fromhex("e4 6d 73 67 30")
    assert wire.text("😀") == bytes.fromhex("e6 ed a0 bd ed b8 80")
    assert wire.event("noArg") == bytes.fromhex("b9 05 6e 6f 41 72 67 e0")
    assert wire.stop_bit(-129) == bytes.fromhex("80 81 00")
    assert b"\x96\xd6\xdf\xbf\x01" in wire.float_forms(3.14159)
    assert [wire.temporal(it)[0] for it in (time(1), date(2024, 1, 1), datetime(2024, 1, 1))] == [  # noqa: DTZ001
        0xB2,
        0xB3,
        0xB4,
    ]
    assert Decimal("1.5") == Decimal("1.50")
