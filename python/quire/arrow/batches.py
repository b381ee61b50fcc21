"""Buffers of the native decoder as pyarrow arrays and batches, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quire.arrow.column_types import Field, Type, fields_of
from quire.arrow.names import ERROR

if TYPE_CHECKING:
    from quire._native import Buffer, Column, Table


def array_of(kind: Type, column: Column) -> pa.Array[Any]:
    """Return the decoder's buffers as an array."""
    length, nulls, buffers, inside, values = column
    if values is not None:
        codes = pa.Array.from_buffers(pa.int32(), length, list(map(_buffer, buffers)), nulls)
        dictionaries: Any = pa.DictionaryArray
        made: pa.Array[Any] = dictionaries.from_arrays(codes, array_of(pa.string(), values))
        return made
    children = [
        array_of(field.type, child) for field, child in zip(_inside(kind), inside, strict=True)
    ]
    return pa.Array.from_buffers(
        kind, length, list(map(_buffer, buffers)), nulls, children=children or None
    )


def _inside(kind: Type) -> list[Field]:
    if pa.types.is_map(kind):
        return [pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)]
    return fields_of(kind)


def _buffer(buffer: Buffer | None) -> pa.Buffer | None:
    if buffer is None:
        return None
    return pa.py_buffer(buffer if len(buffer) else b"")


def record_batch(schema: pa.Schema, table: Table, index: str | None) -> pa.RecordBatch:
    """Return a table of the decoder as a batch of this schema; *index* names its first column."""
    rows, indexes, columns, history, errors = table
    found: list[Column] = [*columns, *([] if history is None else [history])]
    if index is not None:
        found.insert(0, (rows, 0, [None, indexes], [], None))
    if errors is not None:
        found.append(errors)
        nullable = [
            field if field.name == index else field.with_nullable(True)  # noqa: FBT003
            for field in fields_of(schema)
        ]
        schema = pa.schema([*nullable, pa.field(ERROR, pa.string())])
    arrays = [
        array_of(field.type, column) for field, column in zip(fields_of(schema), found, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
