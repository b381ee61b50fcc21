"""A sink's session over a connection."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from quire.errors import PeerLostError, PeerSilentError, ReplicationError
from quire.replication.drivers.any_session import ReceivingSession
from quire.replication.drivers.connection import LAST_WORDS_S, Connection
from quire.replication.drivers.spinning import Spinning

_log = logging.getLogger("quire")


class Receiving:
    """
    Drives a session of a sink.

    Args:
        session: What the sink takes.
        connection: Where from.
        path: The directory of the copy, for the log.
        notify: Called after each step that somebody may wait for.
        check: Called all the time; may raise what ends the sink.
        act: Does what the session asks for; whether the connection has served its purpose.
        is_busy: Whether a thread of its own, which never sleeps, drives it once the stream begins.

    """

    def __init__(  # noqa: PLR0913 - what its sink does
        self,
        session: ReceivingSession,
        connection: Connection,
        *,
        path: str,
        notify: Callable[[], None],
        check: Callable[[], None],
        act: Callable[[], Coroutine[Any, Any, bool]],
        is_busy: bool = False,
    ) -> None:
        self._session, self._connection, self._path = session, connection, path
        self._notify, self._check, self._act = notify, check, act
        self._is_busy, self._has_served = is_busy, False
        self._progress = session.progress

    async def run(self) -> None:
        """
        Take what the source sends until it ends the connection.

        Raises:
            PeerLostError: The connection was lost.
            PeerSilentError: The source was silent for too long.
            QuireError: What the source sent cannot be stored.

        """
        try:
            await self._converse()
        except (PeerLostError, PeerSilentError):
            raise
        except ReplicationError:
            await self._connection.send_last(self._session.outgoing(), LAST_WORDS_S)
            raise

    async def _converse(self) -> None:
        session, connection = self._session, self._connection
        tick_s, was_started = session.tick_s, False
        looked_s = time.monotonic()
        while not session.has_ended:
            await self._answer()
            data = await connection.read(tick_s)
            now_ns = time.monotonic_ns()
            if data:
                await self._receive(data, now_ns)
                if session.is_started and not was_started:
                    was_started = True
                    _log.info("replicating: path=%s peer=%s", self._path, connection.peer)
            if now_ns / 1e9 - looked_s >= tick_s:  # also while messages come all the time
                self._check()
                looked_s = now_ns / 1e9
            if await self._act():
                break
            session.tick(now_ns)
            if was_started and self._is_busy:
                await self._spin()
                break
        await self._answer()
        await connection.send_last(b"", LAST_WORDS_S)

    async def _spin(self) -> None:
        """Have a thread of its own do the rest."""
        session, loop = self._session, asyncio.get_running_loop()

        def work(_now_ns: int) -> bool:
            if session.awaits_sync:
                session.sync()
                return True
            return False

        def each_tick() -> None:
            self._check()
            self._has_served = asyncio.run_coroutine_threadsafe(self._act(), loop).result()

        spinning = Spinning(
            session,
            self._connection,
            work=work,
            is_over=lambda: session.has_ended or self._has_served,
            note=lambda: None,
            notify=self._notify,
            each_tick=each_tick,
        )
        await spinning.run()

    async def _receive(self, data: bytes, now_ns: int) -> None:
        session = self._session
        if not session.takes_long:
            session.receive(data, now_ns)
            return
        taking = asyncio.ensure_future(asyncio.to_thread(session.receive, data, now_ns))
        try:
            while not taking.done():
                await asyncio.wait({taking}, timeout=session.tick_s)
                session.tick(time.monotonic_ns())
                if not taking.done():
                    await self._connection.send(session.outgoing(), session.timeout_s)
        finally:
            await asyncio.wait({taking})  # it has the copy open
        taking.result()

    async def _answer(self) -> None:
        session = self._session
        if session.awaits_sync:
            await asyncio.to_thread(session.sync)
        await self._connection.send(session.outgoing(), session.timeout_s)
        if session.progress != self._progress:
            self._progress = session.progress
            self._notify()
