"""Restoring a source that lost its disk from a replica."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Final, Self

from quire.errors import NotAQueueError, PeerLostError, PeerSilentError, ReplicationError
from quire.formats.detection import CHRONICLE, refuse_others
from quire.handles.journal.queue import JournalQueue
from quire.opening.opener import open_without_key as open_queue
from quire.replication import aside, standing, wire
from quire.replication.drivers.any_source import AnySource
from quire.replication.original import Original
from quire.replication.positions import Positions, positions_of
from quire.replication.source_session import SourceSession
from quire.replication.standing import Standing
from quire.replication.succession import ClosedQueue, Handover, Succession, Successor
from quire.replication.tls import Tls, check_allowed

_MAX_SOURCES: Final = 10


class RefillSource(AnySource[SourceSession]):
    """
    Sends the messages of a replica to the source that lost them, and makes it the source again.

    The replica stays a replica and refuses appends; no sink may run for it meanwhile. The lost
    source connects as a :class:`Sink` with ``refills=True``. Once it has all messages, it begins
    the next epoch.

    Args:
        path: The replica's directory.
        host: The address to listen on.
        port: The port; 0 picks a free one, see :attr:`address`.
        tls: The certificates. Addresses beyond this machine need them.
        insecure: Listen beyond this machine without certificates.
        timeout_s: How long the source may take to confirm that it has taken over.

    Raises:
        OptionsError: *host* is beyond this machine, and neither *tls* nor *insecure* was given.
        NotAQueueError: The directory holds a queue of another format.

    Examples:
        >>> import asyncio
        >>> from quire.replication import RefillSource, Sink, Source
        >>> async def replicate(queue):
        ...     async with Source(queue) as source, Sink("copy", port=source.address[1]) as sink:
        ...         await sink.stored(queue.last_index)
        >>> async def refill():
        ...     async with RefillSource("copy") as giver:
        ...         async with Sink("new disk", port=giver.address[1], refills=True) as taker:
        ...             await giver.refilled()
        ...             return taker.promoted_epoch
        >>> with quire.open("old disk") as queue:
        ...     _ = queue.appender().write_text("hello")
        ...     asyncio.run(replicate(queue))
        >>> asyncio.run(refill())
        2
        >>> quire.open("new disk").tailer().read_text()
        'hello'

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        path: str | PathLike[str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: Tls | None = None,
        insecure: bool = False,
        timeout_s: float = 30.0,
    ) -> None:
        check_allowed(host, tls, insecure=insecure)
        refuse_others(fspath(path), "refilled", CHRONICLE)
        context = None if tls is None else tls.context(is_listening=True)
        super().__init__(fspath(path), host=host, port=port, tls=context, max_sinks=_MAX_SOURCES)
        self._timeout_s = timeout_s
        self._queue: JournalQueue | None = None
        self._closed: _ClosedReplica | None = None

    async def __aenter__(self) -> Self:
        """
        Start listening.

        Raises:
            ReplicationError: The queue is not a replica.
            AppendLockedError: A sink keeps the queue.

        """
        _check_replica(self._path)
        self._queue = queue = open_queue(self._path, create=False)
        try:
            self._original = _Remaining(queue)
            self._closed = await asyncio.to_thread(_ClosedReplica, self._original, self._timeout_s)
            return await super().__aenter__()
        except BaseException:
            self._close_queue()
            raise

    async def close(self) -> None:
        """
        Stop listening, and close the replica; leaving the ``async with`` block does it too.

            await giver.close()
        """
        await super().close()
        self._close_queue()

    def _close_queue(self) -> None:
        closed, queue = self._closed, self._queue
        self._closed = self._queue = None
        if closed is not None:
            closed.close()
        if queue is not None:
            queue.close()

    async def refilled(self) -> Successor:
        """
        Wait until a source has all messages and has begun its epoch; return the epoch.

            async with RefillSource("copy", host="10.0.0.2", port=7003, tls=tls) as giver:
                await giver.refilled()

        Raises:
            HandoverError: The source did not confirm that it has taken over.
            ClosedError: The :class:`RefillSource` was closed.

        """
        while True:
            await self._until(lambda: any(it.has_all for it in self._sessions))
            session = next(it for it in self._sessions if it.has_all)
            with suppress(PeerLostError, PeerSilentError):  # before it was given anything: again
                return await self._succession(session).run()

    def _succession(self, session: SourceSession) -> _RefillSuccession:
        is_served = self._is_served(session)
        handover = Handover(self._original, session, is_served, self._next_change, self._timeout_s)
        return _RefillSuccession(handover, self._closed)

    def _new_session(self, peer: str) -> SourceSession:
        return SourceSession(self._original, peer, time.monotonic_ns())


def _check_replica(path: str) -> None:
    found = standing.read(path)
    if found is None:
        raise NotAQueueError(f"not a replicated queue: path={path}")
    if found.role != "sink":
        text = "only a replica can refill a source, and this queue is not one"
        raise ReplicationError(f"{text}: path={path} role={found.role}")


class _Remaining(Original):
    """The messages of a source's queue that a replica has."""

    def _own_standing(self) -> Standing:
        found = standing.read_of(self.queue)
        if found is None:
            raise NotAQueueError(f"not a replicated queue: path={self.queue.path}")
        return found

    def facts(self) -> dict[str, Any]:
        """Return the content of a welcome: that of a source, and that it refills."""
        return {**super().facts(), "features": [*wire.FEATURES, wire.REFILL]}

    def positions(self, before: int) -> Positions:
        """Return the positions of the readers of the lost queue."""
        return positions_of(self.queue, before, of_source=True)

    def check_sink(self, features: frozenset[str], peer: str) -> None:
        """Refuse sinks that would follow a replica."""
        if wire.REFILL not in features:
            text = "no sink can follow a replica that refills its source"
            raise ReplicationError(f"{text}: path={self.queue.path} peer={peer}")


class _ClosedReplica(ClosedQueue):
    """A replica without a sink meanwhile."""

    def __init__(self, original: Original, timeout_s: float) -> None:
        super().__init__(original, timeout_s)
        aside.finish(self._queue, self._writer)

    def open_again(self) -> None:
        """Do nothing: it stays closed."""

    def keep_closed(self) -> None:
        """Do nothing: no sink keeps it while this runs."""

    def give_away(self) -> Standing:
        """Follow only the epoch that begins now."""
        given = replace(self._original.standing, epoch=self._original.standing.epoch + 1)
        standing.write_of(self._queue, given)
        return given


class _RefillSuccession(Succession):
    """A replica's source takes over again."""

    def __init__(self, handover: Handover, closed: ClosedQueue | None) -> None:
        super().__init__(handover)
        self._closed = closed

    def _close(self) -> ClosedQueue:
        return super()._close() if self._closed is None else self._closed
