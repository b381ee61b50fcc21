"""Reading in event loops: one cancellable wait for the handles of every format."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from quire._common import arguments
from quire._waiting.sleeping import Sleeper, pauser_at
from quire.errors import WaitTimeoutError
from quire.pausers import TURN_S, Pauser, pauser_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from types import TracebackType

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")


class RemoteReading(Protocol):
    """A handle of a server, which may be away."""

    def _is_buffered(self) -> bool:
        """Return whether a read needs no server."""
        ...

    async def _prepared(self) -> bool:
        """Return whether a read would return something without waiting, once it is known."""
        ...


class Awaited(Protocol):
    """A handle whose messages tasks wait for."""

    @property
    def _tasks(self) -> Tasks: ...

    @property
    def _remote(self) -> RemoteReading | None: ...

    def _prepare(self) -> bool | None:
        """Return whether a read would return something without waiting; None: check again."""
        ...


class Tasks:
    """
    The tasks that read from one handle.

    It does not refer to the handle, which would then be freed late.

    Args:
        sole: Only one task at a time may wait.

    """

    __slots__ = ("_is_sole", "_pid", "_turn_ends", "_waiting")

    def __init__(self, *, sole: bool = True) -> None:
        self._is_sole = sole
        self._turn_ends = 0.0
        self._waiting: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    async def read(
        self,
        handle: Awaited,
        read: Callable[[], _T | None],
        timeout_s: float | None = None,
        pauser: Pauser | None = None,
        *,
        ends: bool = False,
    ) -> _T | None:
        """
        Return the result of *read* once it is not None; None when no message came in time.

        The loop's other tasks run every few milliseconds, also while there is a backlog. Nothing
        is awaited between a read and its return: a task that is cancelled has either returned the
        message or has not read it.

        Raises:
            StopAsyncIteration: No message came in time, and *ends* is True.
            RuntimeError: Another task waits for this handle already.

        """
        if self._waiting is None and monotonic() < self._turn_ends:
            remote = handle._remote  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            is_ready = handle._prepare() if remote is None else remote._is_buffered()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            if is_ready and (found := read()) is not None:
                return found
        found = await self._read_in_turn(handle, read, timeout_s, pauser)
        if ends and found is None:
            raise StopAsyncIteration
        return found

    async def _read_in_turn(
        self,
        handle: Awaited,
        read: Callable[[], _T | None],
        timeout_s: float | None,
        pauser: Pauser | None,
    ) -> _T | None:
        """Let other tasks run first, then read or wait."""
        import asyncio

        if self._is_sole:
            self._refuse_second(handle)
            self._waiting, self._pid = asyncio.get_running_loop(), os.getpid()
        try:
            await asyncio.sleep(0)
            return await _when_there(handle, read, timeout_s, pauser)
        finally:
            self._turn_ends = monotonic() + TURN_S
            self._waiting = None

    def _refuse_second(self, handle: Awaited) -> None:
        # A task that was left behind by a closed loop, or by a fork, waits for nothing any more.
        if self._waiting is None or self._waiting.is_closed() or self._pid != os.getpid():
            return
        raise RuntimeError(
            "another task waits for messages of this tailer: give each task a tailer of its own, "
            f"or share the messages in a consumer group (queue.group): tailer={handle!r}"
        )


async def _when_there(
    handle: Awaited, read: Callable[[], _T | None], timeout_s: float | None, pauser: Pauser | None
) -> _T | None:
    """Wait until *read* returns something: the only place where a task waits for messages."""
    import asyncio

    pauser = pauser_at(handle, pauser) if isinstance(handle, Sleeper) else pauser_of(pauser)
    pauser.reset()
    ends = math.inf
    if timeout_s is not None:
        timeout_s = arguments.seconds("timeout_s", timeout_s)
        ends = monotonic() + timeout_s
    remote = handle._remote  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    while True:
        is_ready = handle._prepare() if remote is None else await remote._prepared()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if is_ready and (found := read()) is not None:
            return found
        # A scan for sub-topics may take long: it pauses, and goes on after the other tasks.
        # Nor does it wait within a read, as it would after a file without end-of-file marker.
        left_s = ends - monotonic()
        if is_ready is None and left_s > 0:
            await asyncio.sleep(0)
            continue
        if left_s <= 0:
            return None
        try:
            await pauser.apause(timeout_s)
        except WaitTimeoutError:
            return None


class AsyncMessages(Generic[_T_co]):
    """
    Messages in an event loop, as they arrive: ``async for message in tailer``.

    The iteration ends when no message came in time, and continues when it is iterated again.
    """

    __slots__ = ("_handle", "_pauser", "_read", "_timeout_s")

    def __init__(
        self,
        handle: Awaited,
        read: Callable[[], _T_co | None],
        timeout_s: float | None = None,
        pauser: Pauser | None = None,
    ) -> None:
        """Check how to wait; nothing is read yet."""
        self._handle, self._read = handle, read
        self._timeout_s = arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        self._pauser = None if pauser is None else pauser_of(pauser)

    def __aiter__(self) -> Self:
        """Return it."""
        return self

    def __anext__(self) -> Coroutine[Any, Any, _T_co]:
        """Return the next message and wait for it."""
        handle = self._handle
        return handle._tasks.read(handle, self._read, self._timeout_s, self._pauser, ends=True)  # type: ignore[return-value] # noqa: SLF001 # None ends it


class AsyncClosing:
    """A handle that ``async with`` closes without holding up the event loop."""

    if TYPE_CHECKING:

        def close(self) -> None: ...
        def __enter__(self) -> Self: ...
        def __exit__(
            self,
            exc_type: type[BaseException] | None,
            exc: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None: ...

    async def aclose(self) -> None:
        """
        Close it in a thread: closing may wait for the disk, or for pending appends.

        A task that is cancelled meanwhile leaves the closing to the thread.

        Examples:
            >>> import asyncio
            >>> asyncio.run(tailer.aclose())
            >>> tailer.closed
            True

        """
        await _in_thread(self.close)

    async def __aenter__(self) -> Self:
        """Return it."""
        return self.__enter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it, as :meth:`aclose` does."""
        await _in_thread(partial(self.__exit__, exc_type, exc, traceback))


async def _in_thread(close: Callable[[], object]) -> None:
    """Close in a thread, also where this is cancelled before a thread of the loop is free."""
    import asyncio
    from contextvars import copy_context

    closing = asyncio.get_running_loop().run_in_executor(None, copy_context().run, close)
    await asyncio.shield(closing)
