"""The sink of a replication: a client that keeps a copy of what a source sends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import Any, Final, Self

from quire._common import arguments
from quire.errors import ClosedError, PeerLostError, PeerSilentError
from quire.vanilla.replication.link import Link
from quire.vanilla.replication.replica import Replica
from quire.vanilla.replication.subscription import Subscription
from quire.vanilla.replication.wire_frames import HEARTBEAT_S

_log = logging.getLogger("quire")
_MISSED_HEARTBEATS: Final = 4


class Sink:
    """
    Keeps a copy of a source's queue: the same messages with the same indexes.

    It subscribes after the last message of the copy, and again whenever the connection is lost.
    Nothing else may append to the copy; any process may read it.

    Args:
        path: The directory of the copy, which is created if it does not exist.
        host: The address of the source.
        port: Its port.
        acknowledge: Report to the source what is stored. Only Quire's sources understand it;
            Java's close the connection.
        reconnect_s: How long to wait before connecting again.
        attempts: Give up after this many connections in a row that brought nothing; None: never.
        silence_s: A connection that brings nothing for this long is lost. Sources send a heartbeat
            every 2.5 s.
        on_cycle: Called with the number of each cycle when its first messages are stored. An
            exception of it ends the replication.
        options: Those of :func:`quire.vanilla.open` for the copy. Cycles must be those of the
            source; ``synchronous=True`` acknowledges what is on the medium.

    Raises:
        LockHeldError: Another sink keeps this copy.

    Examples:
        >>> import asyncio
        >>> from quire.vanilla.replication import Sink, Source
        >>> async def replicate(queue):
        ...     async with Source(queue, heartbeat_s=0.1) as source:
        ...         async with Sink("copy", port=source.address[1], on_cycle=cycles.append) as sink:
        ...             await sink.stored(queue.last_index)
        ...             await sink.in_sync()
        ...             return sink.last_index
        >>> cycles = []
        >>> with quire.open("book", format="vanilla") as book:
        ...     _ = book.appender().write_text("hello")
        ...     asyncio.run(replicate(book)) == book.last_index, cycles == book.cycles
        (True, True)

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        path: str | PathLike[str],
        *,
        host: str = "127.0.0.1",
        port: int,
        acknowledge: bool = False,
        reconnect_s: float = 0.5,
        attempts: int | None = None,
        silence_s: float = _MISSED_HEARTBEATS * HEARTBEAT_S,
        on_cycle: Callable[[int], object] | None = None,
        **options: Any,  # noqa: ANN401 - as `quire.open` takes them
    ) -> None:
        self._host, self._port = host, port
        self._acknowledge = acknowledge
        self._reconnect_s = arguments.seconds("reconnect_s", reconnect_s)
        self._silence_s = arguments.seconds("silence_s", silence_s)
        self._attempts = attempts
        self._on_cycle = on_cycle
        self._failed = 0  # connections in a row that brought nothing
        self._in_syncs = 0
        self._progress = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._copy = Replica(path, options)
        last = self._copy.last_index
        self._cycle = -1 if last is None else self._copy.cycle_of(last)

    async def __aenter__(self) -> Self:
        """Connect, and go on in the background."""
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection and the copy; the error that ended the replication is raised."""
        await self._stop()
        if error is None and not self._started().cancelled():
            raise self._failure()

    async def close(self) -> None:
        """
        Close the connection and the copy; leaving the ``async with`` block does it too.

            await sink.close()
        """
        await self._stop()

    async def run_forever(self) -> None:
        """
        Replicate until the task is cancelled, or raise what ends the replication.

            async with Sink("copy", host="backup", port=7001) as sink:
                await sink.run_forever()
        """
        await asyncio.wait({self._started()})
        raise self._failure()

    @property
    def last_index(self) -> int | None:
        """The index of the last message of the copy; None when it has none."""
        return self._copy.last_index

    async def in_sync(self) -> None:
        """
        Wait until the source says that it has no more messages for now.

        It says so in its next heartbeat.
        """
        before = self._in_syncs
        await self._until(lambda: self._in_syncs > before)

    async def stored(self, index: int) -> None:
        """Wait until the copy has a message."""
        await self._until(lambda: self._copy.has(index))

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        running = self._started()
        while not is_reached():
            progress = asyncio.ensure_future(self._progress.wait())
            try:
                await asyncio.wait({progress, running}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                progress.cancel()
            if running.done() and not is_reached():
                raise self._failure()

    def _notify(self) -> None:
        """Wake those who wait for progress."""
        self._progress.set()
        self._progress = asyncio.Event()

    def _started(self) -> asyncio.Task[None]:
        if self._running is None:
            raise RuntimeError("the sink is not running: use it in `async with`")
        return self._running

    async def _stop(self) -> None:
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait({self._running})
        self._copy.close()

    def _failure(self) -> BaseException:
        """Return what ended the replication."""
        running = self._started()
        error = None if running.cancelled() else running.exception()
        return error or ClosedError(f"the sink was closed: path={self._copy.path}")

    async def _run(self) -> None:
        while True:
            try:
                await self._replicate()
            except (PeerLostError, PeerSilentError) as error:
                self._failed += 1
                if self._attempts is not None and self._failed >= self._attempts:
                    raise
                level = logging.WARNING if self._failed == 1 else logging.DEBUG
                _log.log(level, "%s (connecting again)", error)
            await asyncio.sleep(self._reconnect_s)

    async def _replicate(self) -> None:
        link = await Link.connect(self._host, self._port, self._silence_s)
        subscription = Subscription(link, self._copy, acknowledge=self._acknowledge)
        try:
            async for stored in subscription.run():
                self._failed = 0
                if stored is None:
                    self._in_syncs += 1
                else:
                    self._note_cycle(self._copy.cycle_of(stored))
                self._notify()
        finally:
            link.close()

    def _note_cycle(self, cycle: int) -> None:
        if cycle > self._cycle:
            self._cycle = cycle
            if self._on_cycle is not None:
                self._on_cycle(cycle)
