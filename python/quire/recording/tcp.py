"""Recorders of streams: connections of clients, and a pipe, file or terminal."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from functools import partial
from typing import Final, Literal, TypeAlias

from quire._common import arguments
from quire.errors import MalformedInputError
from quire.handles.base import Appender
from quire.recording.addresses import listen, show_address
from quire.recording.framing import FRAMINGS, Lines, OfClient
from quire.recording.recorder import (
    MADE_ROOM,
    MAX_BYTES,
    ClientRecorder,
    Recorder,
    log,
)
from quire.recording.waiting import Input

_DESCRIPTOR: Final = arguments.whole(0, 2**31 - 1)
_FRAMING: Final = arguments.one_of(*FRAMINGS)
_READ_BYTES: Final = 256 << 10
_NO_ACCEPT_S: Final = 1.0
"""The pause after the system failed to accept a client, as without a free descriptor."""

FramingName: TypeAlias = Literal["lines", "length"]


class TcpRecorder(ClientRecorder):
    r"""
    Listens for TCP connections, and appends the messages of all of them.

    A client that sends a message that is too long or an HTTP request, or ends its connection within
    a message, is disconnected with a line in the log ``quire``; other clients are unaffected.
    Anyone who can reach the port can append to the queue.

    Args:
        appender: Writes the messages.
        host: The address to listen on.
        port: The port; 0: a free one, which *address* has.
        framing: ``lines``: each line is a message; ``length``: four bytes, big-endian, before each
            message hold its length.
        max_bytes: The length of the longest message.
        max_clients: How many connections there may be at once. One more replaces the oldest one
            that has sent no message, or is closed if all have sent one.
        idle_timeout_s: Disconnect a client that sends nothing for this long; None: never.
        append_unfinished: Append a last line without a line end, which may have been cut off.

    Examples:
        >>> import asyncio
        >>> from quire.recording import TcpRecorder
        >>> async def record():
        ...     async with TcpRecorder(appender) as recorder:
        ...         _, writer = await asyncio.open_connection(*recorder.address)
        ...         writer.write(b"one\ntwo\n")
        ...         writer.close()
        ...         while recorder.counts.written < 2:
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
        framing: FramingName = "lines",
        max_bytes: int = MAX_BYTES,
        max_clients: int = 100,
        idle_timeout_s: float | None = None,
        append_unfinished: bool = False,
    ) -> None:
        super().__init__(appender, max_bytes, (host, port), max_clients, idle_timeout_s)
        self._make_framing = FRAMINGS[_FRAMING("framing", framing)]
        if not arguments.flag("append_unfinished", append_unfinished) and framing == "lines":
            self._make_framing = partial(Lines, needs_end=True)
        self._clients: dict[asyncio.Task[None], OfClient] = {}

    def _begin(self) -> None:
        self._socket = listen(self._asked)
        self._socket.settimeout(0)

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                while await self._waiter.readable(self._socket.fileno()):
                    try:
                        self._accept(tasks)
                    except OSError as error:
                        log.warning("cannot accept a client: reason=%s", error.strerror)
                        await self._pause()
                with suppress(OSError):  # no more clients can be accepted
                    while self._accept(tasks):  # clients that wait may have sent messages
                        pass
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_NO_ACCEPT_S):
                await self._waiter.stopped()

    def _accept(self, tasks: asyncio.TaskGroup) -> bool:
        """Serve the next client; return False if there is none, or there are too many."""
        try:
            client, address = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            return False
        if len(self._clients) >= self._max_clients and not self._make_room():
            log.warning("refused a client, there are too many: clients=%d", len(self._clients))
            client.close()
            return False
        client.settimeout(0)
        framing = OfClient(self._make_framing(self._max_bytes))
        task = tasks.create_task(self._serve(client, show_address(address), framing))
        self._clients[task] = framing
        task.add_done_callback(lambda task: self._clients.pop(task, None))
        return True

    def _make_room(self) -> bool:
        """Disconnect the oldest client that has sent no message; without one, return False."""
        silent = next((task for task, it in self._clients.items() if not it.has_message), None)
        if silent is None:
            return False
        del self._clients[silent]
        silent.cancel()
        log.warning(MADE_ROOM)
        return True

    async def _serve(self, client: socket.socket, peer: str, framing: OfClient) -> None:
        with client:
            read = partial(client.recv, _READ_BYTES)
            stream = Input(self._waiter, client.fileno(), read, self._idle_timeout_s)
            try:
                await self._write_stream(stream, framing)
            except MalformedInputError as error:
                log.warning("disconnected a client: %s peer=%s", error, peer)


class StreamRecorder(Recorder):
    r"""
    Appends the messages of a pipe, a file or a terminal, until it ends.

    Args:
        appender: Writes the messages.
        descriptor: The file descriptor to read, which is left open.
        framing: As for :class:`TcpRecorder`.
        max_bytes: The length of the longest message; a longer one ends the recording with an error.

    Examples:
        >>> import asyncio, os
        >>> from quire.recording import StreamRecorder
        >>> reader, writer = os.pipe()
        >>> _ = os.write(writer, b"one\ntwo\n")
        >>> os.close(writer)
        >>> async def record():
        ...     async with StreamRecorder(appender, reader) as recorder:
        ...         await recorder.run()
        ...     print(recorder.counts)
        >>> asyncio.run(record())
        received=2 written=2 refused=0

    """

    def __init__(
        self,
        appender: Appender,
        descriptor: int,
        *,
        framing: FramingName = "lines",
        max_bytes: int = MAX_BYTES,
    ) -> None:
        super().__init__(appender, max_bytes)
        self._descriptor = _DESCRIPTOR("descriptor", descriptor)
        self._framing = FRAMINGS[_FRAMING("framing", framing)](self._max_bytes)

    def _begin(self) -> None:
        """Do nothing: the descriptor is open."""

    def _end(self) -> None:
        """Do nothing: the descriptor stays open."""

    async def _run(self) -> None:
        read = partial(os.read, self._descriptor, _READ_BYTES)
        stream = Input(self._waiter, self._descriptor, read)
        try:
            await self._write_stream(stream, self._framing)
        except MalformedInputError as error:
            raise MalformedInputError(f"{error} {self._counts}") from error
