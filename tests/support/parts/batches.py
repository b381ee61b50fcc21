"""What is in a batch, as Python has it."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa


def rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows without their index; the buffers are checked."""
    batch.validate(full=True)
    columns: Any = batch.drop_columns(["index"])
    return cast("list[dict[str, Any]]", plain(columns.to_pylist()))


def values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """Return one column."""
    columns: Any = batch
    return cast("list[Any]", plain(columns.column(name).to_pylist()))


def plain(value: object) -> object:
    """Return what pandas would have, such as its times, as Python has it."""
    known: Any = value
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in known.items()}
    if isinstance(value, list | tuple):
        return type(known)(map(plain, known))
    return known.to_pydatetime() if hasattr(value, "to_pydatetime") else value
