"""Drives a sink's session over a connection."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from quire.errors import PeerLostError, PeerSilentError, ReplicationError
from quire.replication.drivers.any_session import ReceivingSession
from quire.replication.drivers.connection import LAST_WORDS_S, Connection
from quire.replication.drivers.own_thread import OwnThread, Threads

_log = logging.getLogger("quire")


class Receiving:
    """
    Drives a session of a sink.

    Args:
        session: The session.
        connection: The connection to the source.
        path: The directory of the copy, for the log.
        note: Called after each progress, by the thread that drives the session.
        notify: Called after progress in the event loop, for tasks that wait.
        is_awaited: Returns whether there are such tasks.
        check: Called at each tick; may raise the error that ends the sink.
        act: Carries out an action that the session requests, if any; returns whether the
            connection has served its purpose.
        is_to_act: Returns whether there is such an action.
        threads: The kind of thread that drives the session once the stream begins.

    """

    def __init__(  # noqa: PLR0913 - what its sink does
        self,
        session: ReceivingSession,
        connection: Connection,
        *,
        path: str,
        note: Callable[[], None],
        notify: Callable[[], None],
        is_awaited: Callable[[], bool],
        check: Callable[[], None],
        act: Callable[[], Coroutine[Any, Any, bool]],
        is_to_act: Callable[[], bool],
        threads: Threads,
    ) -> None:
        self._session, self._connection, self._path = session, connection, path
        self._note, self._notify, self._is_awaited = note, notify, is_awaited
        self._check, self._act, self._is_to_act = check, act, is_to_act
        self._threads, self._has_served = threads, False
        self._progress = session.progress

    async def run(self) -> None:
        """
        Receive from the source until it ends the connection.

        Raises:
            PeerLostError: The connection was lost.
            PeerSilentError: The source was silent for too long.
            QuireError: The messages that the source sent cannot be stored.

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
        looked_s, has_more = time.monotonic(), False
        while not session.has_ended:
            await self._answer()
            if has_more:
                await asyncio.sleep(0)
            data = b"" if has_more else await connection.read(tick_s)
            now_ns = time.monotonic_ns()
            if data or has_more:
                has_more = await self._receive(data, now_ns)
                if session.is_started and not was_started:
                    was_started = True
                    _log.info("replicating: path=%s peer=%s", self._path, connection.peer)
            if now_ns / 1e9 - looked_s >= tick_s:  # also while messages arrive without a pause
                self._check()
                looked_s = now_ns / 1e9
            if await self._act():
                break
            session.tick(now_ns)
            if was_started and self._threads != "none":
                await self._in_own_thread()
                break
        await self._answer()
        await connection.send_last(b"", LAST_WORDS_S)

    async def _in_own_thread(self) -> None:
        """Let a thread of its own drive the session from here on."""
        session, loop = self._session, asyncio.get_running_loop()

        def work(_now_ns: int) -> bool:
            if session.awaits_sync:
                session.sync()
                return True
            return False

        def each_tick() -> None:
            self._check()
            if self._is_to_act():  # otherwise the thread does not wait for the event loop
                self._has_served = asyncio.run_coroutine_threadsafe(self._act(), loop).result()

        def note() -> bool:
            self._note()
            return False

        thread = OwnThread(
            session,
            self._connection,
            work=work,
            is_over=lambda: session.has_ended or self._has_served,
            note=note,
            notify=self._notify,
            is_awaited=self._is_awaited,
            each_tick=each_tick,
            is_due=lambda: session.awaits_action,
            is_busy=self._threads == "busy",
        )
        await thread.run()

    async def _receive(self, data: bytes, now_ns: int) -> bool:
        """Process bytes; return whether some are left for the next call."""
        session = self._session
        if not session.takes_long:
            return session.receive_some(data, now_ns)
        taking = asyncio.ensure_future(asyncio.to_thread(session.receive_some, data, now_ns))
        try:
            while not taking.done():
                await asyncio.wait({taking}, timeout=session.tick_s)
                session.tick(time.monotonic_ns())
                if not taking.done():
                    await self._connection.send(session.outgoing(), session.timeout_s)
        finally:
            await asyncio.wait({taking})  # it has the copy open
        return taking.result()

    async def _answer(self) -> None:
        session = self._session
        if session.awaits_sync:
            await asyncio.to_thread(session.sync)
        await self._connection.send(session.outgoing(), session.timeout_s)
        if session.progress != self._progress:
            self._progress = session.progress
            self._note()
            self._notify()
