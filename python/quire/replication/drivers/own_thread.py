"""Drives a session in a thread of its own, which sleeps or spins while idle."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, TypeAlias

from quire._waiting.sleeping import Sleeper
from quire.errors import OptionsError, PeerLostError, PeerSilentError
from quire.replication.drivers.any_session import AnySession
from quire.replication.drivers.connection import READ_BYTES, Connection, failure
from quire.replication.drivers.idling import Idling, Sleeping, Spinning

Threads: TypeAlias = Literal["none", "sleeping", "busy"]
"""The kind of thread that drives a connection once its stream begins; none: the event loop."""

_NOT_NOW: Final = (BlockingIOError, InterruptedError)
_FEW_BYTES: Final = 16 << 10
_NEWS_NS: Final = 10_000_000
"""The least interval at which the event loop is notified of progress no task waits for."""


def threads_for(tls: ssl.SSLContext | None, *, is_busy: bool) -> Threads:
    """
    Return the kind of threads that drive connections.

    Raises:
        OptionsError: *is_busy* is given although the connections are encrypted.

    """
    if tls is None:
        return "busy" if is_busy else "sleeping"
    if is_busy:
        text = "busy threads cannot use TLS"
        hint = "omit either the certificates or busy=True"
        raise OptionsError(f"{text}: busy=True tls=... ({hint})")
    return "none"


class OwnThread:
    """
    Receives and sends in a thread of its own.

    Messages do not pass through the event loop: they cost it nothing, and the thread continues
    while the loop is blocked. Only :meth:`run` belongs to the loop.

    Args:
        session: A session, which no other thread drives meanwhile.
        connection: The connection whose socket is used.
        work: Adds the next bytes to the outgoing ones; returns whether there were any.
        is_over: Returns whether the connection has served its purpose.
        note: Called after each progress, in the thread; returns whether a caller waited for it.
        notify: Called after progress in the event loop, but not after each.
        is_awaited: Returns whether tasks of the event loop wait for progress: then *notify* is
            called after each.
        each_tick: Called at each tick, in the thread.
        is_due: Returns whether to call *each_tick* now.
        sleeper: Returns the handle that wakes the thread, in addition to the peer, if it sleeps.
        is_busy: Whether the thread never sleeps.

    """

    def __init__(  # noqa: PLR0913 - what its side does
        self,
        session: AnySession,
        connection: Connection,
        *,
        work: Callable[[int], bool],
        is_over: Callable[[], bool],
        note: Callable[[], bool],
        notify: Callable[[], None],
        is_awaited: Callable[[], bool],
        each_tick: Callable[[], None] = lambda: None,
        is_due: Callable[[], bool] = lambda: False,
        sleeper: Callable[[], Sleeper | None] = lambda: None,
        is_busy: bool,
    ) -> None:
        self._session, self._connection = session, connection
        self._work, self._is_over = work, is_over
        self._each_tick, self._is_due = each_tick, is_due
        self._note, self._notify, self._is_awaited = note, notify, is_awaited
        self._sleeper, self._is_busy = sleeper, is_busy
        self._progress: object = None  # an earlier one: the session may have made progress before
        self._is_stopped = self._has_news = self._is_reporting = self._is_asked = False
        self._left = memoryview(b"")
        self._room = memoryview(bytearray(READ_BYTES))
        self._took_ns = self._ticks_ns = self._news_ns = 0

    async def run(self) -> None:
        """
        Run until *is_over*; bytes that were not sent are left to the connection.

        Raises:
            PeerLostError: The connection was lost.
            PeerSilentError: The peer read nothing for too long, or was silent.
            QuireError: The bytes of the peer break the protocol.

        """
        loop = asyncio.get_running_loop()
        idling: Idling = Spinning() if self._is_busy else Sleeping(self._sleeper)
        lent, first = await self._connection.lend(self._session.timeout_s)
        ended: asyncio.Future[None] = loop.create_future()

        def end(error: BaseException | None) -> None:
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)
                ended.exception()  # a task that was cancelled twice no longer asks

        def drive() -> None:
            found: BaseException | None = None
            try:
                with lent:
                    self._drive(lent, first, idling, loop)
            except BaseException as error:  # noqa: BLE001 - the task raises it
                found = error
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end, found)

        threading.Thread(target=drive, name="quire-replication", daemon=True).start()
        try:
            await asyncio.wait({ended})
        finally:
            self._is_stopped = True
            idling.wake()
            while not ended.done():  # another cancellation changes nothing
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({ended})
            self._connection.take_back(self._left)
            self._notify()
        ended.result()

    def _drive(
        self, lent: socket.socket, first: bytes, idling: Idling, loop: asyncio.AbstractEventLoop
    ) -> None:
        session, data, is_dense, has_more = self._session, first, False, True
        while True:
            now_ns = time.monotonic_ns()
            if data or has_more:
                has_more = session.receive_some(data, now_ns)
            if session.progress != self._progress:
                self._progress, self._has_news = session.progress, True
                self._is_asked |= self._note()
            if self._is_stopped or self._is_over():
                self._send(lent, now_ns)
                return
            has_worked = not self._left and self._work(now_ns)
            if now_ns >= self._ticks_ns or self._is_due():
                self._ticks_ns = now_ns + int(session.tick_s * 1e9)
                session.tick(now_ns)
                self._each_tick()
            size = self._send(lent, now_ns)
            self._report(loop, now_ns)
            if not (data or has_worked or has_more):
                until_ns = min(self._ticks_ns, self._news_ns) if self._has_news else self._ticks_ns
                left_s = max(0, until_ns - now_ns) / 1e9
                idling.wait(lent, left_s, has_more=bool(self._left), is_asked=self._is_asked)
                self._is_asked = is_dense = False
            elif has_worked and is_dense and size < _FEW_BYTES and not self._is_asked:
                idling.rest()
                is_dense = False
            else:
                is_dense = has_worked or is_dense
            data = b"" if has_more else self._read(lent)

    def _report(self, loop: asyncio.AbstractEventLoop, now_ns: int) -> None:
        """Notify the event loop of progress, rarely: it costs both of them time."""
        if not self._has_news:
            return
        if not self._is_reporting:
            if now_ns < self._news_ns and not self._is_awaited():
                return
            self._is_reporting, self._news_ns = True, now_ns + _NEWS_NS
            loop.call_soon_threadsafe(self._reported)
        self._has_news = False

    def _reported(self) -> None:
        self._is_reporting = False  # first: later progress is reported again
        self._notify()

    def _read(self, lent: socket.socket) -> bytes:
        """Return the bytes that the peer has sent, if any."""
        try:
            size = lent.recv_into(self._room)
        except _NOT_NOW:
            return b""
        except OSError as error:
            raise failure(self._connection.peer, error) from None
        if not size:
            raise PeerLostError(f"the peer closed the connection: peer={self._connection.peer}")
        return bytes(self._room[:size])

    def _send(self, lent: socket.socket, now_ns: int) -> int:
        """
        Send as much as the peer takes now: it may take more only after its bytes were read.

        Returns:
            The number of bytes that were to be sent.

        """
        if not self._left:
            self._left, self._took_ns = memoryview(self._session.outgoing()), now_ns
        size = len(self._left)
        if not size:
            return 0
        try:
            self._left, self._took_ns = self._left[lent.send(self._left) :], now_ns
        except OSError as error:
            if not isinstance(error, _NOT_NOW):
                raise failure(self._connection.peer, error) from None
            timeout_s = self._session.timeout_s
            if now_ns - self._took_ns > timeout_s * 1e9:
                text = "the peer read nothing for too long"
                where = f"peer={self._connection.peer} timeout_s={timeout_s}"
                raise PeerSilentError(f"{text}: {where}") from None
        return size
