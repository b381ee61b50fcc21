"""Drives a source's session over a connection: one task reads, another sends."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from quire._waiting.sleeping import Sleep, Sleeper, sleep_async
from quire.errors import QuireError
from quire.replication.drivers.any_session import SendingSession
from quire.replication.drivers.connection import LAST_WORDS_S, Connection
from quire.replication.drivers.own_thread import OwnThread, Threads

_PULLS_IN_A_ROW: Final = 8

_log = logging.getLogger("quire")


class Sending:
    """
    Drives a session of a source.

    Args:
        session: The session.
        connection: The connection to the sink.
        note: Called after each progress, by the thread that drives the session; returns whether a
            caller waited for it.
        notify: Called after progress in the event loop, for tasks that wait.
        is_awaited: Returns whether there are such tasks.
        threads: The kind of thread that drives the session once the stream begins.

    """

    def __init__(  # noqa: PLR0913 - what its source does
        self,
        session: SendingSession,
        connection: Connection,
        *,
        note: Callable[[], bool],
        notify: Callable[[], None],
        is_awaited: Callable[[], bool],
        threads: Threads,
    ) -> None:
        self._session, self._connection = session, connection
        self._note, self._notify, self._is_awaited = note, notify, is_awaited
        self._threads: Threads = threads
        self._is_replicating = False
        self._news = asyncio.Event()
        self._sleep: Sleep | None = None  # while it sleeps
        self._known_sleep: Sleep | None = None  # reused: makes single messages cheaper
        self._sleeper: Sleeper | None = None

    async def run(self) -> None:
        """
        Run until either side ends the connection.

        Raises:
            PeerLostError: The connection was lost.
            QuireError: The sink violated the protocol, or the queue cannot be read.

        """
        reading = asyncio.create_task(self._read_all())
        sending = asyncio.create_task(self._send_all())
        try:
            await asyncio.wait({reading, sending}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _cancelled(sending)
            await self._finish(reading)
            raise
        await _cancelled(reading, sending)
        for task in (reading, sending):
            if not task.cancelled():
                task.result()
        await self._in_own_thread()

    async def _in_own_thread(self) -> None:
        """Let a thread of its own drive the session from here on."""
        session = self._session
        thread = OwnThread(
            session,
            self._connection,
            work=lambda now_ns: session.pull(time.time_ns(), now_ns),
            is_over=lambda: False,
            note=self._note,
            notify=self._notify,
            is_awaited=self._is_awaited,
            sleeper=lambda: session.sleeper if session.is_waiting else None,
            is_busy=self._threads == "busy",
        )
        try:
            await thread.run()
        except asyncio.CancelledError:
            self._threads = "none"
            await self._finish(asyncio.create_task(self._read_all()))
            raise

    async def _finish(self, reading: asyncio.Task[None]) -> None:
        """
        Send the messages that the sink lacks, end the stream, and let the sink disconnect.

        If this side closed the connection, acknowledgements that arrive later would make the system
        reset it, and the sink might lose messages that were sent.
        """
        session, connection = self._session, self._connection
        with suppress(QuireError, TimeoutError):
            async with asyncio.timeout(session.timeout_s):
                while not reading.done():
                    self._news.clear()
                    if session.pull(time.time_ns(), time.monotonic_ns()):
                        await connection.send(session.outgoing(), LAST_WORDS_S)
                    elif session.sleeper is None or session.is_waiting:
                        break
                    else:
                        await self._wait()
        with suppress(QuireError):
            session.end()
            await connection.send(session.outgoing(), LAST_WORDS_S)
            if session.awaits_end:
                await asyncio.wait({reading}, timeout=LAST_WORDS_S)
            else:
                await connection.finish(LAST_WORDS_S)
        await _cancelled(reading)

    async def _read_all(self) -> None:
        session, connection, has_more = self._session, self._connection, False
        while True:
            if has_more:
                await asyncio.sleep(0)
            data = b"" if has_more else await connection.read()
            before, sleeper = session.progress, session.sleeper
            if session.takes_long:
                now_ns = time.monotonic_ns()
                has_more = await asyncio.to_thread(session.receive_some, data, now_ns)
            else:
                has_more = session.receive_some(data, time.monotonic_ns())
            if session.name:
                connection.note_known()
            # A sink that requests much and reads nothing must not fill memory with answers.
            await connection.send(session.outgoing(), session.timeout_s)
            if not self._is_replicating and session.sleeper is not None:
                self._is_replicating = True
                _log.info("a sink replicates: name=%s peer=%s", session.name, session.peer)
            if session.progress != before:
                self._note()
                self._notify()
            self._news.set()
            if self._is_replicating and self._threads != "none":
                return
            if self._sleep is not None and session.sleeper is not sleeper:
                self._sleep.unpause()

    async def _send_all(self) -> None:
        session, connection = self._session, self._connection
        while True:
            self._news.clear()
            session.tick(time.monotonic_ns())
            for number in itertools.count(1):
                if not session.pull(time.time_ns(), time.monotonic_ns()):
                    break
                await connection.send(session.outgoing(), session.timeout_s)
                if number % _PULLS_IN_A_ROW == 0:
                    await asyncio.sleep(0)  # `send` does not wait while the peer keeps up
            await connection.send(session.outgoing(), session.timeout_s)
            await self._wait()

    async def _wait(self) -> None:
        """Return when there is something to send: a message, an answer, or a heartbeat."""
        session = self._session
        sleeper = session.sleeper
        if sleeper is None or not session.is_waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(session.tick_s):
                    await self._news.wait()
            return
        if sleeper is not self._sleeper:
            self._sleeper, self._known_sleep = sleeper, Sleep(sleeper)
        self._sleep = self._known_sleep
        await sleep_async(sleeper, session.tick_s, self._sleep)
        self._sleep = None


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # marks it as retrieved
