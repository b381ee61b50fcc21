"""Appenders: the methods that the native class lacks because they need pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from itertools import chain, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from quire import _native
from quire._common import arguments
from quire.errors import LockTimeoutError, RingFullError
from quire.handles.base import Appender
from quire.handles.journal.acknowledging import Acknowledging
from quire.handles.journal.subtopics import ROUTE, Topic
from quire.handles.wire_writing import WireWriting, after, count_of
from quire.pausers import Pauser

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from quire._common.slots import Slot, Slots, Turns
    from quire._native import Value, WriteDocument
    from quire.arrow.encoder import Form
    from quire.arrow.schema import SchemaLike
    from quire.calls.method_writer import Filter
    from quire.handles.journal.acknowledging import Wait
    from quire.handles.wire_writing import BatchLike

_T = TypeVar("_T")

_CHUNK = 10_000
_LIMIT = arguments.whole(1, 2**31 - 1)
_LOOK_S = 0.02


class JournalAppender(_native.Appender, WireWriting, Appender, Acknowledging):
    """
    Writes messages at the end of a queue, from :meth:`quire.JournalQueue.appender`.

    Examples:
        >>> with quire.open("orders") as queue, queue.appender() as appender:
        ...     index = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        ...     appender.path == queue.path, appender.closed
        (True, False)
        >>> appender.close()
        >>> appender.closed
        True

    """

    _queue: _native.Queue
    _slots: Slots | None = None
    _turns: Turns | None = None

    def __new__(
        cls, queue: _native.Queue, *, limit: int | None = None, wait: Wait | None = None
    ) -> Self:
        """Make an appender of a queue, with at most *limit* asynchronous appends under way."""
        appender = super().__new__(cls, queue, wait=wait)
        appender._queue, appender._wait = queue, wait
        if limit is not None:
            from quire._common.slots import Slots

            appender._slots = Slots(_LIMIT("limit", limit))
        return appender

    def _without_wait(self) -> JournalAppender:
        """Return one of the same queue that waits for no replica."""
        return self if self._wait is None else JournalAppender(self._queue)

    def _replica_states(self) -> _native.ReplicaStates:
        states = _native.ReplicaStates.open_existing(self.path)
        if states is None:  # removed just now
            raise FileNotFoundError(self.path)
        return states

    def topic(self, key: Any, *, event: str = ROUTE) -> Topic:  # noqa: ANN401 - any value
        """
        Return a writer of messages that begin with the routing key *key*.

        Args:
            key: Any value that has an encoding.
            event: The name before the key: that of the method of a router in Java.

        Examples:
            >>> london = appender.topic("LDN")
            >>> index = london.write_text("hello")
            >>> tailer.topics("LDN").read_text()
            'hello'

        """
        return Topic(self, key, event)

    def write_yaml(self, text: str, *, wait: Wait | None = None) -> int:
        """
        Append the message that *text* stands for (:func:`quire.types.parse_yaml`).

        Examples:
            >>> index = appender.write_yaml("symbol: EURUSD")
            >>> tailer.read_map()
            {'symbol': 'EURUSD'}

        """
        return self.write_bytes(_native.parse_yaml(text), wait=wait)

    def write_json(self, text: str, *, wait: Wait | None = None) -> int:
        """
        Append the message that *text* stands for (:func:`quire.types.parse_json`).

        Examples:
            >>> index = appender.write_json('{"symbol": "EURUSD", "price": 1.1}')
            >>> tailer.read_map()
            {'symbol': 'EURUSD', 'price': 1.1}

        """
        return self.write_bytes(_native.parse_json(text), wait=wait)

    async def awrite_bytes(self, payload: Buffer, /) -> int:
        """
        Append bytes without blocking the event loop; return the index.

        This and the other ``awrite_*`` methods first try to append at once, in the loop's own
        thread. If another writer holds the lock, or another task's open document does, or the ring
        of asynchronous appends is full, they try again until the queue's ``timeout_s`` is over.
        With ``durability="each"`` a thread does all of it, as each append waits for the disk.

        The order of the calls of an event loop is the order of their messages, except with
        ``durability="each"``, where threads append together. At most the appender's ``limit``
        appends are under way in an event loop; further ones wait in the order of their calls, for
        any length of time.

        A task that is cancelled while it waits has appended nothing, except that a thread completes
        an append that it has begun.

        Raises:
            LockTimeoutError: Another process held the write lock for the queue's ``timeout_s``.
            RingFullError: The ring stayed full for the queue's ``timeout_s``.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.awrite_bytes(b"any bytes"))
            >>> async def produce():
            ...     with queue.appender(limit=100) as appender:
            ...         await asyncio.gather(*(appender.awrite_text(f"{n}") for n in range(1000)))
            >>> asyncio.run(produce())

        """
        return await self._awrite(partial(self.write_bytes, payload))

    async def awrite_text(self, text: str, /) -> int:
        """
        Append text without blocking the event loop: see :meth:`awrite_bytes`.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.awrite_text("hello"))

        """
        return await self._awrite(partial(self.write_text, text))

    async def awrite_map(self, values: Mapping[str, Value], /) -> int:
        """
        Append named values without blocking the event loop: see :meth:`awrite_bytes`.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.awrite_map({"symbol": "EURUSD"}))

        """
        return await self._awrite(partial(self.write_map, values))

    async def awrite_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> int:
        """
        Append an object without blocking the event loop: see :meth:`awrite_bytes`.

        Examples:
            >>> import asyncio
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Ask:
            ...     price: float
            >>> index = asyncio.run(appender.awrite_message(Ask(1.1)))

        """
        return await self._awrite(partial(self.write_message, message, cls, typed=typed))

    async def awrite_yaml(self, text: str) -> int:
        """
        Append YAML as values without blocking the event loop: see :meth:`awrite_bytes`.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.awrite_yaml("symbol: EURUSD"))

        """
        return await self.awrite_bytes(_native.parse_yaml(text))

    async def awrite_json(self, text: str) -> int:
        """
        Append JSON as values without blocking the event loop: see :meth:`awrite_bytes`.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.awrite_json('{"symbol": "EURUSD"}'))

        """
        return await self.awrite_bytes(_native.parse_json(text))

    async def awrite_many(self, payloads: Iterable[Buffer], /) -> int | None:
        """
        Append many messages without blocking the event loop: see :meth:`awrite_bytes`.

        The loop's other tasks run after every 10,000 messages. Messages appended before the task is
        cancelled, or before the lock is held for too long, stay. The whole call counts as one
        append for the appender's ``limit``; a thread puts the messages into a ring that may be
        full.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.awrite_many([b"one", b"two"]))

        """
        items = iter(payloads)
        chunks = iter(lambda: [*islice(items, _CHUNK)], [])
        writes = (partial(self.write_many, chunk) for chunk in chunks)
        return await self._awrite_each(lambda: writes)

    async def awrite_batch(  # noqa: PLR0913 - by keywords
        self,
        batch: BatchLike,
        *,
        schema: SchemaLike | None = None,
        form: Form | None = None,
        type: str | None = None,  # noqa: A002
        method: str | None = None,
        omit_nulls: bool = False,
    ) -> int | None:
        """
        Append columns without blocking the event loop: see :meth:`awrite_bytes`.

        The loop's other tasks run after each chunk of a table or chunked array. Messages appended
        before the task is cancelled, or before the lock is held for too long, stay.

        Examples:
            >>> import asyncio
            >>> import pyarrow as pa
            >>> batch = pa.RecordBatch.from_pydict({"symbol": ["EURUSD"], "price": [1.1]})
            >>> last = asyncio.run(appender.awrite_batch(batch))

        """
        return await self._awrite_each(
            lambda: self._writes(batch, schema, form, type, method, omit_nulls=omit_nulls)
        )

    async def _awrite_each(
        self, writes: Callable[[], Iterable[Callable[[], int | None]]]
    ) -> int | None:
        import asyncio

        async with self._slot() as slot:
            left = iter(writes())
            first = [*islice(left, 1)]  # others are under way at the same time, up to their turn
            last: int | None = None
            accepted = 0
            began = monotonic()
            async with self._turn():
                for write in chain(first, left):
                    if last is not None:
                        await asyncio.sleep(0)
                        began = monotonic()
                    # A ring that is full in the middle of *write* has the first part already, so
                    # *write* cannot be tried again.
                    with after(accepted):
                        if self._waits_for_disk or self._waits_for_room:
                            last = await _in_thread(write, slot)
                        else:
                            last = await self._append(write, began)
                    accepted += count_of(write)
        return last

    def _slot(self) -> AbstractAsyncContextManager[Slot | None]:
        return nullcontext() if self._slots is None else self._slots.slot()

    def _turn(self) -> AbstractAsyncContextManager[None]:
        """
        Return what an append holds until it is done: the next one waits, in the order of calls.

        Those that wait for the disk do so together, with one sync for all.
        """
        if self._waits_for_disk:
            return nullcontext()
        if self._turns is None:
            from quire._common.slots import Turns

            self._turns = Turns()
        return self._turns.turn()

    async def _awrite(self, write: Callable[[], _T]) -> _T:
        """Call *write*, which appends once."""
        began = monotonic()
        if self._slots is None and not self._waits_for_disk:
            async with self._turn():
                return await self._append(write, began)
        async with self._slot() as slot, self._turn():
            if self._waits_for_disk:
                return await _in_thread(write, slot)
            return await self._append(write, monotonic())

    async def _append(self, write: Callable[[], _T], began: float) -> _T:
        """Call *write*, whose one append is tried until the lock is free or the ring has room."""
        try:
            return self._without_waiting(write)
        except LockTimeoutError:
            return await self._append_when_free(write, began)
        except RingFullError:
            if not self._waits_for_room:
                raise
            return await self._append_when_there_is_room(write, began)

    async def _append_when_free(self, write: Callable[[], _T], began: float) -> _T:
        pauser = Pauser(yield_count=10, min_s=0.000_2, max_s=0.002)
        looked = monotonic()
        while (now := monotonic()) - began < self._lock_timeout_s:
            await pauser.apause()
            # While it is held, it is only looked now and then whether its holder died.
            if self._is_locked and now - looked < _LOOK_S:
                continue
            looked = now
            with suppress(LockTimeoutError):
                return self._without_waiting(write)
        return self._without_waiting(write, waited_ms=round((now - began) * 1000))

    async def _append_when_there_is_room(self, write: Callable[[], _T], began: float) -> _T:
        pauser = Pauser(yield_count=10, min_s=0.000_2, max_s=0.002)
        while True:
            await pauser.apause()
            waited_s = monotonic() - began
            try:
                return self._without_waiting(write, waited_ms=round(waited_s * 1000))
            except RingFullError:
                if waited_s >= self._lock_timeout_s:
                    raise

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

        Each call is one document: the method's name, and its arguments encoded by their
        annotations. A method that returns another interface starts a chain: with
        ``router.to("x").deliver(m)`` both calls are in one document, which the last call writes; a
        chain without its last call writes nothing. A call that cannot be written raises and writes
        nothing.

        Args:
            interface: A Protocol, an ABC, or another class; generic ones with or without
                arguments. Its public methods return nothing, or an interface that goes on.
            more: Further interfaces whose methods the object has.
            record_history: Put the history before each call, see
                :class:`quire.MessageHistory`; None: if the queue has a source id.
            history_form: ``packed`` as Java's default, or ``fields`` for old releases of Java: 5.20
                skips a call that follows a ``packed`` history.
            metadata: Write metadata documents.
            document: An open document of :meth:`writing_document` that all calls go into, instead
                of one each.
            filter: Called with a method's name and a call's first argument (or None); if it returns
                a false value the call is not written.

        Raises:
            TypeError: A method cannot be encoded in messages: an annotation has no encoding, two
                methods have one id, or a return type is not supported.

        Examples:
            >>> class Market:
            ...     def price(self, symbol: str, price: float) -> None: ...
            >>> market = appender.method_writer(Market)
            >>> market.price("EURUSD", 1.1)
            >>> print(tailer.read().to_yaml(), end="")
            price: [
              EURUSD,
              1.1
            ]

        """
        from quire.calls.method_writer import method_writer
        from quire.types import names_around

        return method_writer(
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


async def _in_thread(write: Callable[[], _T], slot: Slot | None) -> _T:
    if slot is not None:
        return await slot.in_thread(write)
    import asyncio

    return await asyncio.to_thread(write)
