"""Tailers of BinaryWire messages: objects, maps, and columns of fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from quire._common import arguments
from quire._waiting.async_reading import AsyncMessages
from quire.errors import WaitTimeoutError
from quire.handles.base import BATCH_BYTES, BATCH_COUNT
from quire.pausers import Pauser

if TYPE_CHECKING:
    import pyarrow as pa

    from quire._native import Column, Plan, Table
    from quire._waiting.async_reading import RemoteReading, Tasks
    from quire.arrow.schema import Schema, SchemaLike

_T = TypeVar("_T")

Misfits: TypeAlias = Literal["raise", "column"]


class WireReading:
    """Messages as objects and as columns, on top of a tailer that has their bytes."""

    if TYPE_CHECKING:

        @property
        def _tasks(self) -> Tasks: ...
        @property
        def _remote(self) -> RemoteReading | None: ...
        def _prepare(self) -> bool | None: ...
        def read_map(self) -> dict[str, Any] | None: ...
        def read_message(self, cls: Any = None, /) -> Any: ...  # noqa: ANN401 - of any class
        def wait(self, timeout_s: float | None = None, *, pauser: Pauser | None = None) -> None: ...
        async def _aread(
            self, read: Callable[[], _T | None], timeout_s: float | None
        ) -> _T | None: ...
        def _payload_batch(self, count: int, max_bytes: int, end: int = ...) -> pa.RecordBatch: ...
        def _read_decoded(  # noqa: PLR0913 - those of the kernel
            self,
            plan: Plan,
            count: int,
            *,
            max_bytes: int,
            keep_misfits: bool = ...,
            layout: str = ...,
            end: int = ...,
            payload: bool = ...,
            topic: str | None = ...,
        ) -> tuple[int, list[Table], Column | None, Column | None]: ...

    @overload
    def follow_messages(
        self, cls: type[_T], timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> Iterator[_T]: ...
    @overload
    def follow_messages(
        self, cls: None = None, timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> Iterator[Any]: ...
    def follow_messages(
        self,
        cls: type[Any] | None = None,
        timeout_s: float | None = None,
        *,
        pauser: Pauser | None = None,
    ) -> Iterator[Any]:
        """
        Yield messages as objects and wait for more.

        See :meth:`JournalTailer.follow` and :meth:`JournalTailer.read_message`.

        Args:
            cls: The class of :func:`quire.message` to make of them. None: the registered one that
                each message names.
            timeout_s: End when nothing came for this many seconds; None: never end.
            pauser: How to wait, from :mod:`quire.pausers`; its own timeout ends it too.

        Raises:
            WireError: A message is not of this class; the position stays.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Mid:
            ...     price: float
            >>> _ = appender.write_message(Mid(1.1))
            >>> list(tailer.follow_messages(Mid, timeout_s=0.01))
            [Mid(price=1.1)]

        """
        while True:
            while (message := self.read_message(cls)) is not None:
                yield message
            try:
                self.wait(timeout_s, pauser=pauser)
            except WaitTimeoutError:
                return

    @overload
    def afollow_messages(
        self, cls: type[_T], timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> AsyncMessages[_T]: ...
    @overload
    def afollow_messages(
        self, cls: None = None, timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> AsyncMessages[Any]: ...
    def afollow_messages(
        self,
        cls: type[Any] | None = None,
        timeout_s: float | None = None,
        *,
        pauser: Pauser | None = None,
    ) -> AsyncMessages[Any]:
        """
        Yield messages as objects in an event loop.

        See :meth:`follow_messages` and :meth:`JournalTailer.afollow`.

        Args:
            cls: The class of :func:`quire.message` to make of them. None: the registered one that
                each message names.
            timeout_s: End when nothing came for this many seconds; None: never end.
            pauser: One of :mod:`quire.pausers`.

        Raises:
            WireError: A message is not of this class; the position stays.

        Examples:
            >>> import asyncio
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Last:
            ...     price: float
            >>> async def collect(tailer):
            ...     return [last async for last in tailer.afollow_messages(Last, timeout_s=0.01)]
            >>> _ = appender.write_message(Last(1.1))
            >>> asyncio.run(collect(tailer))
            [Last(price=1.1)]

        """
        return AsyncMessages(self, lambda: self.read_message(cls), timeout_s, pauser)

    @overload
    async def aread_message(self, cls: type[_T], timeout_s: float | None = None) -> _T | None: ...
    @overload
    async def aread_message(self, cls: None = None, timeout_s: float | None = None) -> Any: ...  # noqa: ANN401 - of any class
    async def aread_message(
        self, cls: type[Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """
        Return the next message as an object and wait for it: see :meth:`JournalTailer.aread`.

        Args:
            cls: The class of :func:`quire.message` to make of it. None: the registered one that
                the message names.
            timeout_s: Return None when nothing came for this many seconds; None: wait for ever.

        Raises:
            WireError: The message is not of this class; the position stays.

        Examples:
            >>> import asyncio
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Mid:
            ...     price: float
            >>> _ = appender.write_message(Mid(1.1))
            >>> asyncio.run(tailer.aread_message(Mid))
            Mid(price=1.1)

        """
        return await self._aread(lambda: self.read_message(cls), timeout_s)

    async def aread_map(self, timeout_s: float | None = None) -> dict[str, Any] | None:
        """
        Return the named values of the next message and wait for it.

        See :meth:`JournalTailer.aread`.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_map({"symbol": "EURUSD"})
            >>> asyncio.run(tailer.aread_map())
            {'symbol': 'EURUSD'}

        """
        return await self._aread(self.read_map, timeout_s)

    def read_batch(  # noqa: PLR0913 - what is read, and how
        self,
        count: int = BATCH_COUNT,
        *,
        schema: SchemaLike | None = None,
        columns: Iterable[str] | None = None,
        method: str | None = None,
        errors: Misfits = "raise",
        max_bytes: int = BATCH_BYTES,
    ) -> pa.RecordBatch:
        """
        Return at most *count* messages as columns, the first of them ``index`` (uint64).

        No Python object is made per message. The batch is empty if there are no messages yet. For a
        named tailer, a batch counts as processed when you ask for the next one.

        Without a schema the other column is ``payload`` (binary). With one, messages are decoded;
        for method calls the batch holds a column ``method`` and a struct for each method, null in
        the rows of others, or only the arguments of one *method*.

        Args:
            count: Rows from this many messages, at most.
            schema: What the messages look like: a schema, names and types, a class of
                :func:`quire.message`, or a schema of pyarrow.
            columns: Decode only these columns of the schema: see :meth:`quire.Schema.select`.
            method: Return only calls of this method; others are skipped.
            errors: What becomes of a message that does not fit: ``raise``, once it would be the
                batch's first; or a row that is null and says why in a ``column`` named ``_error``.
            max_bytes: End the batch before its messages have more bytes than this in all.

        Raises:
            WireError: A message does not fit the schema; the position stays.
                :meth:`JournalTailer.read` skips the message.

        Examples:
            >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
            >>> batch = tailer.read_batch(schema={"symbol": "utf8", "price": "float64"})
            >>> batch.select(["symbol", "price"]).to_pylist()
            [{'symbol': 'EURUSD', 'price': 1.1}]

        """
        if schema is None:
            arguments.one_of("raise", "column")("errors", errors)
            if columns is not None or method is not None:
                raise ValueError("columns= and method= require schema=, as Schema.infer(queue)")
            return self._payload_batch(count, max_bytes)
        layout = "union" if method is None else method
        return self._decoded(count, _schema(schema), columns, layout, errors, max_bytes)[""]

    def read_batches(
        self,
        count: int = BATCH_COUNT,
        *,
        schema: SchemaLike,
        columns: Iterable[str] | None = None,
        errors: Misfits = "raise",
        max_bytes: int = BATCH_BYTES,
    ) -> dict[str, pa.RecordBatch]:
        """
        Return at most *count* messages as a batch for each method, by its name.

        A message that is not a call of a known method does not fit; with ``errors="column"`` it is
        in the batch ``_error``. The arguments are those of :meth:`read_batch`.

        Examples:
            >>> class Market:
            ...     def price(self, symbol: str, price: float) -> None: ...
            ...     def halt(self, symbol: str) -> None: ...
            >>> market = appender.method_writer(Market)
            >>> market.price("EURUSD", 1.1)
            >>> market.halt("EURUSD")
            >>> batches = tailer.read_batches(schema=quire.Schema.from_methods(Market))
            >>> {name: batch.num_rows for name, batch in batches.items()}
            {'price': 1, 'halt': 1}

        """
        schema = _schema(schema)
        if not schema.methods:
            raise ValueError("the schema has no methods: make one with Schema.from_methods")
        return self._decoded(count, schema, columns, "tables", errors, max_bytes)

    def _decoded(  # noqa: PLR0913, PLR0917 - those of the methods above
        self,
        count: int,
        schema: Schema,
        columns: Iterable[str] | None,
        layout: str,
        errors: Misfits,
        max_bytes: int,
    ) -> dict[str, pa.RecordBatch]:
        arguments.one_of("raise", "column")("errors", errors)
        if columns is not None:
            schema = schema.select(columns)
        _, tables, *_ = self._read_decoded(
            schema.plan,
            count,
            max_bytes=max_bytes,
            keep_misfits=errors == "column",
            layout=layout,
        )
        return schema.batches(tables, layout)


def _schema(given: SchemaLike) -> Schema:
    from quire.arrow.schema import Schema

    return Schema.given(given)
