"""What Java's Vanilla Chronicle writes Quire reads, and the reverse."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import quire
from java_peer import JavaPeer
from vanilla_java import JAVA_BLOCKS, vanilla_java, vanilla_queue

pytestmark = pytest.mark.java

INT32, INT64 = 1 << 31, 1 << 63
# Fields of every type, a message for each type.
FIELDS: dict[str, list[Any]] = {
    "int8": [0, 1, -128, 127],
    "int16": [0, -1, -(1 << 15), (1 << 15) - 1],
    "int24": [0, -1, -(1 << 23), (1 << 23) - 1],
    "int32": [0, -1, -INT32, INT32 - 1],
    "int48": [0, -1, -(1 << 47), (1 << 47) - 1],
    "int64": [0, -1, -INT64, INT64 - 1],
    "float32": [0.0, -1.5, 2.0**127, math.inf],
    "float64": [0.0, -1.1, 1e300, -math.inf],
    "boolean": [True, False],
    "char": ["A", "é", "\uffff"],
    "stop_bit": [0, 1, 127, 128, 300, -1, -2, -128, -129, INT64 - 1, -INT64],
    "compact_int": [0, -32766, -32767, -32768, 32767, 32768, INT32 - 1, -INT32],
    "compact_long": [0, 2 - INT32, 1 - INT32, -INT32, INT32, INT64 - 1, -INT64],
    "compact_double": [0.0, 1.5, 1.1, -1e300],
    "utf": ["", "EURUSD", "é€", "😀", "\0"],
    "utf16_length": ["", "EURUSD", "é€😀"],
    "enum": ["BUY", "SELL"],
    "append_int": [0, -12, INT64 - 1, -INT64],
    "append_float": [0.0, 1.5, -0.1, 1e10, 123456.789],
}


@pytest.fixture(scope="module")
def java() -> JavaPeer:
    return vanilla_java()


def write_field(excerpt: quire.ExcerptWriter, kind: str, value: Any) -> None:  # noqa: ANN401
    if kind.startswith("append_"):
        excerpt.append(value)
        excerpt.append(" ")
    else:
        getattr(excerpt, f"write_{kind}")(value)


def read_field(excerpt: quire.VanillaExcerpt, kind: str) -> object:
    method = kind.replace("append_", "parse_") if "append_" in kind else f"read_{kind}"
    return getattr(excerpt, method)()


def as_text(kind: str, value: Any) -> str:  # noqa: ANN401 - a field
    """A value as the options of the Java peer spell it."""
    if kind == "char":
        return str(ord(value))
    return str(value).lower() if kind == "boolean" else str(value).replace("inf", "Infinity")


def as_json(kind: str, value: Any) -> Any:  # noqa: ANN401 - a field
    """A value as the Java peer prints it."""
    return ord(value) if kind == "char" else value


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_of_quire_are_those_of_java(java: JavaPeer, tmp_path: Path, kind: str) -> None:
    with vanilla_queue(tmp_path / "quire") as queue, queue.appender() as appender:
        for value in FIELDS[kind]:
            with appender.writing_excerpt() as excerpt:
                write_field(excerpt, kind, value)
                excerpt.write_int8(1)
        own = [*queue.tailer().payloads()]
    request = f"{kind} int8\n" * len(own)
    found = java.run_with_input("read-fields", request, dir=tmp_path / "quire", **JAVA_BLOCKS)
    assert [*map(json.loads, found)] == [
        {"values": [as_json(kind, value), 1], "left": 0} for value in FIELDS[kind]
    ]
    lines = "".join(f"{kind}={as_text(kind, value)} int8=1\n" for value in FIELDS[kind])
    java.run_with_input("write-fields", lines, dir=tmp_path / "java", **JAVA_BLOCKS)
    with vanilla_queue(tmp_path / "java") as queue:
        assert [*queue.tailer().payloads()] == own
        values = [read_field(excerpt, kind) for excerpt in queue.tailer()]
    assert values == FIELDS[kind]
