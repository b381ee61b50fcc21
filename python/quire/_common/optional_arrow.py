"""The optional pyarrow."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from quire._common import arguments
from quire.errors import UnsupportedError


def need_arrow() -> None:
    """
    Check that pyarrow is installed.

    Raises:
        ModuleNotFoundError: pyarrow is not installed; the text says how to install it.

    """
    try:
        import_module("pyarrow")
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        text = "batches and schemas need pyarrow: pip install 'quire[arrow]'"
        raise ModuleNotFoundError(text, name="pyarrow") from None


def payload_column(batch: object, why: str) -> Any:  # noqa: ANN401 - of pyarrow
    """
    Return the one column of a batch that holds messages, where they are raw bytes.

    Raises:
        UnsupportedError: The batch has several columns; *why* says why those are not a message.

    """
    need_arrow()
    import pyarrow as pa

    found: Any = batch
    if isinstance(batch, pa.RecordBatch | pa.Table):
        if batch.num_columns != 1 and "payload" not in batch.schema.names:
            names = ", ".join(batch.schema.names)
            raise UnsupportedError(f"messages of several columns: columns={names} ({why})")
        found = cast("Any", batch).column("payload" if batch.num_columns != 1 else 0)
    if not _is_array(found):
        raise arguments.refusal("batch", "a batch, table or array of pyarrow", batch)
    if str(found.type) not in {"binary", "large_binary", "string", "large_string"}:
        raise TypeError(f"a binary or string column is needed: type={found.type}")
    if found.null_count:
        raise ValueError(f"a message cannot be null: null_count={found.null_count}")
    return found


def _is_array(found: object) -> bool:
    import pyarrow as pa

    return isinstance(found, pa.Array | pa.ChunkedArray)
