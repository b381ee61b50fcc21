"""``float`` has 64 bits, as in Python and numpy; what is stored keeps its width."""

from __future__ import annotations

import pickle
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
from quire.arrow.schema import Schema
from quire.arrow.schema_json import content_of, text_of

FLOAT32: Any = quire.types.float32


@pytest.mark.parametrize("name", ["float", "float64", "double", float])
def test_a_float_keeps_every_digit(tmp_path: Path, name: Any) -> None:  # noqa: ANN401
    schema = Schema({"px": name})
    with quire.open(tmp_path) as queue, queue.appender() as appender, queue.tailer() as tailer:
        appender.write_map({"px": 0.1})
        assert tailer.read_batch(schema=schema).column("px").to_pylist() == [0.1]
    assert schema.arrow.field("px").type == pa.float64()


def test_a_float_of_32_bits_is_named_so() -> None:
    assert Schema({"px": "float32"}).arrow.field("px").type == pa.float32()
    assert Schema({"px": FLOAT32}).arrow.field("px").type == pa.float32()


def test_types_are_shown_by_their_widths() -> None:
    inside: Any = {"float": pa.float32(), "d": pa.float64()}
    schema = Schema(
        {
            "narrow": pa.float32(),
            "wide": pa.float64(),
            "listed": [pa.float32()],
            "inside": inside,
            "mapped": pa.map_(pa.string(), pa.float64()),
        }
    )
    assert repr(schema).splitlines()[1:-1] == [
        "  narrow: float32,",
        "  wide: float64,",
        "  listed: list<item: float32>,",
        "  inside: struct<float: float32, d: float64>,",
        "  mapped: map<string, float64>,",
    ]


def test_a_stored_schema_keeps_its_width() -> None:
    schema = Schema({"narrow": pa.float32(), "wide": pa.float64()})
    assert content_of(text_of(schema.content)) == schema.content
    assert pickle.loads(pickle.dumps(schema)) == schema
    # As release 1.0 stored a column that was declared as "float".
    old = (
        '{"shape": "fields", "columns": "'
        "/////3gAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAA"
        "EAAUAAgABgAHAAwAAAAQABAAAAAAAAEDEAAAABwAAAAEAAAAAAAAAAIAAABweAAAAAAGAAgABgAGAAAA"
        "AAABAAAAAAA="
        '", "history": false, "index": "index", "types": []}'
    )
    assert Schema.from_text(old).arrow.field("px").type == pa.float32()


def test_types_of_python_are_types_of_columns() -> None:
    schema = Schema(
        {"n": int, "s": str, "b": bytes, "f": bool, "d": date, "t": datetime, "l": list[float]}
    )
    types: list[Any] = schema.arrow.types
    assert [*map(str, types)][1:] == [
        "int64",
        "string",
        "binary",
        "bool",
        "date32[day]",
        "timestamp[us, tz=UTC]",
        "list<item: double>",
    ]


@pytest.mark.parametrize("kind", [None, 7, ["a", "b"], object(), b"float"])
def test_what_is_no_type_is_said_to_be_none(kind: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=r"not a column type: type="):
        Schema({"px": kind})


@pytest.mark.parametrize("fields", [None, "float", 7, ["a"]])
def test_what_names_no_columns_is_refused(fields: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=r"expected columns by name and type"):
        Schema(fields)
