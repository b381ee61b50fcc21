"""Runs a source of any format with asyncio."""

from __future__ import annotations

import asyncio
import logging
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from quire.errors import ClosedError, PeerLostError, QuireError
from quire.replication.drivers.any_session import TICK_S, SendingSession
from quire.replication.drivers.connection import LAST_WORDS_S, Connection
from quire.replication.drivers.connector import Connector
from quire.replication.drivers.listener import Listener
from quire.replication.drivers.own_thread import Threads
from quire.replication.drivers.sending import Sending

CONNECT_S: Final = 10.0
"""How long a peer may take to answer."""

_RECONNECT_S: Final = 0.5
_S = TypeVar("_S", bound=SendingSession)
_log = logging.getLogger("quire")


class AnySource(ABC, Generic[_S]):
    """
    Has a session for each sink that connects, or for the sink to which it connects.

    Args:
        path: The queue's directory, for errors.
        host: The address to listen on, or the address of the sink.
        port: The port; 0 takes a free one.
        tls: The encryption of connections; None for none.
        max_sinks: The most sinks that may be connected at once.
        connects: Whether to connect to a sink that listens.
        threads: The threads that drive connections once messages follow.

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        path: str,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        max_sinks: int,
        connects: bool = False,
        threads: Threads = "none",
    ) -> None:
        self._threads: Threads = threads
        self._way: Connector | Listener
        if connects:
            self._way = Connector(
                self._serve,
                host=host,
                port=port,
                tls=tls,
                timeout_s=CONNECT_S,
                reconnect_s=_RECONNECT_S,
            )
        else:
            limit = ("max_sinks", max_sinks)
            self._way = Listener(
                self._serve,
                host=host,
                port=port,
                tls=tls,
                limit=limit,
            )
        self._path = path
        self._sessions: list[_S] = []
        self._changed, self._awaiting = asyncio.Event(), 0
        self._ended: asyncio.Future[None] | None = None

    @abstractmethod
    def _new_session(self, peer: str) -> _S:
        """Return the session of a sink that connected."""

    async def __aenter__(self) -> Self:
        """Start listening or connecting."""
        self._ended = asyncio.get_running_loop().create_future()
        await self._way.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening, send the remaining messages, and close all connections."""
        await self.close()

    async def close(self) -> None:
        """
        Stop listening and close all connections; leaving the ``async with`` block does it too.

            await source.close()
        """
        await self._way.close()
        if self._ended is not None:
            self._end(ClosedError(f"the source was closed: path={self._path}"))

    async def run_forever(self) -> None:
        """
        Serve until the task is cancelled, the source is closed, or its queue is handed over.

            async with Source(queue, host="127.0.0.1", port=7001) as source:
                await source.run_forever()

        Raises:
            OldEpochError: A sink has seen a later epoch: another replica was promoted. The queue
                refuses appends.
            TableLostError: The queue's directory was renamed, removed or replaced.
            ClosedError: The source was closed.

        """
        await asyncio.shield(self._end_of_all())

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port on which it listens, or to which it connects."""
        return self._way.address

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        """Wait for a state of the sinks; raise the error that ends the source, if any."""
        ended = self._end_of_all()
        while not is_reached():
            if ended.done():
                ended.result()
            await self._change()

    def _is_served(self, session: _S) -> Callable[[], bool]:
        """Return a function that returns whether a sink is still connected."""
        return lambda: session in self._sessions

    async def _next_change(self) -> None:
        """Wait until a sink has sent something, at most for :data:`TICK_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK_S):
                await self._change()

    async def _change(self) -> None:
        """Wait until a sink has sent something."""
        self._awaiting += 1
        try:
            await self._changed.wait()
        finally:
            self._awaiting -= 1

    def _notify(self) -> None:
        """Wake the tasks that wait for sinks."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _end_of_all(self) -> asyncio.Future[None]:
        """Return the future that is done when the source ends."""
        if self._ended is None:
            raise RuntimeError("the source does not listen: use it in `async with`")
        return self._ended

    def _end(self, error: Exception | None) -> None:
        """End the source with an error; None: it is done."""
        ended = self._end_of_all()
        if not ended.done() and error is None:
            ended.set_result(None)
        elif not ended.done() and error is not None:
            ended.set_exception(error)
            ended.exception()  # marks it as retrieved
        self._notify()

    async def _serve(self, connection: Connection) -> None:
        session = self._new_session(connection.peer)
        self._sessions.append(session)
        try:
            sending = Sending(
                session,
                connection,
                note=lambda: self._note_progress(session),
                notify=self._notify_progress,
                is_awaited=lambda: self._awaiting > 0,
                threads=self._threads,
            )
            await sending.run()
        except PeerLostError as lost:
            if session.name:
                _log.info("a sink has disconnected: name=%s reason=%s", session.name, lost)
        except (QuireError, OSError) as error:
            self._note_failure(error, connection)
            await connection.send_last(session.outgoing(), LAST_WORDS_S)
        finally:
            connection.close()
            self._sessions.remove(session)
            session.close()
            self._note_end(session)
            self._notify()

    def _note_progress(self, session: _S) -> bool:
        """
        Record the progress of a sink, in the thread that drives its session.

        Returns:
            Whether an appender waited for it.

        """
        del session
        return False

    def _notify_progress(self) -> None:
        """Notify the tasks that wait for progress of a sink."""
        self._way.note_progress()
        self._notify()

    def _note_end(self, session: _S) -> None:
        """Record that a session has ended."""

    def _note_failure(self, error: QuireError | OSError, connection: Connection) -> None:
        """Log why a sink is disconnected."""
        del connection
        _log.warning("disconnected a sink: %s", error)
