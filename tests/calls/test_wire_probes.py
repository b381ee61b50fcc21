"""
What Java's generated writers wrote for every scalar and shape, read and written again: the bytes
are the same, and the values those that were meant.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import quire
from paths import GOLDEN
from probe_messages import (
    Arrays,
    Boxed,
    ByHand,
    Child,
    Collections,
    FixedNumbers,
    Flat,
    Nested,
    OfAny,
    Times,
    Unnamed,
)

PROBES = GOLDEN / "wire" / "probes.json"
ROWS: list[dict[str, Any]] = json.loads(PROBES.read_text())

# What one value behind a field name was written as, by Java's method for it.
DECLARED: dict[str, Any] = {
    "int64": quire.types.int64,
    "int32": quire.types.int32,
    "int16": quire.types.int16,
    "int8": quire.types.int8,
    "uint32": quire.types.uint32,
    "uint16": quire.types.uint16,
    "uint8": quire.types.uint8,
    "float64": float,
    "float32": quire.types.float32,
    "text": str,
    "character": str,
    "time": dt.time,
    "date": dt.date,
    "dateTime": dt.datetime,
    "zonedDateTime": dt.datetime,
    "uuid": uuid.UUID,
    "asEnum": str,
    "bytes": bytes,
}
# Python's microseconds and years do not reach that far: such values are read as text.
BEYOND_PYTHON = {"time 10:30:15.123456789", "date -0044-03-15", "date +12024-01-15"}
# Half a character is refused; and a type in front of a declared blob is not written again.
LEFT_OUT = {"text half a surrogate", "bytes with a type"}


def fields() -> Iterator[Any]:
    for row in ROWS:
        method = row["how"].removeprefix('write("f").').split("(")[0]
        known = row["how"].startswith('write("f")') and method in DECLARED
        if known and row.get("bytes") and row["name"] not in BEYOND_PYTHON | LEFT_OUT:
            declared = DECLARED[method]
            if row["name"].endswith(" null"):
                declared = declared | None
            yield pytest.param(row, declared, id=row["name"])


@pytest.mark.parametrize(("row", "declared"), [*fields()])
def test_a_field_is_written_as_java_writes_it(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    row: dict[str, Any],
    declared: type[Any],
) -> None:
    payload = bytes.fromhex(row["bytes"])
    appender.write_bytes(payload)

    with queue.tailer().reading_document() as document:
        value = document.wire.read("f", declared)
    assert_meant(row["name"], value)

    with appender.writing_document() as document:
        document.wire.write("f", value, declared)
    assert queue.tailer().read_many(2)[1] == payload


def assert_meant(name: str, value: object) -> None:
    """The value is the one in the probe's name, where it is there."""
    method, _, said = name.partition(" ")
    if said == "null":
        assert value is None
    elif method.startswith(("int", "uint")):
        assert value == int(said)
    elif method.startswith("float"):
        expected = float(said.replace("Infinity", "inf"))
        assert value == pytest.approx(expected, rel=1e-7, nan_ok=True)
    elif method in {"time", "date", "dateTime"}:
        assert value == DECLARED[method].fromisoformat(said)
    elif method == "text" and said.startswith("'"):
        assert value == said[1:-1]


MESSAGES: dict[str, Any] = {
    vars(cls)["__quire_codec__"].alias.lower(): cls
    for cls in (Flat, Boxed, Times, Nested, Collections, Arrays, Child, OfAny, ByHand, FixedNumbers)
} | {"without": Unnamed, "fixed of numbers": FixedNumbers}


def messages() -> Iterator[Any]:
    for row in ROWS:
        kind, _, name = row["name"].partition(" ")
        cls = MESSAGES.get(name.split(",")[0]) or MESSAGES.get(name.split(" ")[0].split(",")[0])
        if name.startswith("by hand"):
            cls = ByHand
        if kind == "message" and cls and row.get("bytes"):
            yield pytest.param(row, cls, id=row["name"])


@pytest.mark.parametrize(("row", "cls"), [*messages()])
def test_an_object_is_written_as_java_writes_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender, row: dict[str, Any], cls: type
) -> None:
    payload = bytes.fromhex(row["bytes"])
    declared = cls if row["name"].endswith("declared") else None
    appender.write_bytes(payload)

    with queue.tailer().reading_document() as document:
        value = document.wire.read("f", declared)
    assert type(value) is cls

    with appender.writing_document() as document:
        document.wire.write("f", value, declared)
    assert queue.tailer().read_many(2)[1] == payload


# A value without a declared type is written in its widest form, and what Python has one type for.
OF_ANOTHER_WIDTH = {
    "object Byte 5",
    "object Short 5",
    "object Long 5",
    "object Float 1",
    "object Float 0.1",
    "object list mixed",
}
# Python has one type for what Java has several: arrays and sorted collections, blobs, moments.
OF_ANOTHER_TYPE = {
    f"object {name}"
    for name in [
        "Instant",
        "Bytes",
        "int[]",
        "int[] empty",
        "long[]",
        "double[]",
        "float[]",
        "short[]",
        "char[]",
        "boolean[]",
        "Integer[]",
        "set sorted",
        "map sorted",
        "map sorted of int keys",
        "map of arrays",
    ]
}
# Nanoseconds make it a text.
FINER_THAN_PYTHON = {"object ZonedDateTime"}
# What stands behind a name that nobody knows has lost its widths, and names are keys.
OF_UNKNOWN_CLASS = {
    f"object {name}"
    for name in [
        "OffsetDateTime",
        "Period",
        "int[][]",
        "Leaf[]",
        "serializable BitSet",
        "throwable",
    ]
}
CHANGED = OF_ANOTHER_WIDTH | OF_ANOTHER_TYPE | FINER_THAN_PYTHON | OF_UNKNOWN_CLASS
# Python's sets have no order, and a NaN is not itself.
SAME_BY_CHANCE = {"object set"}
NEVER_EQUAL = {"object double[]"}


def objects() -> Iterator[Any]:
    for row in ROWS:
        if row["how"] == 'write("f").object(x)' and row["name"].startswith("object "):
            yield pytest.param(row, id=row["name"])


@pytest.mark.parametrize("row", [*objects()])
def test_any_object_is_read_and_written_again(
    queue: quire.JournalQueue, appender: quire.JournalAppender, row: dict[str, Any]
) -> None:
    payload = bytes.fromhex(row["bytes"])
    appender.write_bytes(payload)

    with queue.tailer().reading_document() as document:
        value = document.wire.read("f")
    with appender.writing_document() as document:
        document.wire.write("f", value)

    found = queue.tailer().read_many(2)[1]
    with queue.tailer() as tailer:
        assert tailer.move_to_index(queue.last_index or 0)
        with tailer.reading_document() as document:
            again = document.wire.read("f")
    assert again == value or row["name"] in NEVER_EQUAL
    if row["name"] not in SAME_BY_CHANCE:
        assert (found == payload) == (row["name"] not in CHANGED)
