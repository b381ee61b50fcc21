"""Handles of formats whose messages are raw bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from quire._common.optional_arrow import payload_column
from quire.errors import WireError
from quire.formats.missing import Handle, refuse_options
from quire.handles.base import BATCH_BYTES, BATCH_COUNT, Appender, Tailer

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer

    from quire._native import Column, Plan, Table

_READ_OPTIONS = ("schema", "columns", "method", "errors")
_WRITE_OPTIONS = ("schema", "form", "type", "method", "omit_nulls")

_E_co = TypeVar("_E_co", covariant=True)


class RawAppender(Appender, Handle):
    """Batches of messages on top of a native appender."""

    if TYPE_CHECKING:

        def _write_column(
            self, offsets: Buffer, data: Buffer, *, count: int, start: int, wide: bool
        ) -> int | None: ...

    def write_batch(
        self,
        batch: Any,  # noqa: ANN401 - of pyarrow
        **fields: object,
    ) -> int | None:
        """
        Append a message for each element of a binary or string column; return the last index.

        No Python object is made per message. Strings are written as UTF-8.

        Args:
            batch: A binary or string array of pyarrow, 32 or 64 bits wide, chunked or not; or a
                batch or table with one such column, or one called ``payload``.
            fields: Not supported: ``schema`` and the like are for columns that become fields.

        Raises:
            TypeError: The column holds neither bytes nor text.
            ValueError: The column holds nulls, or empty elements in a Quick-Queue; nothing was
                written.
            UnsupportedError: The batch has several columns and none is called ``payload``, or one
                of *fields* was given.

        """
        no_fields = self._missing["write_map"]
        refuse_options(self, "write_batch", fields, _WRITE_OPTIONS, no_fields)
        # Several columns are the fields of a message.
        column = payload_column(batch, no_fields)
        chunks: list[Any] = getattr(column, "chunks", None) or [column]
        last: int | None = None
        for chunk in filter(len, chunks):
            _, offsets, data = chunk.buffers()
            last = self._write_column(
                offsets or b"",
                data or b"",
                count=len(chunk),
                start=chunk.offset,
                wide=str(chunk.type).startswith("large_"),
            )
        return last


class RawTailer(Tailer[_E_co], Handle):
    """Batches of messages on top of a native tailer."""

    if TYPE_CHECKING:

        def move_to_index(self, index: int, /) -> bool: ...

    def read_batch(
        self, count: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES, **fields: object
    ) -> pa.RecordBatch:
        """
        Return at most *count* messages as the columns ``index`` (uint64) and ``payload`` (binary).

        No Python object is made per message. The batch is empty when nothing is there yet.

        Args:
            count: Rows, at most.
            max_bytes: End the batch before its messages have more bytes than this in all.
            fields: Not supported: ``schema`` and the like are for messages with fields.

        Raises:
            UnsupportedError: One of *fields* was given, but this format has no typed columns.

        """
        no_fields = self._missing["read_batches"]
        refuse_options(self, "read_batch", fields, _READ_OPTIONS, no_fields)
        return self._payload_batch(count, max_bytes)

    def _read_decoded(
        self,
        plan: Plan,
        count: int,
        *,
        max_bytes: int,
        end: int,
        **columns: Any,  # noqa: ANN401 - of the plan
    ) -> tuple[int, list[Table], Column | None, Column | None]:
        """Decode messages that are BinaryWire, as `Tailer._read_decoded` does."""
        _, indexes, *payloads = self._read_columns(count, max_bytes=max_bytes, end=end)
        try:
            return plan.decode(indexes, *payloads, **columns)
        except WireError:
            self.move_to_index(memoryview(indexes).cast("Q")[0])
            raise
