"""The base of recorders of every transport."""

from __future__ import annotations

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from quire._common import arguments
from quire.errors import MalformedInputError, MessageTooLargeError
from quire.handles.base import Appender
from quire.handles.journal.appender import JournalAppender
from quire.recording.addresses import Address
from quire.recording.framing import Framing
from quire.recording.recorded_counts import Counts
from quire.recording.waiting import Input, Waiter

log = logging.getLogger("quire")

AT_LEAST_ONE = arguments.whole(1, 2**31 - 1)
_APPENDER = arguments.instance(Appender, "an appender")
_PORT = arguments.whole(0, 2**16 - 1)
MAX_BYTES = 1 << 20
"""The length of the longest message, unless the recorder is given another limit."""
MADE_ROOM = "disconnected a client that has sent no message, to make room for another"


class Recorder(ABC):
    """Appends the messages that arrive, until it is closed."""

    def __init__(self, appender: Appender, max_bytes: int) -> None:
        self._appender: Appender = _APPENDER("appender", appender)
        self._max_bytes = AT_LEAST_ONE("max_bytes", max_bytes)
        self._longest_written = 0
        self._shortest_refused = self._max_bytes + 1
        self._waiter = Waiter()
        self._counts = Counts()
        self._running: asyncio.Task[None] | None = None

    @property
    def counts(self) -> Counts:
        """The recorder's counts."""
        return self._counts

    async def __aenter__(self) -> Self:
        """Begin to record."""
        self._begin()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Append everything received by now, and end."""
        await self.close()

    async def run(self) -> None:
        """
        Record until the input ends, another task closes the recorder, or this task is cancelled.

        Raises:
            QuireError: A message could not be appended, and so no later message was.

        """
        if self._running is not None:
            await asyncio.shield(self._running)

    async def close(self) -> None:
        """Append everything received by now, and end; leaving ``async with`` does so too."""
        running, self._running = self._running, None
        if running is None:
            return
        self._waiter.stop()
        try:
            await running
        finally:
            self._end()

    @abstractmethod
    def _begin(self) -> None:
        """Open the input."""

    @abstractmethod
    async def _run(self) -> None:
        """Record until the input ends, or the recorder is stopped."""

    @abstractmethod
    def _end(self) -> None:
        """Close the input."""

    async def _write(self, messages: list[bytes]) -> None:
        """
        Append messages; refuse those that a queue cannot hold.

        A batch with a message that is too long for the queue would be appended only up to that
        message. So a message that is longer than any before is appended alone.
        """
        kept = [it for it in messages if 0 < len(it) < self._shortest_refused]
        self._counts.received += len(messages)
        self._counts.refused += len(messages) - len(kept)
        start = 0
        for place, message in enumerate(kept):
            if len(message) > self._longest_written:
                await self._append(kept[start:place])
                await self._append_longer(message)
                start = place + 1
        await self._append(kept[start:])

    async def _append_longer(self, message: bytes) -> None:
        try:
            await self._append([message])
        except MessageTooLargeError as error:
            self._counts.refused += 1
            self._shortest_refused = min(self._shortest_refused, len(message))
            log.warning("refused a message: %s", error)
        else:
            self._longest_written = max(self._longest_written, len(message))

    async def _append(self, messages: list[bytes]) -> None:
        if not messages:
            return
        if isinstance(self._appender, JournalAppender):
            await self._appender.awrite_many(messages)
        else:
            self._appender.write_many(messages)  # older formats have no write lock to wait for
        self._counts.written += len(messages)

    async def _write_stream(self, stream: Input, framing: Framing) -> None:
        """
        Append the messages of a stream.

        Raises:
            MalformedInputError: The stream is malformed or failed; earlier messages were appended.

        """
        try:
            while (chunk := await _next(stream)) is not None:
                await self._write(framing.feed(chunk) if chunk else framing.end())
                if framing.error is not None:
                    raise framing.error
                if not chunk:
                    return
                await asyncio.sleep(0)
        except MalformedInputError:
            self._count_unfinished(framing)
            raise
        self._count_unfinished(framing)

    def _count_unfinished(self, framing: Framing) -> None:
        if framing.error is not None or framing.is_within_message:
            self._counts.received += 1
            self._counts.refused += 1


class PortRecorder(Recorder):
    """A recorder that listens on a port."""

    _socket: socket.socket

    def __init__(self, appender: Appender, max_bytes: int, address: Address) -> None:
        super().__init__(appender, max_bytes)
        host, port = address
        self._asked = arguments.text("host", host), _PORT("port", port)

    @property
    def address(self) -> Address:
        """The host and port that the recorder listens on."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    def _end(self) -> None:
        self._socket.close()


class ClientRecorder(PortRecorder):
    """A recorder of several clients, none of which may be silent for too long."""

    def __init__(
        self,
        appender: Appender,
        max_bytes: int,
        address: Address,
        max_clients: int,
        idle_timeout_s: float | None,
    ) -> None:
        super().__init__(appender, max_bytes, address)
        check = arguments.optional(arguments.seconds)
        self._max_clients = AT_LEAST_ONE("max_clients", max_clients)
        self._idle_timeout_s = check("idle_timeout_s", idle_timeout_s)


async def _next(stream: Input) -> bytes | None:
    """Return the next bytes; errors here are those of the stream, not of the queue."""
    try:
        return await stream.next()
    except TimeoutError:
        raise MalformedInputError("the stream was silent for too long") from None
    except OSError as error:
        raise MalformedInputError(f"the stream failed: reason={error.strerror}") from error
