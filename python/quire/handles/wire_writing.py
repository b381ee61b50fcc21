"""Appenders that write columns as messages of BinaryWire."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from quire._common import arguments
from quire._common.optional_arrow import need_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Buffer

    from quire.arrow.encoder import Form
    from quire.arrow.schema import SchemaLike
    from quire.handles.journal.acknowledgement import History
    from quire.handles.journal.acknowledging import Wait

    class _Frame(Protocol):
        """A data frame, or whatever else hands over its columns as Arrow."""

        def __arrow_c_stream__(self, requested_schema: Any = None, /) -> object: ...  # noqa: ANN401

    BatchLike: TypeAlias = pa.RecordBatch | pa.Table | pa.Array[Any] | pa.ChunkedArray[Any] | _Frame


class WireWriting:
    """Columns as messages, on top of an appender of their bytes."""

    if TYPE_CHECKING:

        @property
        def _has_field_names(self) -> bool: ...
        def _check_wait(self, wait: Wait | None, /) -> History | None: ...
        def _wait_for(
            self,
            index: int,
            wait: Wait | None,
            /,
            *,
            timeout_s: float | None = None,
            history: History | None = None,
            waited_s: float = 0.0,
        ) -> None: ...
        def _write_column(  # noqa: PLR0913 - those of the kernel
            self,
            offsets: Buffer,
            data: Buffer,
            *,
            count: int,
            start: int,
            wide: bool,
            text: bool,
            note: bytes | None = None,
        ) -> int | None: ...

    def write_batch(  # noqa: PLR0913 - by keywords
        self,
        batch: BatchLike,
        *,
        schema: SchemaLike | None = None,
        form: Form | None = None,
        type: str | None = None,  # noqa: A002
        method: str | None = None,
        omit_nulls: bool = False,
        wait: Wait | None = None,
    ) -> int | None:
        """
        Append a message for each row of a batch, or for each element of a column.

        No Python object is made per message, and many are written under one lock.

        Args:
            batch: A batch, a table, or a data frame of pandas or another library (a named index
                becomes columns as well). Or a binary or string array, 32 or 64 bits wide, chunked
                or not: binary elements are written as they are, strings as text values.
            schema: The schema of the messages. Columns are checked against it, and cast if nothing
                is lost.
            form: What a row becomes. ``raw``: the bytes of the one binary column. ``text``: the
                one string as a text value. ``map``: an entry for each column, as
                :meth:`JournalAppender.write_map`. ``fields``: a field for each column, as
                :meth:`JournalAppender.write_message`. ``typed``: the same after the name of a
                type. ``method``: a call. None: ``typed`` with *type*, ``method`` with *method* or a
                schema of methods, ``fields`` with the schema of a message class, ``raw`` for one
                binary column ``payload``, ``text`` for one string column ``value``, else ``map``.
            type: The type name written before the fields.
            method: The method to call: a column for each argument or, with a schema of methods,
                the columns that ``read_batch(method=...)`` returns.
            omit_nulls: Leave null columns out of a message instead of writing null.
            wait: How many replicas to wait for after the last message, as for the appender.

        Returns:
            The last index; None if the batch is empty.

        Raises:
            TypeError: The column holds neither bytes nor text.
            ValueError: The columns cannot become such messages, or an array holds nulls or empty
                elements; nothing was written.
            WireError: A value has no encoding; nothing was written.

        Examples:
            >>> import pyarrow as pa
            >>> batch = pa.RecordBatch.from_pydict({"symbol": ["EURUSD"], "bid": [1.1]})
            >>> last = appender.write_batch(batch)
            >>> tailer.read_map()
            {'symbol': 'EURUSD', 'bid': 1.1}

        """
        history = self._check_wait(wait)
        last: int | None = None
        accepted = 0
        for write in self._writes(batch, schema, form, type, method, omit_nulls=omit_nulls):
            with after(accepted):
                last = write()
            accepted += count_of(write)
        if last is not None:
            self._wait_for(last, wait, history=history)
        return last

    def _writes(  # noqa: PLR0913 - those of write_batch
        self,
        batch: BatchLike,
        schema: SchemaLike | None,
        form: Form | None,
        type: str | None,  # noqa: A002
        method: str | None,
        *,
        omit_nulls: bool,
    ) -> list[Callable[[], int | None]]:
        """Encode a batch, and return what appends each chunk of it."""
        need_arrow()
        import pyarrow as pa

        if isinstance(batch, pa.Array | pa.ChunkedArray):
            return self._writes_of_array(cast("Any", batch))
        from quire.arrow.encoder import Encoder
        from quire.arrow.schema import Schema

        batch = _tabular(batch)
        encoder = Encoder(
            batch.schema,
            form=form,
            type=type,
            method=method,
            schema=None if schema is None else Schema.given(schema),
            omit_nulls=omit_nulls,
            fieldless=not self._has_field_names,
        )
        batches = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
        encoded = [encoder.encode(it) for it in batches if it.num_rows]
        return [partial(self._write_chunk, it, wide=True, text=False) for it in encoded]

    def _writes_of_array(
        self, column: pa.Array[Any] | pa.ChunkedArray[Any]
    ) -> list[Callable[[], int | None]]:
        import pyarrow as pa

        if column.null_count:
            raise ValueError(f"a message cannot be null: null_count={column.null_count}")
        wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if not (wide or text or pa.types.is_binary(column.type)):
            raise TypeError(f"a binary or string column is needed: type={column.type}")
        if not text and _shortest(column) == 0:
            raise ValueError("a message holds at least one byte: the column has an empty element")
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return [partial(self._write_chunk, it, wide=wide, text=text) for it in chunks if len(it)]

    def _write_chunk(self, chunk: pa.Array[Any], *, wide: bool, text: bool) -> int | None:
        _, offsets, data = chunk.buffers()
        return self._write_column(
            offsets or b"",
            data or b"",
            count=len(chunk),
            start=chunk.offset,
            wide=wide,
            text=text,
        )


def _tabular(batch: object) -> pa.RecordBatch | pa.Table:
    """Return what has rows and columns as pyarrow has it: data frames too."""
    import pyarrow as pa

    if isinstance(batch, pa.RecordBatch | pa.Table):
        return batch
    frame: Any = batch
    if type(batch).__module__.partition(".")[0] == "pandas" and hasattr(batch, "columns"):
        is_named = any(name is not None for name in frame.index.names)
        return pa.Table.from_pandas(frame, preserve_index=is_named)
    if hasattr(batch, "__arrow_c_stream__"):
        with suppress(pa.ArrowInvalid, TypeError, ValueError):
            return pa.table(frame)
    expected = "a batch, table or array of pyarrow, or a data frame"
    raise arguments.refusal("batch", expected, batch)


def _shortest(column: Any) -> int | None:  # noqa: ANN401 - pyarrow-stubs want each type by name
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its stubs leave the results open
    return cast("int | None", compute.min(compute.binary_length(column)).as_py())


@contextmanager
def after(accepted: int) -> Generator[None]:
    """Have an exception of a ring count what was put in before the call, too."""
    try:
        yield
    except BaseException as error:
        if accepted:
            vars(error)["accepted"] = accepted + vars(error).get("accepted", 0)
        raise


def count_of(write: Callable[[], object]) -> int:
    """Return how many messages a call appends."""
    return len(write.args[0]) if isinstance(write, partial) else 0
