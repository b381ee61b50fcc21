"""Sub-topics: messages with a routing key before them, in one queue."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from quire import _native
from quire._common.known_attributes import KnownAttributes
from quire._native import WriteDocument

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from quire._native import Value
    from quire.handles.journal.appender import JournalAppender

_T = TypeVar("_T")

ROUTE = "to"
"""The event that carries the key, as in Java's ``router.to(key).say(...)``."""


class Topic(KnownAttributes):
    """
    Writes messages of one sub-topic, from :meth:`quire.JournalAppender.topic`.

    Each is one document: the event ``to`` with the key, then the message.

    Examples:
        >>> london = appender.topic("LDN")
        >>> london.key
        'LDN'
        >>> _ = london.write_text("hello")
        >>> _ = london.write_map({"symbol": "EURUSD"})
        >>> _ = london.write_bytes(b"any bytes")
        >>> tailer = tailer.topics("LDN")
        >>> tailer.read_text(), tailer.read_map(), tailer.read_bytes()
        ('hello', {'symbol': 'EURUSD'}, b'any bytes')

    """

    def __init__(self, appender: JournalAppender, key: Any, event: str) -> None:  # noqa: ANN401 - any value
        """Encode the key once."""
        self._appender = appender
        self._route = _native.entry_bytes(event, key)
        self._key = key
        self._event = event

    @property
    def key(self) -> Any:  # noqa: ANN401 - what it was given
        """The routing key, written before each message."""
        return self._key

    def __repr__(self) -> str:
        """Show the queue's directory, the key, and what is before it."""
        key = reprlib.repr(self._key)  # does not raise, whatever the key is
        return f"Topic({self._appender!r}, key={key}, event={self._event!r})"

    def write_bytes(self, payload: Buffer, /) -> int:
        """Append the key and bytes: see :meth:`quire.Appender.write_bytes`."""
        if not memoryview(payload).nbytes:
            raise ValueError("a message holds at least one byte: length=0")
        return self._appender.write_bytes(b"".join((self._route, payload)))

    def write_text(self, text: str, /) -> int:
        """Append the key and text: see :meth:`quire.Appender.write_text`."""
        with self.writing_document() as document:
            document.wire.write_value(text)
        return document.index

    def write_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> int:
        """
        Append the key and an object: see :meth:`quire.JournalAppender.write_message`.

        Examples:
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Open:
            ...     price: float
            >>> index = appender.topic("LDN").write_message(Open(1.1))

        """
        with self.writing_document() as document:
            document.write_message(message, cls, typed=typed)
        return document.index

    def write_map(self, values: Mapping[str, Value], /) -> int:
        """Append the key and named values: see :meth:`quire.JournalAppender.write_map`."""
        with self.writing_document() as document:
            for name, value in values.items():
                document.write(name, value)
        return document.index

    async def awrite_bytes(self, payload: Buffer, /) -> int:
        """
        Append the key and bytes: see :meth:`quire.JournalAppender.awrite_bytes`.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.topic("LDN").awrite_bytes(b"any bytes"))

        """
        return await self._awrite(partial(self.write_bytes, payload))

    async def awrite_text(self, text: str, /) -> int:
        """
        Append the key and text: see :meth:`quire.JournalAppender.awrite_text`.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.topic("LDN").awrite_text("hello"))

        """
        return await self._awrite(partial(self.write_text, text))

    async def awrite_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> int:
        """
        Append the key and an object: see :meth:`quire.JournalAppender.awrite_message`.

        Examples:
            >>> import asyncio
            >>> from dataclasses import dataclass
            >>> @quire.message
            ... @dataclass
            ... class Close:
            ...     price: float
            >>> index = asyncio.run(appender.topic("LDN").awrite_message(Close(1.1)))

        """
        return await self._awrite(partial(self.write_message, message, cls, typed=typed))

    async def awrite_map(self, values: Mapping[str, Value], /) -> int:
        """
        Append the key and named values: see :meth:`quire.JournalAppender.awrite_map`.

        Examples:
            >>> import asyncio
            >>> index = asyncio.run(appender.topic("LDN").awrite_map({"symbol": "EURUSD"}))

        """
        return await self._awrite(partial(self.write_map, values))

    async def _awrite(self, write: Callable[[], int]) -> int:
        return await self._appender._awrite(write)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def method_writer(
        self,
        interface: Callable[..., _T],
        *,
        record_history: bool | None = None,
        history_form: Literal["packed", "fields"] = "packed",
    ) -> _T:
        """
        Return a writer of calls that follow the key: see :meth:`JournalAppender.method_writer`.

        Examples:
            >>> class Market:
            ...     def halt(self, symbol: str) -> None: ...
            >>> appender.topic("LDN").method_writer(Market).halt("EURUSD")

        """
        from quire.calls.interfaces import methods_of
        from quire.types import kind_of, names_around

        found = methods_of(interface, names_around())
        route = _native.Method(self._event, [("key", kind_of(Any), ())], next=found)
        writer = _native.MethodWriter(
            self._appender,
            record_history=record_history,
            history_form=history_form,
            metadata=False,
            filter=None,
        )
        return cast("_T", writer.method(route)(self._key))

    @contextmanager
    def writing_document(self) -> Generator[WriteDocument]:
        """
        Open a document that begins with the key: see :meth:`JournalAppender.writing_document`.

        Examples:
            >>> with appender.topic("LDN").writing_document() as document:
            ...     document.write("symbol", "EURUSD")

        """
        with self._appender.writing_document() as document:
            document.write_bytes(self._route)
            yield document
