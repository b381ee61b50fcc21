"""Appending to the queue of a source over the network."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from quire._common import arguments
from quire.errors import ClosedError, PeerSilentError, UnsupportedError
from quire.replication.drivers.connection import Connection
from quire.vanilla.replication.answers import Answers, submitted


class RemoteAppender:
    """
    Appends messages to the queue of a source that accepts them.

    Args:
        host: The address of the source.
        port: Its port.
        timeout_s: How long to wait for the source.

    Examples:
        >>> import asyncio
        >>> from quire.vanilla.replication import RemoteAppender, Source
        >>> async def append(queue):
        ...     async with Source(queue, accept_submits=True) as source:
        ...         async with RemoteAppender(port=source.address[1]) as appender:
        ...             await appender.write_bytes_unacknowledged(b"one")
        ...             return await appender.write_bytes(b"two")
        >>> with quire.open("book", format="vanilla") as book:
        ...     asyncio.run(append(book)) == book.last_index
        True

    """

    def __init__(self, *, host: str = "127.0.0.1", port: int, timeout_s: float = 10.0) -> None:
        self._host, self._port = host, port
        self._timeout_s = arguments.seconds("timeout_s", timeout_s)
        self._turn = asyncio.Lock()
        self._answers = Answers(f"{host}:{port}")
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        """Connect."""
        self._connection = await Connection.to(self._host, self._port, timeout_s=self._timeout_s)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection once the source has what it was sent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.finish(self._timeout_s)

    async def write_bytes(self, payload: bytes) -> int:
        """
        Append a message; return its index.

        Raises:
            PeerLostError: The connection was lost: whether the message was appended is not known.
            PeerSilentError: The source did not answer: whether the message was appended is not
                known.
            UnsupportedError: The source does not accept messages.

        """
        async with self._turn:
            connection = self._open()
            try:
                frame = submitted(payload, is_answered=True)
                await connection.send(frame, self._timeout_s)
                return await self._answer(connection)
            except UnsupportedError:
                raise
            except BaseException:
                # The answer could be taken for that of a later message.
                self._connection = None
                connection.close()
                raise

    async def write_bytes_unacknowledged(self, payload: bytes) -> None:
        """
        Append a message without waiting for the source; a loss is not reported.

        Raises:
            PeerLostError: The connection was lost.

        """
        async with self._turn:
            frame = submitted(payload, is_answered=False)
            await self._open().send(frame, self._timeout_s)

    def _open(self) -> Connection:
        if self._connection is None:
            raise ClosedError(f"the remote appender is closed: peer={self._host}:{self._port}")
        return self._connection

    async def _answer(self, connection: Connection) -> int:
        while data := await connection.read(self._timeout_s):
            if (index := self._answers.feed(data)) is not None:
                return index
        text = "the source did not answer"
        raise PeerSilentError(f"{text}: peer={connection.peer} timeout_s={self._timeout_s}")
