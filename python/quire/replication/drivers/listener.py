"""Accepting connections: a task for each, up to a limit."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final

from quire.replication.drivers.connection import Connection

_log = logging.getLogger("quire")
_HANDSHAKE_S: Final = 5.0

Served = Callable[[Connection], Coroutine[Any, Any, None]]


class Listener:
    """
    Listens, and serves each connection in a task.

    Args:
        serve: Serves a connection, and raises nothing.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        tls: How connections are encrypted.
        limit: The most connections at once, by name: ``("max_sinks", 100)``.

    """

    def __init__(
        self,
        serve: Served,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        limit: tuple[str, int],
    ) -> None:
        self._serve = serve
        self._host, self._port, self._tls = host, port, tls
        self._limit = limit
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start listening."""
        self._server = await asyncio.start_server(
            self._accept,
            self._host,
            self._port,
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_S if self._tls else None,
        )

    def note_progress(self) -> None:
        """Note that a connection brought something: a connector gives up otherwise."""

    async def close(self) -> None:
        """Stop listening, and have the tasks end."""
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
        """The host and the port that it listens on."""
        if self._server is None:
            raise RuntimeError("nothing listens here: use it in `async with`")
        host, port, *_ = self._server.sockets[0].getsockname()
        return str(host), int(port)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        name, most = self._limit
        if self._server is None:  # closed since the system had the connection
            connection.close()
            return
        if len(self._tasks) >= most:
            _log.warning("refused a connection: peer=%s %s=%d", connection.peer, name, most)
            connection.close()
            return
        task = asyncio.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._forget(ended, connection))

    def _forget(self, task: asyncio.Task[None], connection: Connection) -> None:
        """Close the connection of a task that ended, or was cancelled before it began."""
        connection.close()
        self._tasks.remove(task)
