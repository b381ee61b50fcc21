"""Sending messages to a WebSocket server (``pip install "quire[record]"``)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidProxy, InvalidURI
from websockets.frames import CloseCode

from quire.recording.addresses import show_url
from quire.recording.publishing import BUFFER_BYTES, Output
from quire.recording.websocket import QUIET, cannot_connect

_CONFIRM_S: Final = 60.0
_MOST_COLLECTED: Final = 1000
_MOST_ANSWERED: Final = 1 << 20

_Call: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]


class _Connection(ClientConnection):
    """A connection to a server that cannot exhaust the memory by pings whose answers wait."""

    _answered = 0

    def data_received(self, data: bytes) -> None:
        """Process received bytes; end the connection if the server pings but does not read."""
        before = self.transport.get_write_buffer_size()
        super().data_received(data)
        added = self.transport.get_write_buffer_size() - before
        self._answered = self._answered + added if self.paused else 0
        if self._answered > _MOST_ANSWERED:
            self.transport.abort()


class WebSocketMessages(Output):
    """
    Sends each message as a WebSocket message, and buffers until there are enough or :meth:`flush`.

    Args:
        receiver: As for :class:`Output`.
        send_all: Sends messages, and waits while the server is not ready.
        text: Whether messages are sent as text instead of binary.

    """

    def __init__(
        self, receiver: str, send_all: Callable[[list[bytes]], object], *, text: bool
    ) -> None:
        super().__init__(receiver)
        self._send_all = send_all
        self._is_text = text
        self._collected = list[bytes]()
        self._bytes = 0

    def misfit(self, payload: bytes) -> str | None:
        """Return why a message cannot be text."""
        if self._is_text:
            try:
                payload.decode()
            except UnicodeDecodeError as error:
                return f"not UTF-8 at byte {error.start} (omit --text to send it as binary)"
        return None

    def send(self, payload: bytes) -> bool:
        """Buffer a message, and send the buffered messages once there are enough."""
        self._collected.append(payload)
        self._bytes += len(payload)
        if self._bytes < BUFFER_BYTES and len(self._collected) < _MOST_COLLECTED:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """
        Send buffered messages.

        Raises:
            OSError: The connection has ended.

        """
        messages, self._collected, self._bytes = self._collected, [], 0
        if messages:
            try:
                self._send_all(messages)
            except ConnectionClosed as error:
                raise ConnectionError(repr(str(error))) from error


@contextmanager
def websocket(url: str, *, text: bool) -> Generator[WebSocketMessages]:
    """
    Connect to a server, which has to confirm at the end that it has read everything.

    Raises:
        ValueError: The URL is not the URL of a WebSocket.
        OSError: The connection to the server failed, or the server did not confirm.

    """
    receiver = f"url={show_url(url)}"
    with _beside() as call, _connected(url, call) as connection:

        async def send_all(messages: list[bytes]) -> None:
            for message in messages:
                await connection.send(message, text=text)

        yield WebSocketMessages(receiver, lambda messages: call(send_all(messages)), text=text)
        call(connection.close())
    code, ended = connection.close_code, connection.protocol
    if code != CloseCode.NORMAL_CLOSURE or ended.close_rcvd_then_sent is not False:
        reason = connection.close_reason
        wrong = f"the server may have missed messages: {receiver} code={code} reason={reason!r}"
        raise ConnectionError(wrong)


@contextmanager
def _beside() -> Generator[_Call]:
    """
    Yield a function that runs a coroutine in an event loop of another thread.

    The loop answers pings, and reads what the server sends, while this thread waits for messages.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def call(coroutine: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - what it returns
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    try:
        yield call
    finally:
        call(_end_calls())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_calls() -> None:
    """End calls that were interrupted."""
    calls = asyncio.all_tasks() - {asyncio.current_task()}
    for each in calls:
        each.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


@contextmanager
def _connected(url: str, call: _Call) -> Generator[ClientConnection]:
    try:
        connection, answers = call(_connect(url))
    except InvalidURI as error:
        raise ValueError(f"invalid URL: {show_url(url)}") from error
    except (OSError, InvalidHandshake, InvalidProxy) as error:
        raise cannot_connect(url, error) from error
    try:
        yield connection
    finally:
        call(_end(connection, answers))


async def _connect(url: str) -> tuple[ClientConnection, asyncio.Task[None]]:
    connection = await connect(
        url,
        compression=None,
        # A server that does not read for a while does not send pongs either.
        ping_timeout=None,
        close_timeout=_CONFIRM_S,
        logger=QUIET,
        create_connection=_Connection,
    )
    return connection, asyncio.create_task(_drop_answers(connection))


async def _end(connection: ClientConnection, answers: asyncio.Task[None]) -> None:
    """End a connection, even if the server does not read a message."""
    connection.transport.abort()
    await connection.wait_closed()
    await answers


async def _drop_answers(connection: ClientConnection) -> None:
    """Read what the server sends: a server whose messages are not read may stop reading."""
    with suppress(ConnectionClosed):
        while True:
            await connection.recv(decode=False)
