"""Makes a connection, and reconnects whenever it is lost."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final

from quire._common import arguments
from quire.errors import PeerLostError, PeerSilentError
from quire.replication.drivers.connection import Connection
from quire.replication.drivers.listener import Served

_log = logging.getLogger("quire")
_LONGEST: Final = 20


class Connector:
    """
    Connects to a peer that listens.

    Args:
        serve: Serves a connection until it is lost, or raises the error that ends the connector.
        host: The address of the peer.
        port: Its port.
        tls: The encryption of the connection; None for none.
        timeout_s: How long the peer may take to answer.
        reconnect_s: How long to wait before connecting again; longer after connections without
            progress.
        attempts: Give up after this many consecutive connections without progress; None: never.
        before: Called before each reconnection; returns whether to connect, or raises the error
            that ends the connector.

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        serve: Served,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        timeout_s: float,
        reconnect_s: float,
        attempts: int | None = None,
        before: Callable[[], bool] = lambda: True,
    ) -> None:
        self._serve, self._before = serve, before
        self._host, self._port, self._tls = host, port, tls
        self._timeout_s = timeout_s
        self._reconnect_s = arguments.seconds("reconnect_s", reconnect_s)
        self._attempts = attempts
        self._failed = 0  # consecutive connections without progress
        self._refused = 0  # those of them that the peer ended
        self._running: asyncio.Task[None] | None = None

    def note_progress(self) -> None:
        """Record that the connection made progress."""
        self._failed = self._refused = 0

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port to which it connects."""
        return self._host, self._port

    async def start(self) -> None:
        """Run in a task."""
        self._running = asyncio.create_task(self.run())

    async def close(self) -> None:
        """End the task."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def run(self) -> None:
        """
        Connect, and reconnect whenever the connection ends.

        Raises:
            PeerLostError: *attempts* consecutive connections failed.
            PeerSilentError: The peer did not answer the last of *attempts* connections.

        """
        while True:
            try:
                await self._serve_one()
                self._refused = min(self._refused + 1, _LONGEST)
            except (PeerLostError, PeerSilentError) as error:
                self._failed += 1
                if self._attempts is not None and self._failed >= self._attempts:
                    raise
                level = logging.WARNING if self._failed == 1 else logging.DEBUG
                _log.log(level, "%s (connecting again)", error)
            if not self._before():
                return
            await asyncio.sleep(self._reconnect_s * max(self._refused, 1))

    async def _serve_one(self) -> None:
        connection = await Connection.to(
            self._host, self._port, tls=self._tls, timeout_s=self._timeout_s
        )
        try:
            await self._serve(connection)
        finally:
            connection.close()
