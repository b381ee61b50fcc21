"""
The documents of `golden/wire/probes.json`, as Python writes them.

`FIELDS` holds values that are written as the field `f`; `DOCUMENTS` what is more than that. A name
that is in neither is in `NOT_OFFERED`, with the reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import quire
from paths import GOLDEN
from probe_messages import MESSAGES, ProbeLeaf, ProbeSide

ROWS: dict[str, dict[str, Any]] = {
    row["name"]: row
    for row in json.loads((GOLDEN / "wire" / "probes.json").read_text(encoding="ascii"))
}


class Field(NamedTuple):
    """A value, the annotation it is written by, and what is read back where that is another."""

    value: Any
    type: Any = None
    back: Any = ...


def _numbers() -> dict[str, Field]:
    """Those of names like `int64 255`: what they hold is in the name."""
    types = {
        "int64": int,
        "int32": quire.types.int32,
        "int16": quire.types.int16,
        "int8": quire.types.int8,
        "uint8": quire.types.uint8,
        "uint16": quire.types.uint16,
        "uint32": quire.types.uint32,
        "float64": float,
        "float32": quire.types.float32,
    }
    fields: dict[str, Field] = {}
    for name in ROWS:
        kind, _, value = name.partition(" ")
        if kind in types:
            number = float(value.replace("Infinity", "inf")) if "float" in kind else int(value)
            fields[name] = Field(number, types[kind])
    return fields


TEXTS: dict[str, str | None] = {
    "empty": "",
    "null": None,
    "one letter": "a",
    "15 letters of two bytes": "é" * 15,
    "16 letters of two bytes": "é" * 16,
    "31 letters of two bytes": "é" * 31,
    "11 letters of three bytes": "€" * 11,
    "surrogates": "a😀b",
    "zero": "a\0b",
    "lines": "one\ntwo\r\n\tthree\n",
}


def _texts() -> dict[str, Field]:
    fields = {f"text {name}": Field(text, str | None) for name, text in TEXTS.items()}
    fields |= {
        f"text {count} letters": Field("x" * count, str) for count in (31, 32, 127, 128, 300)
    }
    for name in ROWS:
        if name.startswith("text '"):
            fields[name] = Field(name[6:-1], str)
    return fields


MOMENT = datetime(2024, 1, 15, 10, 30, 0, 123_000, tzinfo=UTC)
PARIS = datetime(2024, 1, 15, 10, 30, tzinfo=ZoneInfo("Europe/Paris"))
LEAF = ProbeLeaf("bob", 3)
A_UUID = UUID("00000000-0000-0001-0000-000000000002")


def _blob(length: int) -> bytes:
    return bytes(255 if place == length - 1 else place % 256 for place in range(length))


SCALARS = {
    "bool true": Field(value=True, type=bool),
    "bool false": Field(value=False, type=bool),
    "bool null": Field(None, bool | None),
    "character a": Field("a", str),
    "character euro": Field("€", str),
    "character zero": Field("\0", str),
    "time 00:00": Field(time(0), time),
    "time 10:30": Field(time(10, 30), time),
    "time 10:30:15": Field(time(10, 30, 15), time),
    "time 10:30:15.120": Field(time(10, 30, 15, 120_000), time),
    "date 2024-01-15": Field(date(2024, 1, 15), date),
    "date 0001-01-01": Field(date(1, 1, 1), date),
    "date 9999-12-31": Field(date(9999, 12, 31), date),
    "dateTime 2024-01-15T10:30": Field(datetime(2024, 1, 15, 10, 30), datetime),  # noqa: DTZ001
    "dateTime 2024-01-15T10:30:15.000001": Field(
        datetime(2024, 1, 15, 10, 30, 15, 1),  # noqa: DTZ001
        datetime,
    ),
    "zonedDateTime in Z": Field(PARIS.replace(tzinfo=UTC), datetime),
    "zonedDateTime in UTC": Field(PARIS.replace(tzinfo=ZoneInfo("UTC")), datetime),
    "zonedDateTime in +01:00": Field(PARIS.replace(tzinfo=timezone(timedelta(hours=1))), datetime),
    "zonedDateTime in Europe/Paris": Field(PARIS, datetime),
    "uuid": Field(UUID("01234567-89ab-cdef-8899-aabbccddeeff"), UUID),
    "typeLiteral of a class": Field(quire.TypeLiteral("String")),
    "typeLiteral of a name": Field(quire.TypeLiteral("Nowhere")),
    "typeLiteral null": Field(None),
    "asEnum": Field(ProbeSide.SELL, ProbeSide),
    "asEnum null": Field(None, ProbeSide | None),
    **{f"bytes of {n}": Field(_blob(n), bytes) for n in (0, 1, 3, 254, 255, 256, 65534, 65535)},
    "bytes of text": Field(b"text", bytes),
    "bytes with a type": Field(quire.Typed("secret", _blob(3))),
    "bytes of a store": Field(_blob(3), bytes),
}

OBJECTS = {
    "null": Field(None),
    "Integer 5": Field(5),
    "Integer -1": Field(-1),
    "Long 2^40": Field(2**40),
    "Double 1": Field(1.0),
    "Double -0.0": Field(-0.0),
    "Double 0.1": Field(0.1),
    "Boolean true": Field(value=True),
    "Character a": Field("a"),
    "String": Field("text"),
    "StringBuilder": Field("text"),
    "BigDecimal": Field(Decimal("-1.50"), back="-1.50"),
    "BigDecimal 1E+30": Field(Decimal("1E+30"), back="1E+30"),
    "BigInteger": Field(Decimal(123456789012345678901234567890), Decimal),
    "enum": Field(ProbeSide.BUY),
    "Class": Field(quire.TypeLiteral("ProbeLeaf")),
    "LocalTime": Field(time(10, 30, 15, 500_000)),
    "LocalDate": Field(date(2024, 1, 15)),
    "LocalDateTime": Field(datetime(2024, 1, 15, 10, 30)),  # noqa: DTZ001
    "Duration": Field(timedelta(seconds=90.5), back="PT1M30.5S"),
    "UUID": Field(A_UUID),
    "byte[] 1, 2, 255": Field(bytes([1, 2, 255])),
    "byte[] empty": Field(b""),
    "Bytes": Field(bytes([1, 2, 255]), bytes),
    "Instant": Field(quire.Typed("java.time.Instant", "2024-01-15T10:30:00.123Z"), back=MOMENT),
    "Date": Field(quire.Typed("java.util.Date", "2024-01-15T10:30:00.123 GMT")),
    "int[]": Field(quire.Typed("int[]", [1, 300, -70_000]), back=[1, 300, -70_000]),
    "int[] empty": Field(quire.Typed("int[]", []), back=[]),
    "long[]": Field(quire.Typed("long[]", [1, 1 << 40, -(1 << 63)]), back=[1, 1 << 40, -(1 << 63)]),
    "double[]": Field(quire.Typed("double[]", [1.0, 0.1, math.nan]), back=[1, 0.1, math.nan]),
    "float[]": Field(quire.Typed("float[]", [1.0, 0.1]), back=[1, 0.1]),
    "short[]": Field(quire.Typed("short[]", [1, -300]), back=[1, -300]),
    "char[]": Field(quire.Typed("char[]", ["a", "€"]), back=["a", "€"]),
    "boolean[]": Field(quire.Typed("boolean[]", [True, False]), back=[True, False]),
    "String[]": Field(["a", None, ""]),
    "Object[]": Field([1, "a", 2.5, None]),
    "list empty": Field([]),
    "list of ints": Field([1, 2]),
    "list of List.of": Field(["a", "b"]),
    "list of lists": Field([[1], [], [[2]]]),
    "list of maps": Field([{"a": 1}, {"b": {"c": 2}}]),
    "list of leaves": Field([ProbeLeaf("a", 1), ProbeLeaf("b", 2)]),
    "list of dates": Field(
        [date(2024, 1, 15), A_UUID, ProbeSide.SELL, Decimal("1.5")],
        back=[date(2024, 1, 15), A_UUID, ProbeSide.SELL, "1.5"],
    ),
    "set empty": Field(set()),
    "set in a list": Field([{1}]),
    "collection unmodifiable": Field([1]),
    "map": Field({"a": 1, "b": "two", "c": None}),
    "map nested": Field({"a": {"b": {"c": 1}}, "d": [{"e": 2}]}),
    "map of names": Field({"": 1, "12": 2, "with space": 3, "café": 4, "k" * 40: 5}),
    "map of int keys": Field({1: "one", 300: "more"}),
    "map of other keys": Field({2.5: 1, True: 2, date(2024, 1, 15): 3, ProbeSide.BUY: 4}),
    "map of leaf keys": Field({ProbeLeaf("a", 1): "x"}),
    "map of null key": Field({None: 1}),
    "map of arrays": Field(
        {"ints": quire.Typed("int[]", [1]), "bytes": b"\1\2", "texts": ["a"]},
        back={"ints": [1], "bytes": b"\1\2", "texts": ["a"]},
    ),
    "map sorted": Field(quire.Typed("!omap", {"a": 1, "b": 2}), back={"a": 1, "b": 2}),
    "map of leaves": Field({"x": ProbeLeaf("a", 1)}),
    "Leaf": Field(LEAF),
    "Leaf of nothing": Field(ProbeLeaf()),
    "declared as Leaf": Field(LEAF, ProbeLeaf),
    "declared as Object": Field(LEAF, object),
}

SHAPES = {
    "typedMarshallable": Field(LEAF),
    "marshallable": Field(LEAF, ProbeLeaf),
    "typePrefix of a text": Field(quire.Typed("T", "x")),
    "list declared Leaf": Field([ProbeLeaf("a", 1)], list[ProbeLeaf]),
    "set declared String": Field({"a"}, set[str]),
    "map marshallable": Field({"a": 1}),
    "map declared": Field({"a": 1}, dict[str, int]),
    "sequence of nothing": Field([]),
    "marshallable of nothing": Field([]),
    "array double": Field([1.0, 0.5, 0.1], list[float]),
    "array double, two of three": Field([1.0, 0.5], list[float]),
    "array long": Field([1, 300, 1 << 40], list[int]),
    "array int": Field([1, 300, -70_000], list[quire.types.int32]),
    "array boolean": Field([True, False], list[bool]),
    "array byte": Field([1, -1], list[quire.types.int8]),
    "boolForBinding": Field(value=True),
}


def _messages() -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for name, message in MESSAGES.items():
        fields[f"message {name}"] = Field(message)
        fields[f"message {name}, declared"] = Field(message, type(message))
    return fields


FIELDS: dict[str, Field] = {
    **_numbers(),
    **_texts(),
    **SCALARS,
    **{f"object {name}": field for name, field in OBJECTS.items()},
    **SHAPES,
    **_messages(),
}


def _names() -> dict[str, Callable[[quire.WriteDocument], None]]:
    documents: dict[str, Callable[[quire.WriteDocument], None]] = {}
    for row in ROWS:
        kind, _, name = row.partition(" named ")
        name = name[1:-1]
        if name.endswith(" letters"):
            name = "n" * int(name.split()[0])
        if kind == "field" and name != "€":
            documents[row] = partial(_field, name, 1, int)
        elif kind == "event":
            documents[row] = partial(_event, name, 1, int)
        elif row.startswith("event numbered "):
            number = int(row.removeprefix("event numbered "))
            documents[row] = partial(_event, number, "x", None)
    return documents


def _field(name: str, value: object, kind: object, document: quire.WriteDocument) -> None:
    document.wire.write(name, value, kind)


def _event(name: str | int, value: object, kind: object, document: quire.WriteDocument) -> None:
    if isinstance(name, int):
        document.wire.write_event_id(name)
    else:
        document.wire.write_event(name)
    document.wire.write_value(value, kind)


def _bare(value: object, kind: object, document: quire.WriteDocument) -> None:
    document.wire.write_value(value, kind)


def _three_fields(document: quire.WriteDocument) -> None:
    document.wire.write("number", 7, int)
    document.wire.write("name", "name 7")
    document.wire.write("half", 3.5, float)


def _twice(document: quire.WriteDocument) -> None:
    document.wire.write("a", 1, int)
    document.wire.write("a", 2, int)


def _four_values(document: quire.WriteDocument) -> None:
    document.wire.write_value(1, int)
    document.wire.write_value("two")
    document.wire.write_value(3.5, float)
    document.wire.write_value(True)  # noqa: FBT003 - a value


def _comment(document: quire.WriteDocument) -> None:
    document.wire.write_comment("a remark")
    document.wire.write("a", 1, int)


def _comment_after(document: quire.WriteDocument) -> None:
    document.wire.write("a", 1, int)
    document.wire.write_comment("a remark")


BARE: dict[str, tuple[Any, Any]] = {
    "text": ("hello", None),
    "text of null": (None, None),
    "int64": (5, int),
    "float64": (1.5, float),
    "bool": (True, None),
    "object Integer": (5, None),
    "object Leaf": (LEAF, None),
    "list": ([1, "a"], None),
    "map": ({"a": 1}, None),
    "bytes": (b"\1\2", bytes),
}

DOCUMENTS: dict[str, Callable[[quire.WriteDocument], None]] = {
    **{f"bare {name}": partial(_bare, *pair) for name, pair in BARE.items()},
    **_names(),
    "three fields": _three_fields,
    "the same field twice": _twice,
    "bare four values": _four_values,
    "raw bytes": lambda document: document.write_bytes(b"raw bytes"),
    "comment": _comment,
    "comment behind a field": _comment_after,
}

NOT_OFFERED = {
    "object map empty": "a type stands before it: Java reads its own one back as a list",
    "int64_0x": "a code for longs shown in hex: read, never written",
    "fixed": "a width kept whatever the value; `int` as it is becomes Java's Integer or Long",
    "object Byte": "as above",
    "object Short": "as above",
    "object Long 5": "as above",
    "object Float": "`float` as it is becomes Java's Double",
    "object list mixed": "as above",
    "text half a surrogate": "not a text in Python's strict sense",
    "utf8 of": "a code point under the code of a number: Java cannot read it back",
    "time 10:30:15.123456789": "Python's times end with microseconds",
    "date -0044": "Python's years are 1 to 9999",
    "date +12024": "as above",
    "object ZonedDateTime": "nanoseconds",
    "object OffsetDateTime": "Java takes it apart by reflection",
    "object Period": "as above",
    "object serializable": "as above",
    "object throwable": "as above",
    "object Integer[]": "Java cannot read it back",
    "object int[][]": "as above",
    "object Leaf[]": "as above",
    "object set": "Python's sets have no order",
    "object map sorted of int keys": "a sorted map by name only",
    "object map of enum keys": "as above",
    "field named '\u20ac'": "Java keeps its low byte",
    "event of an object": "a key of any type, in maps alone",
    "no value": "a document needs a byte: it gets padding",
    "list declared Long": "Java refuses",
    "list undeclared": "Java refuses",
    "bytes null": "Java refuses",
    "bytesLiteral": "looks like a list",
    "compress": "read, never written",
    "map marshallable sorted": "a sorted map by name only",
    "map as a leaf": "it matters in text alone",
    "sequence": "elements of several declared types",
    "marshallable": "fields by hand",
    "typePrefix of nothing known": "fields by hand",
    "arrayDelta": "the reader has to know",
    "comment in an object": "a comment stands between the fields of a document",
    "int64forBinding": "aligned values to be changed in place",
    "int32forBinding": "as above",
    "int128forBinding": "as above",
    "int64array": "as above",
    "padding": "where Java needs alignment",
    "message configuration": "it leaves out what has its default",
    "message fixed": "characters, and objects without a layout",
    "history": "tests/java/test_methods.py",
    "call": "tests/java/test_methods.py",
}
