"""
Recorders of WebSocket messages (``pip install "quire[record]"``).

    async with WebSocketRecorder(appender, "127.0.0.1", 9000) as recorder:
        await recorder.run()

Peers are not trusted: compression is off, so that a small message cannot expand into a large one,
and while messages of a peer are being appended, its connection is read at most once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, Self, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedOK,
    InvalidHandshake,
    InvalidProxy,
    InvalidURI,
)
from websockets.frames import DATA_OPCODES, CloseCode, Frame
from websockets.protocol import Event
from websockets.typing import Origin

from quire._common import arguments
from quire.errors import MalformedInputError
from quire.handles.base import Appender
from quire.recording.addresses import listen, show_address, show_url
from quire.recording.recorder import (
    MADE_ROOM,
    MAX_BYTES,
    ClientRecorder,
    Recorder,
    log,
)

__all__ = ["WebSocketFeedRecorder", "WebSocketRecorder"]

CLOSE_S: Final = 5.0
"""How long a peer may take to end a connection."""

# Recorders log why a connection ended; the library would log a traceback in addition.
QUIET: Final = logging.Logger("websockets", logging.CRITICAL + 1)  # noqa: LOG001


class _Bounded(Connection):
    """
    A connection that its peer can neither keep open for ever nor use to exhaust the memory.

    Attributes:
        ready: The number of messages that were read but not taken yet.
        has_message: Whether a message was taken.

    """

    ready = 0
    has_message = False
    _ending: asyncio.TimerHandle | None = None

    async def take(self) -> bytes:
        """Return the next message, as :meth:`recv` does: without waiting if one is ready."""
        message = await self.recv()  # decodes a text message, which checks that it is UTF-8
        self.ready -= 1
        self.has_message = True
        return message.encode() if isinstance(message, str) else message

    def process_event(self, event: Event) -> None:
        """Count the messages that are complete."""
        super().process_event(event)
        if isinstance(event, Frame) and event.opcode in DATA_OPCODES and event.fin:
            self.ready += 1

    def data_received(self, data: bytes) -> None:
        """Process received bytes, and end a failed connection even if its peer does not."""
        super().data_received(data)
        if self._ending is None and self.protocol.close_expected():
            self._ending = self.loop.call_later(CLOSE_S, self.transport.abort)

    def pause_writing(self) -> None:
        """End a connection whose peer sends pings and does not read the answers."""
        super().pause_writing()
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer: the connection has ended."""
        if self._ending is not None:
            self._ending.cancel()
        super().connection_lost(exc)


class _Feed(_Bounded, ClientConnection):
    """The connection to a server."""


def _admitting(max_clients: int) -> type[ServerConnection]:
    """Return a class of connections that accepts *max_clients* at a time."""
    clients: dict[Client, None] = {}  # oldest first

    class Client(_Bounded, ServerConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            silent = next((it for it in clients if not it.has_message), None)
            if len(clients) < max_clients:
                clients[self] = None
            elif silent is None:
                log.warning("refused a client, there are too many: clients=%d", len(clients))
                self.transport.abort()
            else:
                log.warning(MADE_ROOM)
                del clients[silent]
                clients[self] = None
                silent.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            clients.pop(self, None)
            super().connection_lost(exc)

    return Client


class _MessageRecorder(Recorder):
    """Appends the messages of connections."""

    async def _write_messages(
        self, connection: _Bounded, idle_timeout_s: float | None = None
    ) -> None:
        """
        Append the messages of a connection until it is closed.

        Raises:
            MalformedInputError: A message was too long, no message arrived within the timeout, or
                the connection failed; earlier messages were appended.

        """
        while True:
            taken = list[bytes]()
            try:
                async with asyncio.timeout(idle_timeout_s):
                    taken.append(await connection.take())
                while connection.ready:
                    taken.append(await connection.take())
            except TimeoutError:
                raise MalformedInputError("the stream was silent for too long") from None
            except ConnectionClosedOK:
                return
            except ConnectionClosed as error:
                raise self._failed(error) from error
            finally:
                await self._write(taken)

    def _failed(self, error: ConnectionClosed) -> MalformedInputError:
        sent, reason = error.sent, str(error)
        if sent is None or sent.code != CloseCode.MESSAGE_TOO_BIG or error.rcvd_then_sent:
            return MalformedInputError(f"the connection failed: reason={reason!r}")
        self._counts.received += 1
        self._counts.refused += 1
        limit = self._max_bytes
        return MalformedInputError(f"a message is too long: limit={limit} reason={sent.reason!r}")


class WebSocketRecorder(_MessageRecorder, ClientRecorder):
    """
    Listens for WebSocket connections, and appends the messages of all of them.

    Text messages are appended as UTF-8, binary messages unchanged. A client that sends a message
    that is too long, or a text that is not UTF-8, is disconnected with a line in the log ``quire``;
    other clients are unaffected. Anyone who can reach the port can append to the queue, except for
    web pages whose origin is not in *origins*.

    Args:
        appender: Writes the messages.
        host: The address to listen on.
        port: The port; 0: a free one, which *address* has.
        max_bytes: The length of the longest message.
        max_clients: How many connections there may be at once. One more replaces the oldest one
            that has sent no message, or is closed if all have sent one.
        idle_timeout_s: Disconnect a client that sends nothing for this long; None: never.
        origins: Origins whose pages may connect, such as ``https://example.com``.

    Examples:
        >>> import asyncio
        >>> from quire.recording.websocket import WebSocketRecorder
        >>> from websockets.asyncio.client import connect
        >>> async def record():
        ...     async with WebSocketRecorder(appender) as recorder:
        ...         host, port = recorder.address
        ...         async with connect(f"ws://{host}:{port}", proxy=None) as client:
        ...             await client.send("one")
        ...         while not recorder.counts.written:
        ...             await asyncio.sleep(0.001)
        >>> asyncio.run(record())
        >>> tailer.read().data
        b'one'

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        appender: Appender,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        max_bytes: int = MAX_BYTES,
        max_clients: int = 100,
        idle_timeout_s: float | None = None,
        origins: Iterable[str] = (),
    ) -> None:
        super().__init__(appender, max_bytes, (host, port), max_clients, idle_timeout_s)
        self._origins = [Origin(it) for it in arguments.names("origins", origins)]
        self._error: Exception | None = None

    def _begin(self) -> None:
        self._socket = listen(self._asked)

    async def _run(self) -> None:
        async with serve(
            self._serve,
            sock=self._socket,
            origins=[None, *self._origins],
            compression=None,
            max_size=self._max_bytes,
            max_queue=0,
            # While an append waits, pongs are not read either.
            ping_timeout=None,
            close_timeout=CLOSE_S,
            logger=QUIET,
            create_connection=_admitting(self._max_clients),
        ):
            await self._waiter.stopped()
        if self._error is not None:
            raise self._error

    async def _serve(self, client: ServerConnection) -> None:
        peer = show_address(client.remote_address)
        try:
            await self._write_messages(cast("_Bounded", client), self._idle_timeout_s)
        except MalformedInputError as error:
            log.warning("disconnected a client: %s peer=%s", error, peer)

    async def _write(self, messages: list[bytes]) -> None:
        """Append messages; once a message could not be appended, append none of any client."""
        if self._error is not None:
            raise self._error
        try:
            await super()._write(messages)
        except Exception as error:
            self._error = error
            self._waiter.stop()
            raise


class WebSocketFeedRecorder(_MessageRecorder):
    """
    Connects to a WebSocket server, and appends each message that it sends.

    It ends when the server closes the connection, and does not reconnect. Text messages are
    appended as UTF-8, binary messages unchanged.

    Args:
        appender: Writes the messages.
        url: The server's URL: ``ws://...``, or ``wss://...`` with TLS, which verifies the server's
            certificate.
        max_bytes: The length of the longest message; a longer one ends the recording with an error.

    Examples:
        >>> import asyncio
        >>> from quire.recording.websocket import WebSocketFeedRecorder
        >>> from websockets.asyncio.server import serve
        >>> async def send(client):
        ...     await client.send("one")
        >>> async def record():
        ...     async with serve(send, "127.0.0.1", 0) as server:
        ...         port = server.sockets[0].getsockname()[1]
        ...         async with WebSocketFeedRecorder(appender, f"ws://127.0.0.1:{port}") as feed:
        ...             await feed.run()
        ...         print(feed.counts)
        >>> asyncio.run(record())
        received=1 written=1 refused=0

    """

    def __init__(self, appender: Appender, url: str, *, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(appender, max_bytes)
        self.url = arguments.text("url", url)

    async def __aenter__(self) -> Self:
        """
        Connect, and begin to record.

        Raises:
            ValueError: The URL is not the URL of a WebSocket.
            OSError: The connection to the server failed.

        """
        try:
            connection = await connect(
                self.url,
                compression=None,
                max_size=self._max_bytes,
                max_queue=0,
                # While an append waits, pongs are not read either.
                ping_timeout=None,
                close_timeout=CLOSE_S,
                logger=QUIET,
                create_connection=_Feed,
            )
        except InvalidURI as error:
            raise ValueError(f"invalid URL: {show_url(self.url)}") from error
        except (OSError, InvalidHandshake, InvalidProxy) as error:
            raise cannot_connect(self.url, error) from error
        self._connection = cast("_Bounded", connection)
        return await super().__aenter__()

    def _begin(self) -> None:
        """Do nothing: the connection is open."""

    def _end(self) -> None:
        """Do nothing: the connection is closed."""

    async def _run(self) -> None:
        closing = asyncio.create_task(self._close_when_stopped())
        try:
            await self._write_messages(self._connection)
        except MalformedInputError as error:
            if not self._waiter.is_stopped:
                raise MalformedInputError(f"{error} {self._counts}") from error
        finally:
            self._waiter.stop()
            await closing

    async def _close_when_stopped(self) -> None:
        await self._waiter.stopped()
        await self._connection.close()


def cannot_connect(url: str, error: Exception) -> OSError:
    """Return the error for a server that cannot be reached."""
    reason = (error.strerror if isinstance(error, OSError) else None) or repr(str(error))
    text = f"cannot connect: url={show_url(url)} reason={reason}"
    return ConnectionError(text)
