"""Tailers of every format: waiting for messages, and batches of payloads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from quire._common import arguments
from quire._common.optional_arrow import need_arrow
from quire._waiting.async_reading import AsyncMessages, RemoteReading, Tasks
from quire.errors import WaitTimeoutError
from quire.pausers import Pauser, pauser_of

if TYPE_CHECKING:
    import pyarrow as pa

    from quire._native import Buffer, Column, EventLoopWaits, Plan, Table, Wait

_NO_END = 2**63 - 1

_E_co = TypeVar("_E_co", covariant=True)
_T = TypeVar("_T")


class Following(Generic[_E_co]):
    """Waiting for messages on top of a native tailer, whose messages are of the type ``_E_co``."""

    _tasks_that_read: Tasks | None = None

    if TYPE_CHECKING:

        @property
        def index(self) -> int: ...
        def __iter__(self) -> Self: ...
        def __next__(self) -> _E_co: ...
        def read(self) -> _E_co | None: ...
        def read_bytes(self) -> bytes | None: ...
        def read_text(self) -> str | None: ...
        def read_many(self, count: int, /) -> list[bytes]: ...
        def _prepare(self) -> bool | None: ...
        def _sleep(self, timeout_s: float | None = ...) -> bool: ...
        def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Wait: ...
        def _read_columns(
            self, count: int, /, *, max_bytes: int | None = None, end: int = ...
        ) -> tuple[int, Buffer, Buffer, Buffer]: ...
        def _read_decoded(  # noqa: PLR0913 - those of the kernel
            self,
            plan: Plan,
            count: int,
            *,
            max_bytes: int,
            keep_misfits: bool = ...,
            layout: str = ...,
            end: int,
            payload: bool = ...,
            topic: str | None = ...,
        ) -> tuple[int, list[Table], Column | None, Column | None]: ...

    @property
    def _remote(self) -> RemoteReading | None:
        return None

    def follow(
        self, timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> Iterator[_E_co]:
        """
        Iterate over messages and wait for more.

        Args:
            timeout_s: End when nothing came for this many seconds; None: never end.
            pauser: How to wait, from :mod:`quire.pausers`; its own timeout ends it too.

        Examples:
            >>> _ = appender.write_many([b"one", b"two"])
            >>> for message in tailer.follow(timeout_s=0.01):
            ...     print(message.data)
            b'one'
            b'two'

        """
        while True:
            for excerpt in self:  # noqa: UP028 - `yield from` would close the tailer with the loop
                yield excerpt
            try:
                self.wait(timeout_s, pauser=pauser)
            except WaitTimeoutError:
                return

    def wait(self, timeout_s: float | None = None, *, pauser: Pauser | None = None) -> None:
        """
        Return when there is a message to read, without reading it; earlier messages are finished.

        Args:
            timeout_s: Wait at most this many seconds; None: for ever.
            pauser: How to wait, from :mod:`quire.pausers`; it is reset first.

        Raises:
            WaitTimeoutError: No message arrived within *timeout_s* seconds.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> tailer.wait(timeout_s=10)
            >>> tailer.read_text()
            'hello'

        """
        if timeout_s is not None:
            timeout_s = arguments.seconds("timeout_s", timeout_s)
        if pauser is None:
            self._wait_asleep(timeout_s)
            return
        pauser = pauser_of(pauser)
        pauser.reset()
        while not self._prepare():
            try:
                pauser.pause(timeout_s)
            except WaitTimeoutError as nothing:
                raise WaitTimeoutError(f"{nothing} index={self.index:#x}") from None
        pauser.reset()

    def _wait_asleep(self, timeout_s: float | None) -> None:
        ends = math.inf if timeout_s is None else monotonic() + timeout_s
        while not (is_ready := self._prepare()):
            left_s = ends - monotonic()
            if left_s <= 0:
                raise WaitTimeoutError(
                    f"no message arrived in time: timeout_s={timeout_s} index={self.index:#x}"
                )
            if is_ready is not None:  # a scan that is not through goes on at once
                self._sleep(left_s)

    def __aiter__(self) -> AsyncMessages[_E_co]:
        """Iterate over messages and wait for more, without holding up the event loop."""
        return self.afollow()

    def afollow(
        self, timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> AsyncMessages[_E_co]:
        """
        Iterate over messages in an event loop and wait for more: see :meth:`follow`.

        The loop's other tasks run every few milliseconds, also while there is a backlog. A wait
        that is cancelled, as by ``asyncio.wait_for(anext(messages), 0.1)``, loses no message and
        repeats none: the iterator goes on with the next one.

        Args:
            timeout_s: End when nothing came for this many seconds; None: never end.
            pauser: How to wait, from :mod:`quire.pausers`; its own timeout ends it too.

        Raises:
            RuntimeError: Another task waits for messages of this tailer.

        Examples:
            >>> import asyncio
            >>> async def collect(tailer):
            ...     return [message.data async for message in tailer.afollow(timeout_s=0.01)]
            >>> _ = appender.write_many([b"one", b"two"])
            >>> asyncio.run(collect(tailer))
            [b'one', b'two']

        """
        return AsyncMessages(self, self.read, timeout_s, pauser)

    async def aread(self, timeout_s: float | None = None) -> _E_co | None:
        """
        Return the next message and wait for it, without holding up the event loop.

        A wait that is cancelled loses no message.

        Args:
            timeout_s: Return None when no message came for this many seconds; None: wait for ever.

        Raises:
            RuntimeError: Another task waits for messages of this tailer.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_bytes(b"one")
            >>> asyncio.run(tailer.aread()).data
            b'one'
            >>> asyncio.run(tailer.aread(timeout_s=0.01)) is None
            True

        """
        return await self._aread(self.read, timeout_s)

    async def aread_bytes(self, timeout_s: float | None = None) -> bytes | None:
        """
        Return the bytes of the next message and wait for it: see :meth:`aread`.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_bytes(b"one")
            >>> asyncio.run(tailer.aread_bytes())
            b'one'

        """
        return await self._aread(self.read_bytes, timeout_s)

    async def aread_text(self, timeout_s: float | None = None) -> str | None:
        """
        Return the next message as text and wait for it: see :meth:`aread`.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_text("hello")
            >>> asyncio.run(tailer.aread_text())
            'hello'

        """
        return await self._aread(self.read_text, timeout_s)

    async def aread_many(self, count: int, timeout_s: float | None = None) -> list[bytes]:
        """
        Return the bytes of at most *count* messages, once there is one: see :meth:`aread`.

        Args:
            count: The most messages to return; the first one ends the wait.
            timeout_s: Return an empty list when no message came for this many seconds.

        Examples:
            >>> import asyncio
            >>> _ = appender.write_many([b"one", b"two"])
            >>> asyncio.run(tailer.aread_many(10))
            [b'one', b'two']

        """
        return await self._aread(lambda: self.read_many(count) or None, timeout_s) or []

    async def _aread(self, read: Callable[[], _T | None], timeout_s: float | None) -> _T | None:
        if timeout_s is not None:
            arguments.seconds("timeout_s", timeout_s)
        return await self._tasks.read(self, read, timeout_s)

    @property
    def _tasks(self) -> Tasks:
        tasks = self._tasks_that_read
        if tasks is None:
            tasks = self._tasks_that_read = Tasks()
        return tasks

    def _repr_html_(self) -> str:
        from quire._common.notebook_table import of_facts

        return of_facts(repr(self))

    def _payload_batch(self, count: int, max_bytes: int, end: int = _NO_END) -> pa.RecordBatch:
        """Return the next messages before the index *end*."""
        need_arrow()
        import pyarrow as pa

        rows, *buffers = self._read_columns(count, max_bytes=max_bytes, end=end)
        index, offsets, data = map(pa.py_buffer, buffers)
        columns: list[pa.Array[Any]] = [
            pa.Array.from_buffers(pa.uint64(), rows, [None, index]),
            pa.Array.from_buffers(pa.binary(), rows, [None, offsets, data]),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["index", "payload"])
