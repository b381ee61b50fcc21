"""What each encoded value becomes as each declared type, against what Java makes of it."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import quire
from paths import GOLDEN

ROWS: list[dict[str, Any]] = json.loads((GOLDEN / "wire" / "conversions.json").read_text())
REFUSED = object()


class Side(enum.Enum):
    BUY = 1
    SELL = 2


def as_float(said: str) -> float:
    return float(said.replace("Infinity", "inf"))


# By Java's type: the annotation, and what Java printed as a value of it.
TYPES: dict[str, tuple[Any, Callable[[str], Any]]] = {
    "byte": (quire.types.int8, int),
    "short": (quire.types.int16, int),
    "int": (quire.types.int32, int),
    "long": (quire.types.int64, int),
    "float": (quire.types.float32, as_float),
    "double": (float, as_float),
    "boolean": (bool, "true".__eq__),
    "String": (str, str),
    "BigDecimal": (Decimal, Decimal),
    "LocalDate": (dt.date, dt.date.fromisoformat),
    "LocalTime": (dt.time, lambda said: dt.time.fromisoformat(said[:15])),
    "LocalDateTime": (dt.datetime, dt.datetime.fromisoformat),
    "ZonedDateTime": (dt.datetime, lambda said: dt.datetime.fromisoformat(said.split("[")[0])),
    "Instant": (quire.types.instant, dt.datetime.fromisoformat),
    "UUID": (uuid.UUID, uuid.UUID),
    "ProbeSide": (Side, Side.__getitem__),
    "byte[]": (bytes, bytes.fromhex),
    "List<Object>": (list, str),
    "Map<String,Object>": (dict, str),
}

# Where Quire differs, and why; docs/compatibility.md tells it to users.
NONSENSE = {  # Java's value tells nothing of the message: the smallest number, or a dump of bytes
    "float": {"null", "blob of none"},
    "long": {"blob of none", "reserved 83", "reserved 8b"},
}
NUMBERS_IN_BLOBS = {"float": {"blob of '5'"}, "long": {"blob of '5'"}}
NULL_TEXT = "long form of null text"  # null to Quire; to Java a text, or the smallest number
BEHIND_COMMENT = "comment, u8 5"  # Java's fields refuse it too, its arguments do not
DATETIME_OF_EITHER_KIND = {"LocalDateTime", "ZonedDateTime", "Instant"}
LENIENT = {  # Java refuses by accident of how it reads
    "double": {"padding, u8 5", "padding32 of 2, u8 5"},
    "byte[]": {"gzip of 1, 2, 255"},
    "Map<String,Object>": {"!!seqmap", "!ProbeLeaf", "!Nowhere map"},
}


def differs_for_a_reason(row: dict[str, Any], java_type: str, java: object, found: object) -> bool:
    name = row["name"]
    if name in {NULL_TEXT, BEHIND_COMMENT}:
        return True
    if java is REFUSED:
        lists = java_type == "List<Object>" and name.startswith(("!", "set low", "i64 a", "type"))
        return (
            lists
            or name in LENIENT.get(java_type, ())
            or (java_type in DATETIME_OF_EITHER_KIND and isinstance(found, dt.datetime))
        )
    if found is not REFUSED:
        return False
    token = bytes.fromhex(row["hex"])[0]
    is_block = token in {0x80, 0x81, 0x82, 0x8D, 0xB6}
    return (
        name in NONSENSE.get(java_type, ())
        or name in NUMBERS_IN_BLOBS.get(java_type, ())
        or (java_type == "String" and is_block)
        or (java_type == "List<Object>" and is_block)  # a map's bytes, or a blob, as elements
        or (java_type == "Map<String,Object>" and "{null=" in str(java))
    )


def said_by_java(row: dict[str, Any], java_type: str) -> object:
    for answer, types in row["argument"].items():
        if java_type in types.split(" "):
            if answer == "null":
                return None
            if not answer.startswith("="):
                return REFUSED
            return TYPES[java_type][1](answer[1:])
    raise AssertionError((row["name"], java_type))


def is_same(java: object, found: object) -> bool:
    if isinstance(java, float) and isinstance(found, float):
        return math.isclose(java, found, rel_tol=1e-7) or (math.isnan(java) and math.isnan(found))
    if isinstance(found, (list, dict)):
        return isinstance(java, str)
    if isinstance(found, dt.time) and isinstance(java, dt.time):
        return java.replace(microsecond=0) == found.replace(microsecond=0)
    return java == found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_value_becomes_what_java_makes_of_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender, row: dict[str, Any]
) -> None:
    appender.write_bytes(b"\xc1f" + bytes.fromhex(row["hex"]))
    with queue.tailer().reading_document() as document:
        for java_type, (declared, _) in TYPES.items():
            java = said_by_java(row, java_type)
            found: object = REFUSED
            try:
                document.raw.position = 0
                found = document.wire.read("f", declared)
            except quire.errors.WireError as error:
                assert "offset=" in str(error), (java_type, error)  # noqa: PT017
            assert is_same(java, found) or differs_for_a_reason(row, java_type, java, found), (
                java_type,
                java,
                found,
            )
