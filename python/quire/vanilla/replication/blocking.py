"""Appending to the queue of a source over the network, without an event loop."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Lock
from types import TracebackType
from typing import Final, Self

from quire._common import arguments
from quire.errors import ClosedError, PeerLostError, PeerSilentError, UnsupportedError
from quire.vanilla.replication.answers import Answers, submitted

_READ_BYTES: Final = 64 << 10


class BlockingRemoteAppender:
    """
    Appends messages to the queue of a source that accepts them, and waits for each answer.

    Threads may share it: their messages are sent one after the other.

    Args:
        host: The address of the source.
        port: Its port.
        timeout_s: How long to wait for the source.

    Raises:
        PeerLostError: No process listens at the address.
        PeerSilentError: The source does not answer.

    Examples:
        >>> import asyncio
        >>> from quire.vanilla.replication import BlockingRemoteAppender, Source
        >>> def append(port):
        ...     with BlockingRemoteAppender(port=port) as appender:
        ...         appender.write_bytes_unacknowledged(b"one")
        ...         return appender.write_bytes(b"two")
        >>> async def serve(queue):
        ...     async with Source(queue, accept_submits=True) as source:
        ...         return await asyncio.to_thread(append, source.address[1])
        >>> with quire.open("book", format="vanilla") as book:
        ...     asyncio.run(serve(book)) == book.last_index
        True

    """

    def __init__(self, *, host: str = "127.0.0.1", port: int, timeout_s: float = 10.0) -> None:
        self._peer = f"{host}:{port}"
        self._timeout_s = arguments.seconds("timeout_s", timeout_s)
        self._turn = Lock()
        self._answers = Answers(self._peer)
        self._socket: socket.socket | None = None
        with self._failures():
            connection = socket.create_connection((host, port), timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection

    def __enter__(self) -> Self:
        """Return the appender."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """
        Close the connection once the source has what it was sent.

            appender.close()
        """
        with self._turn:
            connection, self._socket = self._socket, None
            if connection is None:
                return
            with connection, suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(_READ_BYTES):  # heartbeats, until the source has all
                    pass

    def write_bytes(self, payload: bytes) -> int:
        """
        Append a message; return its index.

        Raises:
            PeerLostError: The connection was lost: whether the message was appended is not known.
            PeerSilentError: The source did not answer: whether the message was appended is not
                known.
            UnsupportedError: The source does not accept messages.

        """
        with self._turn:
            connection = self._open()
            try:
                with self._failures():
                    return self._exchange(connection, submitted(payload, is_answered=True))
            except UnsupportedError:
                raise
            except BaseException:
                # The answer could be taken for that of a later message.
                self._socket = None
                connection.close()
                raise

    def write_bytes_unacknowledged(self, payload: bytes) -> None:
        """
        Append a message without waiting for the source; a loss is not reported.

        Raises:
            PeerLostError: The connection was lost.

        """
        with self._turn, self._failures():
            self._open().sendall(submitted(payload, is_answered=False))

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise ClosedError(f"the remote appender is closed: peer={self._peer}")
        return self._socket

    def _exchange(self, connection: socket.socket, frame: bytes) -> int:
        ends = time.monotonic() + self._timeout_s
        connection.settimeout(self._timeout_s)
        connection.sendall(frame)
        while True:
            # Heartbeats are no answer: time goes on while they come.
            connection.settimeout(max(ends - time.monotonic(), 1e-3))
            if not (data := connection.recv(_READ_BYTES)):
                raise PeerLostError(f"the peer closed the connection: peer={self._peer}")
            if (index := self._answers.feed(data)) is not None:
                return index

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except TimeoutError:
            text = "the source did not answer"
            raise PeerSilentError(
                f"{text}: peer={self._peer} timeout_s={self._timeout_s}"
            ) from None
        except OSError as error:
            raise PeerLostError(
                f"the connection failed: peer={self._peer} reason={error}"
            ) from None
