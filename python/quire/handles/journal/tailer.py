"""Tailers: waiting for messages, and Arrow batches, on top of the native one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, cast, overload

from quire import _native
from quire._common import arguments
from quire._native import Excerpt
from quire._waiting.async_reading import AsyncMessages
from quire.errors import UnsupportedError, WaitTimeoutError
from quire.handles.base import BATCH_BYTES, BATCH_COUNT, Tailer
from quire.handles.journal.subtopics import ROUTE
from quire.pausers import Pauser

if TYPE_CHECKING:
    from datetime import date
    from os import PathLike

    import pyarrow as pa

    from quire.arrow.schema import Schema, SchemaLike
    from quire.calls.method_reader import MethodReader
    from quire.calls.method_writer import Filter
    from quire.handles.journal.appender import JournalAppender
    from quire.handles.journal.queue import JournalQueue

_T = TypeVar("_T")

Misfits: TypeAlias = Literal["raise", "column"]


class JournalTailer(_native.Tailer, Tailer[Excerpt]):
    """
    Reads messages of a queue, from :meth:`quire.JournalQueue.tailer`.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> with queue.tailer("risk") as tailer:
        ...     for message in tailer:
        ...         print(message.data)
        ...     tailer.name, tailer.closed, tailer.path == queue.path
        b'one'
        b'two'
        ('risk', False, True)
        >>> tailer.close()
        >>> tailer.closed
        True

    """

    _topics: tuple[Any, ...] = ()

    _queue: JournalQueue

    def __new__(
        cls,
        queue: JournalQueue,
        name: str | None = None,
        *,
        on_missing: str = "warn",
        shared: bool = False,
    ) -> Self:
        """Keep the queue."""
        given = cast("object", queue)
        if not isinstance(given, _native.Queue):
            raise arguments.refusal("queue", "a queue of quire.open", queue)
        if name is not None:
            arguments.text("name", name)
        arguments.text("on_missing", on_missing)
        arguments.flag("shared", shared)
        tailer = super().__new__(cls, queue, name, on_missing=on_missing, shared=shared)
        tailer._queue = queue
        return tailer

    def move_to_time(self, time: date | float | str, *, time_field: str | None = None) -> bool:
        """
        Go to the first message that is not earlier than a time; True if there is one.

        If there is none the tailer is at the end. Sub-topics are not looked at: what is read next
        may be a later message, or none.

        With *time_field* a message's time is that of the field, and the place is found by binary
        search: where times are slightly out of order, it is one near it. Without the field, it is
        the time of the append, to the millisecond, where writers open the queue with
        ``time_index=True``; what other writers appended counts as later. In cycles without that
        index, only their start can be found.

        Args:
            time: A datetime, a date or ISO 8601 text, in UTC where it has no zone; or seconds
                since 1970.
            time_field: The field that holds a message's time, at its top level or below:
                ``trade.time`` is the field ``time`` of ``trade``. Numbers are seconds, milli-,
                micro- or nanoseconds since 1970, whichever lies between 1973 and 5138.

        Raises:
            TypeError: *time* is not a time, text or number.
            ValueError: *time* lies within a cycle that has messages and no index of times, and
                *time_field* is not given; or no message has that field.

        Examples:
            >>> for second in (0, 60, 120):
            ...     _ = appender.write_map({"at": 1_705_314_600 + second, "value": second})
            >>> tailer.move_to_time("2024-01-15T10:31:00", time_field="at")
            True
            >>> tailer.read_map()["value"]
            60

        """
        from quire.ranges.event_time import epoch_ns_of
        from quire.ranges.seek import first_at, move

        time_ns = epoch_ns_of(time)
        arguments.optional(arguments.text)("time_field", time_field)
        return move(self, self._queue, lambda: first_at(self._queue, time_ns, time_field))

    def move_to(self, key: Any, *, by: str | Callable[[Excerpt], Any]) -> bool:  # noqa: ANN401
        """
        Go to the first message whose key is not less than *key*; True if there is one.

        The messages must be in the order of their keys: the place is found by binary search. If no
        key is as great the tailer is at the end. A message without a key is skipped. Sub-topics
        are not looked at: what is read next may be a later message, or none.

        Args:
            key: What to look for; it is compared with ``<``.
            by: The field that holds the key, at the top level of a message or below
                (``trade.id`` is the field ``id`` of ``trade``); or a function that returns the key
                of an excerpt, or None where it has none.

        Raises:
            TypeError: A message's key cannot be compared with *key*.
            ValueError: No message has a key, or none of 10,000 consecutive ones.

        Examples:
            >>> for number in (10, 20, 20, 30):
            ...     _ = appender.write_map({"order": number})
            >>> tailer.move_to(15, by="order")
            True
            >>> tailer.read_map()
            {'order': 20}
            >>> tailer.move_to(30, by=lambda excerpt: excerpt.to_dict()["order"])
            True
            >>> tailer.move_to(31, by="order")
            False

        """
        from quire.ranges.seek import first_by_key, move

        if not isinstance(by, str) and not callable(cast("object", by)):
            raise arguments.refusal("by", "the name of a field, or a function of an excerpt", by)
        return move(self, self._queue, lambda: first_by_key(self._queue, key, by))

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
        Yield messages as objects and wait for more: see :meth:`follow`, :meth:`read_message`.

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
        Yield messages as objects in an event loop: see :meth:`follow_messages`, :meth:`afollow`.

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
        Return the next message as an object and wait for it: see :meth:`aread`.

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
        Return the named values of the next message and wait for it: see :meth:`aread`.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_map({"symbol": "EURUSD"})
            >>> asyncio.run(tailer.aread_map())
            {'symbol': 'EURUSD'}

        """
        return await self._aread(self.read_map, timeout_s)

    def after_last_written(self, output: _native.Queue | str | PathLike[str], /) -> None:
        """
        Go to the first message of this queue that is not yet reflected in *output*.

        What follows led to nothing in *output* yet. Goes to the start when no message of *output*
        came from this queue.

        Args:
            output: A queue that a reader of this one writes, with history; or its path.

        Raises:
            ValueError: This queue has no source id, or *output* is this queue.
            IndexOutOfRangeError: The message was deleted.

        Examples:
            >>> with (
            ...     quire.open("input", source_id=1) as source,
            ...     quire.open("output") as output,
            ...     source.tailer() as tailer,
            ... ):
            ...     tailer.after_last_written(output)

        """
        from quire.opening.by_path import opened

        with opened(output, "output") as queue:
            if not isinstance(queue, _native.Queue):
                raise UnsupportedError(
                    f"messages of this format have no history: path={queue.path}"
                )
            super().after_last_written(queue)

    def topics(self, *keys: Any, event: str = ROUTE) -> Self:  # noqa: ANN401 - any value
        """
        Deliver only messages of the given sub-topics from now on, without their keys.

        The others are stepped over where they lie. A message with history before its key is
        delivered whole. Without a key, everything is delivered again.

        Args:
            keys: As given to :meth:`JournalAppender.topic`, one by one or in one list, tuple or
                set. Numbers are equal whatever their width.
            event: The name before the key.

        Returns:
            This tailer.

        Examples:
            >>> _ = appender.topic("LDN").write_text("from London")
            >>> _ = appender.topic("NYC").write_text("from New York")
            >>> tailer.topics("NYC").read_text()
            'from New York'

        """
        if len(keys) == 1 and isinstance(keys[0], list | tuple | set | frozenset):
            keys = tuple(cast("Iterable[Any]", keys[0]))
        routes = [_native.entry_bytes(event, key) for key in keys]
        self._set_topics(routes or None)
        self._topics = keys
        return self

    @property
    def topic(self) -> Any:  # noqa: ANN401 - a key as it was given
        """
        The key of the message that was delivered last; None unless :meth:`topics` asks.

        Examples:
            >>> _ = appender.topic("LDN").write_text("hello")
            >>> _ = tailer.topics("LDN", "NYC").read_text()
            >>> tailer.topic
            'LDN'

        """
        number = self._topic_number
        return None if number is None else self._topics[number]

    def method_reader(  # noqa: PLR0913 - by keywords
        self,
        *handlers: object,
        interface: Callable[..., Any] | None = None,
        on_error: Literal["raise", "skip", "dead_letter"] = "raise",
        dead_letter: JournalAppender | JournalQueue | str | PathLike[str] | None = None,
        default: Callable[[str | int, Any], object] | None = None,
        filter: Filter | None = None,  # noqa: A002 - its name as a keyword
        metadata_handler: object = None,
        scanning: bool = False,
        replay: Literal["all", "new", "missed"] | int | None = None,
        output: _native.Queue | str | PathLike[str] | None = None,
    ) -> MethodReader:
        """
        Return a reader that calls methods of *handlers* with the messages.

        An event, the name before a value, is the call of the method of that name, and the
        value its arguments. Their types are what the annotations of the handler's method say, or of
        the class it derives from. Where several handlers have a method the first is called.

        While a handler is at work, :meth:`MessageHistory.current` is about the message, and so do
        the messages that its thread writes with history.

        Args:
            handlers: Objects with public methods; method writers too.
            interface: Call only its methods, and take the types from it where a handler says none.
            on_error: What becomes of a message that does not decode or whose handler raises:
                ``raise`` goes back to it and raises, so that it is read again next time; ``skip``
                logs and goes on; ``dead_letter`` writes it to another queue and goes on. Other
                events of the same document may have been handled before.
            dead_letter: Where to, a queue, its path, or an appender: maps of ``index``, ``queue``,
                ``error`` and ``payload``.
            default: Called with name (or number) and value of each event nobody handles.
            filter: Called with a method's name and a call's first argument (or None); where it
                returns something false the call is not made, nor are its other arguments read.
            metadata_handler: An object whose methods are called with metadata documents; without
                one they are skipped.
            scanning: Have one read go on until a handler was called.
            replay: Where the tailer goes before: ``all``, to the first message; ``new``, after the
                last one; an index, to that message; ``missed``, to the first one that has led to
                nothing in *output*. None: it stays where it is.
            output: With ``replay="missed"``, a queue that the handlers write to with history, or
                its path: see :meth:`after_last_written`.

        Raises:
            TypeError: A handler has no method, or one that cannot be called with a message.
            ValueError: *on_error* and *dead_letter* do not go together, or *replay* and *output*.
            IndexOutOfRangeError: *replay* can be the index of no message, or with ``missed`` the
                message was deleted.

        Examples:
            >>> class Printer:
            ...     def price(self, symbol: str, price: float) -> None:
            ...         print(symbol, price)
            >>> appender.method_writer(Printer).price("EURUSD", 1.1)
            >>> reader = tailer.method_reader(Printer())
            >>> reader.read_one()
            EURUSD 1.1
            True

        """
        from quire.calls.method_reader import method_reader, mover
        from quire.types import names_around

        move = mover(self, replay, output)
        reader = method_reader(
            self,
            handlers,
            interface=interface,
            on_error=on_error,
            dead_letter=dead_letter,
            default=default,
            filter=filter,
            metadata_handler=metadata_handler,
            scanning=scanning,
            names=names_around(),
        )
        move()
        return reader

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

        No Python object is made per message. The batch is empty when nothing is there yet. For a
        named tailer it is finished when the next one is asked for.

        Without a schema the other column is ``payload`` (binary). With one, messages are decoded;
        of method calls the batch holds a column ``method`` and a struct for each method, null in
        the rows of others, or the arguments of one *method* alone.

        Args:
            count: Rows from this many messages, at most.
            schema: What the messages look like: a schema, names and types, a class of
                :func:`quire.message`, or a schema of pyarrow.
            columns: Decode these columns of the schema alone: see :meth:`quire.Schema.select`.
            method: The method whose calls are wanted; others are skipped.
            errors: What becomes of a message that does not fit: ``raise``, once it would be the
                batch's first; or a row that is null and says why in a ``column`` named ``_error``.
            max_bytes: End the batch before its messages have more bytes than this in all.

        Raises:
            WireError: A message does not fit the schema; the position stays. :meth:`read` skips the
                message.

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

        What is no call of a known method is a misfit; with ``errors="column"`` it is in the batch
        ``_error``. The arguments are those of :meth:`read_batch`.

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
