"""Runs a sink of any format with asyncio."""

from __future__ import annotations

import asyncio
import logging
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from quire.errors import ClosedError, QuireError, ReplicationError
from quire.replication.drivers.any_session import TICK_S, ReceivingSession
from quire.replication.drivers.connection import Connection
from quire.replication.drivers.connector import Connector
from quire.replication.drivers.listener import Listener
from quire.replication.drivers.own_thread import Threads
from quire.replication.drivers.receiving import Receiving

_S = TypeVar("_S", bound=ReceivingSession)
_log = logging.getLogger("quire")


class AnySink(ABC, Generic[_S]):
    """
    Maintains a connection to a source, made by either side, and a session for each connection.

    Args:
        path: The directory of the copy, for the log and for errors.
        host: The address of the source, or the address to listen on.
        port: The port.
        listens: Whether to listen for the source instead of connecting to it.
        tls: The encryption of the connection; None for none.
        connect_s: How long the source may take to answer.
        reconnect_s: How long to wait before connecting again.
        attempts: Give up after this many consecutive connections without progress; None: never.
        threads: The threads that drive connections once messages follow.

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        path: str,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        connect_s: float,
        reconnect_s: float,
        attempts: int | None,
        listens: bool = False,
        threads: Threads = "none",
    ) -> None:
        self._threads: Threads = threads
        self._listener: Listener | None = None
        if listens:
            limit = ("sources", 1)
            self._listener = Listener(
                self._serve, host=host, port=port, tls=tls, limit=limit, refusal=self._refusal
            )
        self._connector = Connector(
            self._replicate,
            host=host,
            port=port,
            tls=tls,
            timeout_s=connect_s,
            reconnect_s=reconnect_s,
            attempts=attempts,
            before=self._is_to_go_on,
        )
        self._path = path
        self._progress, self._awaiting = asyncio.Event(), 0
        self._running: asyncio.Task[None] | None = None
        self._failed: asyncio.Future[None]

    @abstractmethod
    def _new_session(self, peer: str) -> _S:
        """Return the session of a new connection."""

    @property
    def _refusal(self) -> bytes:
        """The bytes that refuse another source while the sink follows one."""
        return b""

    @abstractmethod
    def _note(self, session: _S) -> None:
        """Record the progress of a session."""

    @abstractmethod
    def _close_copy(self) -> None:
        """Close the copy."""

    def _is_to_go_on(self) -> bool:
        """Return whether to connect again; raise the error that ends the sink, if any."""
        if self._has_finished:
            return False
        self._check()
        return True

    def _check(self) -> None:
        """Check that the copy is still a replica; raise the error that ends the sink, if not."""

    @property
    def _has_finished(self) -> bool:
        """Whether the sink is done and no longer follows a source."""
        return False

    async def _act(self, session: _S) -> None:
        """Carry out the action that a session requests."""

    def _is_to_act(self, session: _S) -> bool:
        """Return whether a session requests an action."""
        return session.awaits_action

    async def __aenter__(self) -> Self:
        """Connect or listen, and continue in the background."""
        self._failed = asyncio.get_running_loop().create_future()
        if self._listener is not None:
            await self._listener.start()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection and the copy; raise the error that ended the replication, if any."""
        await self.close()
        if error is None and not self._started().cancelled() and not self._has_finished:
            raise self._failure()

    async def close(self) -> None:
        """
        Close the connection and the copy; leaving the ``async with`` block does it too.

            await sink.close()
        """
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait({self._running})
        self._close_copy()

    async def run_forever(self) -> None:
        """
        Replicate until the task is cancelled, or raise the error that ends the replication.

        Returns once the source has handed over to this sink: the copy is then the queue of the
        new source.

            async with Sink("copy", host="127.0.0.1", port=7001) as sink:
                await sink.run_forever()
        """
        await asyncio.wait({self._started()})
        if not self._has_finished:
            raise self._failure()

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        running = self._started()
        self._awaiting += 1
        try:
            while not is_reached():
                progress = asyncio.ensure_future(self._progress.wait())
                try:
                    await asyncio.wait({progress, running}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    progress.cancel()
                if running.done() and not is_reached():
                    raise self._failure()
        finally:
            self._awaiting -= 1

    def _started(self) -> asyncio.Task[None]:
        if self._running is None:
            raise RuntimeError("the sink is not running: use it in `async with`")
        return self._running

    def _failure(self) -> BaseException:
        """Return the error that ended the replication."""
        running = self._started()
        error = None if running.cancelled() else running.exception()
        return error or ClosedError(f"the sink was closed: path={self._path}")

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port to which it connects, or on which it listens."""
        return self._connector.address if self._listener is None else self._listener.address

    async def _run(self) -> None:
        if self._listener is None:
            await self._connector.run()
            return
        try:
            while not self._failed.done() and self._is_to_go_on():
                await asyncio.wait({self._failed}, timeout=TICK_S)
        finally:
            await self._listener.close()
        if self._failed.done():
            self._failed.result()

    async def _serve(self, connection: Connection) -> None:
        """Follow a source that has connected; a source that is refused does not end the sink."""
        try:
            await self._replicate(connection)
        except ReplicationError as error:
            _log.warning("%s (waiting for a source)", error)
        except (QuireError, OSError) as error:
            if not self._failed.done():
                self._failed.set_exception(error)
                self._failed.exception()  # marks it as retrieved

    async def _replicate(self, connection: Connection) -> None:
        session = self._new_session(connection.peer)

        def notify() -> None:
            self._connector.note_progress()
            self._progress.set()
            self._progress = asyncio.Event()

        async def act() -> bool:
            await self._act(session)
            return self._has_finished

        receiving = Receiving(
            session,
            connection,
            path=self._path,
            note=lambda: self._note(session),
            notify=notify,
            is_awaited=lambda: self._awaiting > 0,
            check=self._check,
            act=act,
            is_to_act=lambda: self._is_to_act(session),
            threads=self._threads,
        )
        await receiving.run()
