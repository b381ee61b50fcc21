"""Appending to the queue of a source over the network."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from quire._common import arguments
from quire.errors import ClosedError, ReplicationError, UnsupportedError
from quire.vanilla.replication.link import Link
from quire.vanilla.replication.wire_frames import Action, FrameReader, Mark, Marked, Run, request


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
        self._reader = FrameReader()
        self._link: Link | None = None

    async def __aenter__(self) -> Self:
        """Connect."""
        self._link = await Link.connect(self._host, self._port, self._timeout_s)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection once the source has what it was sent."""
        link, self._link = self._link, None
        if link is not None:
            await link.finish()

    async def write_bytes(self, payload: bytes) -> int:
        """
        Append a message; its index.

        Raises:
            PeerLostError: The connection was lost: whether the message was appended is not known.
            PeerSilentError: The source did not answer: whether the message was appended is not
                known.
            UnsupportedError: The source takes no messages.

        """
        async with self._turn:
            link = self._open()
            try:
                await link.send(request(Action.SUBMIT, len(payload), payload))
                return await self._answer(link)
            except UnsupportedError:
                raise
            except BaseException:
                # The answer could be taken for that of a later message.
                self._link = None
                link.close()
                raise

    async def write_bytes_unacknowledged(self, payload: bytes) -> None:
        """
        Append a message without waiting for the source; if it is lost, nothing says so.

        Raises:
            PeerLostError: The connection was lost.

        """
        async with self._turn:
            await self._open().send(request(Action.SUBMIT_NO_ACK, len(payload), payload))

    def _open(self) -> Link:
        if self._link is None:
            raise ClosedError(f"the remote appender is closed: peer={self._host}:{self._port}")
        return self._link

    async def _answer(self, link: Link) -> int:
        answers: list[Run | Marked] = []
        while not answers:
            frames = self._reader.feed(await link.read())
            answers = [it for it in frames if it != Marked(Mark.IN_SYNC, 0)]
        match answers:
            case [Marked(mark=Mark.ACK, index=index)]:
                return index
            case [Marked(mark=Mark.NACK)]:
                raise UnsupportedError(f"the source takes no messages: peer={link.peer}")
            case _:
                text = "a source answered a submitted message unexpectedly"
                raise ReplicationError(f"{text}: found={answers[0]!r:.80} peer={link.peer}")
