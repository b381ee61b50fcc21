"""Quire reads the probes that it has no call to write."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

import quire
from probe_messages import ProbeSide
from probes import DOCUMENTS, FIELDS, ROWS

ABCD = b"abcd" * 75
HISTORY = {"sources": [1, 0x4CDB00000002], "timings": [1111, 2222]}

# Values of the field `f`, when nothing says of which type they are.
VALUES: dict[str, Any] = {
    **{f"int64_0x {value}": value for value in (0, 1, 255, 0x1234ABCDEF, -1)},
    **{f"fixedInt{bits} 5": 5 for bits in (8, 16, 32, 64)},
    "fixedFloat32 1": 1.0,
    "fixedFloat64 1": 1.0,
    # Finer, earlier and later than Python's types: as text.
    "time 10:30:15.123456789": "10:30:15.123456789",
    "date -0044-03-15": "-0044-03-15",
    "date +12024-01-15": "+12024-01-15",
    "object ZonedDateTime": "2024-01-15T10:30:00.000000001+01:00[Europe/Paris]",
    **{f"compress {codec} of 4": b"abcd" for codec in ("gzip", "lzw", "snappy", "!binary")},
    **{f"compress {codec} of 300": ABCD for codec in ("gzip", "lzw", "!binary")},
    "object Byte 5": 5,
    "object Short 5": 5,
    "object Long 5": 5,
    "object Float 1": 1.0,
    "object Float 0.1": 0.10000000149011612,
    "object map empty": [],  # as Java reads its own
    "object list mixed": [1, 2, "two", 3.5, 0.5, None, True, "c", 1, 2],
    "object set": {"a", "b"},
    "object set sorted": {1, 2},
    "object map sorted of int keys": {1: "a", 2: "b"},
    "object map of enum keys": {ProbeSide.BUY: 1},
    "object Integer[]": [1, None],
    # Of classes that nobody registered.
    "object OffsetDateTime": quire.Typed(
        "OffsetDateTime",
        {
            "dateTime": datetime(2024, 1, 15, 10, 30),  # noqa: DTZ001
            "offset": quire.Typed("java.time.ZoneOffset", {"totalSeconds": 3600}),
        },
    ),
    "object Period": quire.Typed("Period", {"years": 0, "months": 0, "days": 3}),
    "object int[][]": quire.Typed("int[][]", [[1, 2], [3]]),
    "object Leaf[]": quire.Typed("ProbeLeaf[]", [{"name": "a", "count": 1}, None]),
    "object serializable BitSet": quire.Typed("!bitset", [5]),
    "object throwable": quire.Typed(
        "java.lang.IllegalStateException",
        {
            "message": "it broke",
            "stackTrace": [{"class": "Market", "method": "buy", "file": "Market.java", "line": 12}],
        },
    ),
    "typePrefix of nothing known": quire.Typed("Nowhere", {"a": 1}),
    "map marshallable sorted": {"a": 1, "b": 2},
    "map as a leaf": {"a": 1},
    "sequence": [1, "a", [2.5]],
    "marshallable by hand": {"a": 1, "b": {"c": "x"}},
    "marshallable of 300 bytes": {"a": "x" * 300},
    "arrayDelta double": [100.5, 0.25, -0.25],
    "arrayDelta long": [1000, 1, -1],
    "int64forBinding": 5,
    "int32forBinding": 5,
    "int128forBinding": [5, 6],
    "int64array": [],
    "comment in an object": {"a": 1, "b": 2},
    "message configuration, declared": {"size": 11, "fast": True},
    "message configuration": quire.Typed("Configuration", {"size": 11, "fast": True}),
    "message configuration of defaults": quire.Typed("Configuration", []),
    "message configuration of defaults, declared": [],
}
# Whole documents, as a map of their fields.
MAPS: dict[str, dict[Any, Any]] = {
    **{f"padding of {length}": {"a": 1} for length in (1, 4, 5, 9)},
    "field named '€'": {"¬": 1},
    "event of an object": {5: "x"},
    "int64forBinding behind a text": {"t": "abc", "f": 5},
    "int32forBinding behind a text": {"t": "abcde", "f": 5},
    "history self-describing of one source": {"history": HISTORY, "say": "hello"},
    "history self-describing of one source of 5.26ea7": {
        "history": HISTORY | {"serviceName": 0},
        "say": "hello",
    },
}
# Java cannot read these either; the last it writes without compressing it.
REFUSED = ("utf8 of a", "utf8 of euro", "bytesLiteral of 3", "compress snappy of 300")


def read(
    queue: quire.JournalQueue, appender: quire.JournalAppender, name: str
) -> dict[str, Any] | None:
    appender.write_bytes(bytes.fromhex(ROWS[name]["bytes"]))
    with queue.tailer() as tailer:
        return tailer.read_map()


@pytest.mark.parametrize("name", [*VALUES, *MAPS])
def test_it_is_read(queue: quire.JournalQueue, appender: quire.JournalAppender, name: str) -> None:
    expected = {"f": VALUES[name]} if name in VALUES else MAPS[name]
    found = read(queue, appender, name)
    assert found == expected
    assert repr(found) == repr(expected) or "set" in name  # 1 is not True, nor 1.0


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_as_by_java(
    queue: quire.JournalQueue, appender: quire.JournalAppender, name: str
) -> None:
    assert ROWS[name]["object"].startswith("!")
    with pytest.raises(quire.errors.WireError):
        read(queue, appender, name)


def test_every_probe_is_written_or_read_somewhere() -> None:
    known = {*FIELDS, *DOCUMENTS, *VALUES, *MAPS, *REFUSED}
    rest = [name for name, row in ROWS.items() if "bytes" in row and name not in known]
    elsewhere = ("call ", "history ", "message fixed", "text half a surrogate", "no value")
    assert [name for name in rest if not name.startswith(elsewhere)] == []
