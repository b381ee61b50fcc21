"""The source of a replication: a server that sends the messages of a queue to its sinks."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Self

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire._native import VanillaExcerpt
from quire.errors import QuireError, ReadOnlyError, TableLostError, UnsupportedError
from quire.handles.vanilla import VanillaAppender, VanillaQueue, VanillaTailer
from quire.opening.discovery import check_directory
from quire.replication.drivers.any_source import AnySource
from quire.replication.drivers.connection import Connection
from quire.vanilla.replication import wire_frames
from quire.vanilla.replication.source_session import Limits, SinkStatus, SourceSession


class Source(AnySource[SourceSession]):
    """
    Sends every message of a queue to each sink that subscribes, including new ones as they come.

    Anyone who reaches the port can read the queue: the protocol has no passwords and no encryption.
    A sink that breaks the protocol, or reads nothing, is disconnected with a line in the log
    ``quire``; the others are not affected.

    Args:
        queue: An open Vanilla Chronicle, which stays open. Any process may append to it.
        host: The address to listen on.
        port: The port; 0 picks a free one, see :attr:`address`.
        heartbeat_s: A sink gets a heartbeat after this long without a message.
        timeout_s: A sink that reads nothing, or leaves a request unfinished, for this long is
            disconnected.
        accept_submits: Whether peers may append to the queue.
        max_submit_bytes: The longest message that peers may submit.
        max_sinks: How many connections there may be at once.
        connects: Connect to the sink that listens at *host* and *port*, instead of listening.

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
        connects: bool = False,
    ) -> None:
        if not isinstance(queue, VanillaQueue):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise arguments.refusal("queue", "a VanillaQueue", queue)
        if accept_submits and queue.read_only:
            raise ReadOnlyError(
                f"accept_submits=True needs a writable queue: queue={queue.path} read_only=True"
            )
        super().__init__(queue.path, host=host, port=port, max_sinks=max_sinks, connects=connects)
        self._queue = queue
        self._limits = Limits(
            heartbeat_s=arguments.seconds("heartbeat_s", heartbeat_s),
            timeout_s=arguments.seconds("timeout_s", timeout_s),
            submit_bytes=max_submit_bytes,
        )
        self._accept_submits = accept_submits
        self._appender: VanillaAppender | None = None
        self._folder: SafeFolder | None = None

    async def __aenter__(self) -> Self:
        """Start listening."""
        self._folder = SafeFolder.at(self._queue.path)
        if self._accept_submits:
            self._appender = self._queue.appender()
        return await super().__aenter__()

    async def close(self) -> None:
        """
        Stop listening, and close every connection; leaving the ``async with`` block does it too.

            await source.close()
        """
        await super().close()
        if self._appender is not None:
            self._appender.close()
        if self._folder is not None:
            self._folder.close()

    @property
    def sinks(self) -> list[SinkStatus]:
        """The sinks that are connected, and how far each is."""
        return [session.status for session in self._sessions]

    async def acknowledged(
        self, tailer: VanillaTailer, *, sinks: int = 1
    ) -> AsyncIterator[VanillaExcerpt]:
        """
        Iterate over messages that the subscribed sinks have stored, and wait for more.

            async for excerpt in source.acknowledged(queue.tailer("risk")):
                print(excerpt.data)

        Args:
            tailer: A tailer of the queue. With a name, it resumes where it stopped.
            sinks: How many sinks must be subscribed at least; all subscribed ones must have a
                message.

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
        await self._until(lambda: self._is_stored(index, sinks))

    def _is_stored(self, index: int, sinks: int) -> bool:
        subscribed = [session for session in self._sessions if session.is_subscribed]
        for session in subscribed:
            if session.acknowledged is None:
                text = "a subscribed sink does not acknowledge what it stores"
                raise UnsupportedError(f"{text}: peer={session.status.peer}")
        have = sum(index in it.acknowledged for it in subscribed if it.acknowledged is not None)
        return have == len(subscribed) and have >= sinks

    def _new_session(self, peer: str) -> SourceSession:
        return SourceSession(
            self._queue,
            peer,
            self._limits,
            appender=self._appender,
            check=self._check_present,
            now_ns=time.monotonic_ns(),
        )

    def _check_present(self) -> None:
        """
        Check that the queue's directory is still the one at its path, and end the source if not.

        Raises:
            TableLostError: The queue's directory was renamed, removed or replaced.

        """
        if self._folder is None:
            return
        try:
            check_directory(self._queue.path, self._folder.identity)
        except TableLostError as error:
            self._end(error)
            raise

    def _note_failure(self, error: QuireError | OSError, connection: Connection) -> None:
        with suppress(TableLostError):  # whatever else cannot be read then
            self._check_present()
        super()._note_failure(error, connection)
