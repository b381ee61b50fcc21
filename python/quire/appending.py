"""Appenders: what the native one lacks because it needs pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quire import _native

if TYPE_CHECKING:
    import pyarrow as pa


class Appender(_native.Appender):
    """Writes messages at the end of a queue, from :meth:`quire.Queue.appender`."""

    def write_batch(self, column: pa.Array[Any] | pa.ChunkedArray[Any]) -> int | None:
        """
        Append each element of an Arrow column: binary as it is, strings as text values.

        No Python object is made per element, and each chunk is written under one lock.

        Args:
            column: A binary or string array, 32 or 64 bits wide, chunked or not.

        Returns:
            The last index; None when the column is empty.

        Raises:
            TypeError: The column holds something else.
            ValueError: It holds nulls or empty elements; nothing was written.

        """
        import pyarrow as pa

        if column.null_count:
            raise ValueError(f"a message cannot be null: null_count={column.null_count}")
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        last: int | None = None
        for chunk in chunks:
            if len(chunk):
                last = self._write_chunk(chunk)
        return last

    def _write_chunk(self, chunk: pa.Array[Any]) -> int | None:
        import pyarrow as pa

        wide = pa.types.is_large_binary(chunk.type) or pa.types.is_large_string(chunk.type)
        text = pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)
        if not (wide or text or pa.types.is_binary(chunk.type)):
            raise TypeError(f"a binary or string column is needed: type={chunk.type}")
        _, offsets, data = chunk.buffers()
        return self.write_column(
            offsets or b"",
            data or b"",
            count=len(chunk),
            start=chunk.offset,
            wide=wide,
            text=text,
        )
