"""Appenders: what the native one lacks because it needs pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from quire import _native
from quire.topics import ROUTE, Topic

if TYPE_CHECKING:
    import pyarrow as pa

    from quire._native import WriteDocument
    from quire.encoding import Form
    from quire.methods import Filter
    from quire.schema import Schema

_T = TypeVar("_T")


class Appender(_native.Appender):
    """Writes messages at the end of a queue, from :meth:`quire.Queue.appender`."""

    def topic(self, key: Any, *, event: str = ROUTE) -> Topic:  # noqa: ANN401 - any value
        """
        Return a writer of messages with *key* in front of them, for :meth:`quire.Tailer.topics`.

        Args:
            key: Any value that has an encoding.
            event: The name in front of the key: that of the method of a router in Java.

        """
        return Topic(self, key, event)

    def write_yaml(self, text: str) -> int:
        """Append the message that *text* stands for (:func:`quire.parse_yaml`)."""
        return self.write_bytes(_native.parse_yaml(text))

    def write_json(self, text: str) -> int:
        """Append the message that *text* stands for (:func:`quire.parse_json`)."""
        return self.write_bytes(_native.parse_json(text))

    def method_writer(  # noqa: PLR0913 - by keywords
        self,
        interface: Callable[..., _T],
        *more: Callable[..., Any],
        record_history: bool | None = None,
        history_form: Literal["packed", "fields"] = "packed",
        metadata: bool = False,
        document: WriteDocument | None = None,
        filter: Filter | None = None,  # noqa: A002 - its name as a keyword
    ) -> _T:
        """
        Return an object of the interface whose calls are messages.

        Each call is one document: the method's name, and its arguments in the form their
        annotations give them. A method that returns another interface goes on: with
        ``router.to("x").deliver(m)`` both calls are in one document, which the last one writes;
        nothing is written of a chain without its last call. A call that cannot be written raises
        and writes nothing.

        Args:
            interface: A Protocol, an ABC, or another class; generic ones with or without
                arguments. Its public methods return nothing, or an interface that goes on.
            more: Further interfaces whose methods the object has.
            record_history: Put the history in front of each call, see
                :class:`quire.MessageHistory`; None: if the queue has a source id.
            history_form: ``packed`` as Java's default, or ``fields`` for old releases of Java: 5.20
                passes over a call behind the other.
            metadata: Write metadata documents.
            document: An open document of :meth:`writing_document` that all calls go into, instead
                of one each.
            filter: Called with a method's name and a call's first argument (or None); where it
                returns something false the call is not written.

        Raises:
            TypeError: A method cannot stand in messages: an annotation has no encoding, two
                methods have one id, or one returns something else.

        """
        from quire import methods
        from quire.types import names_around

        return methods.method_writer(
            self,
            interface,
            more,
            record_history=record_history,
            history_form=history_form,
            metadata=metadata,
            document=document,
            filter=filter,
            names=names_around(),
        )

    def write_batch(  # noqa: PLR0913 - by keywords
        self,
        batch: pa.RecordBatch | pa.Table | pa.Array[Any] | pa.ChunkedArray[Any],
        *,
        schema: Schema | None = None,
        form: Form | None = None,
        type: str | None = None,  # noqa: A002
        method: str | None = None,
        omit_nulls: bool = False,
    ) -> int | None:
        """
        Append a message for each row of a batch, or for each element of a column.

        No Python object is made per message, and many are written under one lock.

        Args:
            batch: A batch or table; what its rows become, the other arguments tell, as in
                :class:`quire.encoding.Encoder`. Or a binary or string array, 32 or 64 bits wide,
                chunked or not: binary elements are messages as they are, strings text values.
            schema: What the messages are to look like.
            form: ``raw``, ``text``, ``map``, ``fields``, ``typed`` or ``method``.
            type: The name of the type in front of the fields.
            method: The method that is called.
            omit_nulls: Leave out the names of what is null.

        Returns:
            The last index; None when there is nothing.

        Raises:
            TypeError: The column holds something else.
            ValueError: The columns do not make such messages, or an array holds nulls or empty
                elements; nothing was written.
            WireError: A value has no encoding; nothing was written.

        """
        import pyarrow as pa

        if isinstance(batch, pa.Array | pa.ChunkedArray):
            return self._write_array(batch)
        from quire.encoding import Encoder

        encoder = Encoder(
            batch.schema,
            form=form,
            type=type,
            method=method,
            schema=schema,
            omit_nulls=omit_nulls,
            fieldless=not self.has_field_names,
        )
        batches = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
        last: int | None = None
        for messages in [encoder.encode(it) for it in batches if it.num_rows]:
            last = self._write_chunk(messages, wide=True, text=False)
        return last

    def _write_array(self, column: pa.Array[Any] | pa.ChunkedArray[Any]) -> int | None:
        import pyarrow as pa

        if column.null_count:
            raise ValueError(f"a message cannot be null: null_count={column.null_count}")
        wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if not (wide or text or pa.types.is_binary(column.type)):
            raise TypeError(f"a binary or string column is needed: type={column.type}")
        if not text and _shortest(column) == 0:
            raise ValueError("a message holds at least one byte: the column has an empty element")
        last: int | None = None
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            if len(chunk):
                last = self._write_chunk(chunk, wide=wide, text=text)
        return last

    def _write_chunk(self, chunk: pa.Array[Any], *, wide: bool, text: bool) -> int | None:
        _, offsets, data = chunk.buffers()
        return self.write_column(
            offsets or b"",
            data or b"",
            count=len(chunk),
            start=chunk.offset,
            wide=wide,
            text=text,
        )


def _shortest(column: Any) -> int | None:  # noqa: ANN401 - pyarrow-stubs want each type by name
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its stubs leave the results open
    return cast("int | None", compute.min(compute.binary_length(column)).as_py())
