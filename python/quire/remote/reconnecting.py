"""Remote handles in event loops, which go on while a handle has lost its server."""

from __future__ import annotations

import math
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

from quire.errors import ServerLostError, ServerSilentError
from quire.remote.connection import FIRST_PAUSE_S, Connection
from quire.remote.waiting import SocketWait, socket_watch

if TYPE_CHECKING:
    import asyncio

    from quire._native import EventLoopWaits

BLOCK_MS: Final = 20_000
"""The longest time that the server waits before it answers that there is no message."""


class Reconnecting:
    """A handle that tasks and sleeping threads wait for, and that reconnects in a thread."""

    _connection: Connection
    _lock: RLock
    _reconnection: asyncio.Future[None] | None = None

    @property
    def _remote(self) -> Self:
        return self

    if TYPE_CHECKING:

        def _is_buffered(self) -> bool:
            """
            Return whether a read needs no server.

            Raises:
                ClosedError: The handle was closed.

            """
            ...

        def _reconnect(self) -> None:
            """Reach the server, and do what has to wait for it."""
            ...

        def _look(self) -> bool:
            """Ask for messages, or look for the answer; return whether there are some."""
            ...

    def _needs_server(self) -> bool:
        """Return whether the server was lost; the first connection is attempted only once."""
        return not self._connection.is_connected and self._connection.was_connected

    def _asks_first(self) -> bool:
        """Return whether the server says what it has now before a task waits for more."""
        return False

    async def _prepared(self) -> bool:
        """
        Return whether a read would return something without waiting.

        What has to wait for the server is done in a thread. A connection that was lost is made
        again, as by other calls.

        Raises:
            ClosedError: The handle was closed.
            ServerLostError: The server was not reached in time.

        """
        import asyncio

        ends = self._connection.deadline()
        while not self._is_buffered():
            try:
                if self._needs_server() or self._asks_first():
                    await self._reconnected()
                while not self._lock.acquire(blocking=False):
                    await self._reconnected()  # after a call of another thread
                try:
                    if not self._needs_server():
                        return self._is_buffered() or self._look()
                finally:
                    self._lock.release()
            except ServerSilentError:
                raise
            except ServerLostError:
                if not self._connection.was_connected or monotonic() + FIRST_PAUSE_S > ends:
                    raise
            await asyncio.sleep(FIRST_PAUSE_S)
        return True

    async def _reconnected(self) -> None:
        """Ask in a thread; one that a cancelled task has left behind is waited for."""
        import asyncio

        loop, work = asyncio.get_running_loop(), self._reconnection
        if work is None or work.done() or work.get_loop() is not loop:
            work = self._reconnection = loop.run_in_executor(None, self._reconnect)
        await asyncio.shield(work)

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Any:  # noqa: ANN401 - a wait
        handle = -1 if self._is_due() else self._connection.fileno()
        return SocketWait(socket_watch(), handle, waits, number)

    def _is_due(self) -> bool:
        """Return whether there is something to read, or to say, or a server to be reached."""
        if self._is_buffered() or not self._lock.acquire(blocking=False):
            return True
        try:
            return self._is_buffered() or self._needs_server() or self._look()
        except ServerSilentError:
            raise
        except ServerLostError:
            return True
        finally:
            self._lock.release()


class ReconnectingTailer(Reconnecting):
    """A tailer that threads wait for, too."""

    def _prepare(self) -> bool | None:
        """Return whether a read would return something without waiting."""
        with self._lock:
            if self._is_buffered():
                return True
            return self._connection.repeated(self._look, self._connection.deadline())

    def _sleep(self, timeout_s: float | None = None) -> bool:
        left_s = math.inf if timeout_s is None else timeout_s
        return self._connection.wait(min(left_s, 2 * BLOCK_MS / 1000))

    def spin(self, timeout_s: float | None = None) -> bool:
        """Wait for a message without polling the server; False if none came."""
        ends = math.inf if timeout_s is None else monotonic() + timeout_s
        while not self._prepare():
            left_s = ends - monotonic()
            if left_s <= 0:
                return False
            self._sleep(left_s)
        return True
