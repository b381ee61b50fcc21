"""A session's bytes moved by a thread of its own, which never sleeps."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from quire.errors import OptionsError, PeerLostError, PeerSilentError
from quire.replication.drivers.any_session import AnySession
from quire.replication.drivers.connection import READ_BYTES, Connection, failure

_NOT_NOW: Final = (BlockingIOError, InterruptedError)
_NEWS_NS: Final = 10_000_000
"""How often, at most, the event loop learns that the session went on."""


def check_busy(tls: ssl.SSLContext | None, *, is_busy: bool) -> None:
    """
    Check that a thread can have the socket of a connection.

    Raises:
        OptionsError: The connection is encrypted, and *is_busy* was given.

    """
    if is_busy and tls is not None:
        text = "a busy thread moves bytes as they are, and does not encrypt"
        hint = "leave out the certificates or the busy threads"
        raise OptionsError(f"{text}: busy=True tls=... ({hint})")


class Spinning:
    """
    Looks all the time whether there is something to receive or to send.

    Nothing is handed over between threads, and no thread wakes another one: a message is on its way
    a few microseconds after it can be read. Only :meth:`run` belongs to the event loop.

    Args:
        session: A session, which nobody else drives meanwhile.
        connection: Whose socket is used.
        work: Puts what comes next into what is to be sent; whether there was something.
        is_over: Whether the connection has served its purpose.
        note: Called after each step forward, in the thread.
        notify: The same, in the event loop, every 10 ms at most.
        each_tick: Called now and then, in the thread.

    """

    def __init__(  # noqa: PLR0913 - what its side does
        self,
        session: AnySession,
        connection: Connection,
        *,
        work: Callable[[int], bool],
        is_over: Callable[[], bool],
        note: Callable[[], None],
        notify: Callable[[], None],
        each_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._session, self._connection = session, connection
        self._work, self._is_over, self._each_tick = work, is_over, each_tick
        self._note, self._notify = note, notify
        self._progress = session.progress
        self._is_stopped = self._has_news = False
        self._left = memoryview(b"")
        self._room = memoryview(bytearray(READ_BYTES))
        self._took_ns = self._ticks_ns = self._news_ns = 0

    async def run(self) -> None:
        """
        Return once it is over; what was not sent is left to the connection.

        Raises:
            PeerLostError: The connection was lost.
            PeerSilentError: The peer took nothing for too long, or was silent.
            QuireError: What the peer sent cannot be.

        """
        loop = asyncio.get_running_loop()
        lent, first = await self._connection.lend(self._session.timeout_s)
        ended: asyncio.Future[None] = loop.create_future()

        def end(error: BaseException | None) -> None:
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)
                ended.exception()  # a task that was cancelled twice no longer asks

        def spin() -> None:
            found: BaseException | None = None
            try:
                with lent:
                    self._spin(lent, first, loop)
            except BaseException as error:  # noqa: BLE001 - the task raises it
                found = error
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end, found)

        threading.Thread(target=spin, name="quire-busy", daemon=True).start()
        try:
            await asyncio.wait({ended})
        finally:
            self._is_stopped = True
            await asyncio.wait({ended})
            self._connection.take_back(self._left)
            self._notify()
        ended.result()

    def _spin(self, lent: socket.socket, first: bytes, loop: asyncio.AbstractEventLoop) -> None:
        session, data = self._session, first
        while True:
            now_ns = time.monotonic_ns()
            if data:
                session.receive(data, now_ns)
            if session.progress != self._progress:
                self._progress, self._has_news = session.progress, True
                self._note()
            if self._is_stopped or self._is_over():
                self._send(lent, now_ns)
                return
            has_worked = not self._left and self._work(now_ns)
            if now_ns >= self._ticks_ns:
                self._ticks_ns = now_ns + int(session.tick_s * 1e9)
                session.tick(now_ns)
                self._each_tick()
            self._send(lent, now_ns)
            if self._has_news and now_ns >= self._news_ns:
                self._has_news, self._news_ns = False, now_ns + _NEWS_NS
                loop.call_soon_threadsafe(self._notify)
            if not (data or has_worked):
                os.sched_yield()  # where cores are scarce, others go first
            data = self._read(lent)

    def _read(self, lent: socket.socket) -> bytes:
        """Return what the peer has sent, if anything."""
        try:
            size = lent.recv_into(self._room)
        except _NOT_NOW:
            return b""
        except OSError as error:
            raise failure(self._connection.peer, error) from None
        if not size:
            raise PeerLostError(f"the peer closed the connection: peer={self._connection.peer}")
        return bytes(self._room[:size])

    def _send(self, lent: socket.socket, now_ns: int) -> None:
        """Send as much as the peer takes now: it may have to be read before it takes more."""
        if not self._left:
            self._left, self._took_ns = memoryview(self._session.outgoing()), now_ns
        if not self._left:
            return
        try:
            self._left, self._took_ns = self._left[lent.send(self._left) :], now_ns
        except OSError as error:
            if not isinstance(error, _NOT_NOW):
                raise failure(self._connection.peer, error) from None
            timeout_s = self._session.timeout_s
            if now_ns - self._took_ns > timeout_s * 1e9:
                text = "the peer took nothing for too long"
                where = f"peer={self._connection.peer} timeout_s={timeout_s}"
                raise PeerSilentError(f"{text}: {where}") from None
