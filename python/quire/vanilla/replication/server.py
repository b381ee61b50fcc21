"""The source of a replication: a server that sends the messages of a queue to its sinks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from quire._common import arguments
from quire._native import VanillaExcerpt
from quire.errors import (
    PeerLostError,
    QuireError,
    ReadOnlyError,
    ReplicationError,
    UnsupportedError,
)
from quire.handles.vanilla import VanillaAppender, VanillaQueue, VanillaTailer
from quire.vanilla.replication import wire_frames
from quire.vanilla.replication.link import Link
from quire.vanilla.replication.session import Session, SinkStatus

_log = logging.getLogger("quire")


class Source:
    """
    Sends every message of a queue to each sink that subscribes, and goes on as messages come.

    Anyone who reaches the port reads the queue: the protocol has no passwords and no encryption.
    A sink that breaks the protocol, or takes nothing, is disconnected with a line in the log
    ``quire``; the others do not notice.

    Args:
        queue: An open Vanilla Chronicle, which stays open. Any process may append to it.
        host: The address to listen on.
        port: The port; 0 takes a free one, see :attr:`address`.
        heartbeat_s: After this long without a message, a sink gets a heartbeat.
        timeout_s: A sink is disconnected that takes nothing, or leaves a request unfinished, for
            this long.
        accept_submits: Whether peers may append to the queue.
        max_submit_bytes: The longest message that they may submit.
        max_sinks: How many connections there may be at once.

    Raises:
        ReadOnlyError: ``accept_submits=True`` and the queue was opened read-only.

    Examples:
        >>> import asyncio
        >>> from quire.vanilla.replication import Sink, Source
        >>> async def replicate(queue):
        ...     async with Source(queue) as source:
        ...         host, port = source.address
        ...         async with Sink("copy", port=port, acknowledge=True) as sink:
        ...             await source.stored(queue.last_index)
        ...             for each in source.sinks:
        ...                 print(each.sent_index == each.acknowledged_index == sink.last_index)
        >>> with quire.open("book", format="vanilla") as book:
        ...     _ = book.appender().write_text("hello")
        ...     asyncio.run(replicate(book))
        True

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        queue: VanillaQueue,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        heartbeat_s: float = wire_frames.HEARTBEAT_S,
        timeout_s: float = 30.0,
        accept_submits: bool = False,
        max_submit_bytes: int = 16 << 20,
        max_sinks: int = 100,
    ) -> None:
        if not isinstance(queue, VanillaQueue):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise arguments.refusal("queue", "a VanillaQueue", queue)
        if accept_submits and queue.read_only:
            raise ReadOnlyError(f"accept_submits=True writes: queue={queue.path} read_only=True")
        self._queue = queue
        self._host, self._port = host, port
        self._heartbeat_s = arguments.seconds("heartbeat_s", heartbeat_s)
        self._timeout_s = arguments.seconds("timeout_s", timeout_s)
        self._accept_submits = accept_submits
        self._max_submit_bytes, self._max_sinks = max_submit_bytes, max_sinks
        self._appender: VanillaAppender | None = None
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Start listening."""
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        if self._accept_submits:
            self._appender = self._queue.appender()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening, and close every connection."""
        await self.close()

    async def close(self) -> None:
        """
        Stop listening, and close every connection; leaving the ``async with`` block does it too.

            await source.close()
        """
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        tasks = [*self._sessions]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
        if self._appender is not None:
            self._appender.close()

    async def run_forever(self) -> None:
        """
        Serve until the task is cancelled.

            async with Source(queue, host="0.0.0.0", port=7001) as source:
                await source.run_forever()
        """
        await self._listening().serve_forever()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that it listens on."""
        host, port, *_ = self._listening().sockets[0].getsockname()
        return str(host), int(port)

    @property
    def sinks(self) -> list[SinkStatus]:
        """The sinks that are connected, and how far each is."""
        return [session.status for session in self._sessions.values()]

    async def acknowledged(
        self, tailer: VanillaTailer, *, sinks: int = 1
    ) -> AsyncIterator[VanillaExcerpt]:
        """
        Iterate over messages that the subscribed sinks have stored, and wait for more.

            async for excerpt in source.acknowledged(queue.tailer("risk")):
                print(excerpt.data)

        Args:
            tailer: A tailer of the queue. With a name, it resumes where it stopped.
            sinks: How many sinks must be subscribed; all that are must have a message.

        Raises:
            UnsupportedError: A subscribed sink does not acknowledge. Java's never do.

        """
        async for excerpt in tailer:
            await self.stored(excerpt.index, sinks=sinks)
            yield excerpt

    async def stored(self, index: int, *, sinks: int = 1) -> None:
        """
        Wait until all subscribed sinks, and at least this many, have stored a message.

            await source.stored(appender.write_bytes(b"an order"))

        Raises:
            UnsupportedError: A subscribed sink does not acknowledge. Java's never do.

        """
        while not self._is_stored(index, sinks):
            await self._changed.wait()

    def _is_stored(self, index: int, sinks: int) -> bool:
        subscribed = [session for session in self._sessions.values() if session.is_subscribed]
        for session in subscribed:
            if session.acknowledged is None:
                text = "a subscribed sink does not acknowledge what it stores"
                raise UnsupportedError(f"{text}: peer={session.status.peer}")
        have = sum(index in it.acknowledged for it in subscribed if it.acknowledged is not None)
        return have == len(subscribed) and have >= sinks

    def _notify(self) -> None:
        """Wake those who wait for what sinks have stored."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _listening(self) -> asyncio.Server:
        if self._server is None:
            raise RuntimeError("the source does not listen: use it in `async with`")
        return self._server

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(reader, writer, self._timeout_s)
        if self._server is None:  # closed since the system had the connection
            link.close()
            return
        if len(self._sessions) >= self._max_sinks:
            _log.warning("refused a sink: peer=%s max_sinks=%d", link.peer, self._max_sinks)
            link.close()
            return
        session = Session(
            self._queue,
            link,
            appender=self._appender,
            submit_limit=self._max_submit_bytes,
            heartbeat_s=self._heartbeat_s,
            changed=self._notify,
        )
        task = asyncio.create_task(self._serve(session, link))
        self._sessions[task] = session
        task.add_done_callback(lambda ended: self._forget(ended, link))

    def _forget(self, task: asyncio.Task[None], link: Link) -> None:
        """Close the connection of a session that ended, or was cancelled before it began."""
        link.close()
        del self._sessions[task]
        self._notify()

    async def _serve(self, session: Session, link: Link) -> None:
        try:
            await session.run()
        except* PeerLostError as lost:
            _log.info("%s", lost.exceptions[0])
        except* ReplicationError as wrong:
            _log.warning("disconnected a sink: %s", wrong.exceptions[0])
        except* (QuireError, OSError) as failed:
            error = failed.exceptions[0]
            _log.error("disconnected a sink: %s peer=%s", error, link.peer, exc_info=error)
