"""Accepts connections up to a limit, each served by a task."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final

from quire.errors import PeerLostError, PeerSilentError, ReplicationError
from quire.replication.drivers.connection import LAST_WORDS_S, Connection

_log = logging.getLogger("quire")
_HANDSHAKE_S: Final = 5.0
_MOST_UNKNOWN: Final = 32

Served = Callable[[Connection], Coroutine[Any, Any, None]]


class Listener:
    """
    Listens, and serves each connection in a task.

    Args:
        serve: Serves a connection; raises no error.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        tls: The encryption of connections; None for none.
        limit: The most connections at once, by name: ``("max_sinks", 100)``.
        refusal: The bytes to send to a peer beyond the limit; a peer then counts once it has
            connected and shown its certificate. None: a peer counts once it has identified itself.

    In addition to the peers that count, there are at most 32 connections: the oldest is closed to
    make room.

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        serve: Served,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        limit: tuple[str, int],
        refusal: bytes | None = None,
    ) -> None:
        self._serve = serve
        self._host, self._port, self._tls = host, port, tls
        self._limit, self._refusal = limit, refusal
        self._tasks: dict[asyncio.Task[None], Connection] = {}
        self._unknown: list[Connection] = []
        self._is_crowded = False
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start listening."""
        self._server = await asyncio.start_server(self._accept, self._host, self._port)

    def note_progress(self) -> None:
        """Record that a connection made progress, which matters to connectors only."""

    async def close(self) -> None:
        """Stop listening and end the tasks."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port on which it listens."""
        if self._server is None:
            raise RuntimeError("nothing listens here: use it in `async with`")
        host, port, *_ = self._server.sockets[0].getsockname()
        return str(host), int(port)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        if self._server is None:  # closed since the system accepted the connection
            connection.close()
            return
        if self._refusal is None and self._is_full:
            self._say_full(connection)
            connection.close()
            return
        if self._tls is not None:
            connection.hold()
        connection.on_known = lambda: self._check_room(connection)
        self._make_room(_MOST_UNKNOWN)
        self._unknown.append(connection)
        task = asyncio.create_task(self._admit(connection))
        self._tasks[task] = connection
        task.add_done_callback(lambda ended: self._forget(ended, connection))

    async def _admit(self, connection: Connection) -> None:
        """Serve a connection, with TLS once its peer has shown its certificate."""
        try:
            if self._tls is not None:
                await connection.secure(self._tls, _HANDSHAKE_S)
        except (PeerLostError, PeerSilentError) as error:
            _log.warning("refused a connection: %s", error)
            return
        if self._refusal is not None:
            if self._is_full:
                self._say_full(connection)
                await connection.send_last(self._refusal, LAST_WORDS_S)
                return
            connection.is_known = True
        await self._serve(connection)

    def _say_full(self, connection: Connection) -> None:
        name, most = self._limit
        _log.warning("refused a connection: peer=%s %s=%d", connection.peer, name, most)

    @property
    def _is_full(self) -> bool:
        """Whether no more peers can be served."""
        return sum(it.is_known for it in self._tasks.values()) >= self._limit[1]

    def _check_room(self, connection: Connection) -> None:
        """
        Check that a peer that has identified itself can be served.

        Raises:
            ReplicationError: The limit of peers is reached.

        """
        if self._is_full:
            name, most = self._limit
            text = "too many peers at once"
            raise ReplicationError(f"{text}: peer={connection.peer} {name}={most}")

    def _make_room(self, most: int) -> None:
        """Disconnect the oldest unidentified peer if there are too many."""
        self._unknown = [it for it in self._unknown if not it.is_known]
        if len(self._unknown) < most:
            self._is_crowded = False
            return
        oldest = self._unknown.pop(0)
        level = logging.DEBUG if self._is_crowded else logging.WARNING
        self._is_crowded = True
        text = "too many connections are unidentified; the oldest is closed"
        _log.log(level, "%s: peer=%s limit=%d", text, oldest.peer, most)
        oldest.close()

    def _forget(self, task: asyncio.Task[None], connection: Connection) -> None:
        """Close the connection of a task that ended, or was cancelled before it started."""
        connection.close()
        del self._tasks[task]
        if connection in self._unknown:
            self._unknown.remove(connection)
