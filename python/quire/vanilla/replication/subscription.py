"""One connection of a sink: where it resumes, and what it takes from the source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise

from quire.errors import ReplicationError
from quire.vanilla.replication.link import Link
from quire.vanilla.replication.replica import Replica
from quire.vanilla.replication.wire_frames import (
    FROM_START,
    Action,
    FrameReader,
    Mark,
    Marked,
    Run,
    request,
)


class Subscription:
    """
    A connection of a sink.

    Args:
        link: The connection.
        replica: What stores the messages.
        acknowledge: Whether the source is sent what is stored.

    """

    def __init__(self, link: Link, replica: Replica, *, acknowledge: bool) -> None:
        self._link, self._replica = link, replica
        self._acknowledges = acknowledge
        self._reader = FrameReader()
        self._arrived: Iterator[Run | Marked] = iter(())

    async def run(self) -> AsyncIterator[int | None]:
        """
        Yield the index of the last message of each run that was stored; None: no more for now.

        Raises:
            PeerLostError: The connection was lost.
            PeerSilentError: The source sent nothing for too long.
            ReplicationError: The source broke the protocol, or its queue is not that of the copy.

        """
        ends = self._replica.ends()
        for end in ends or [FROM_START]:
            await self._acknowledge(end)
        start = await self._find_start(ends)
        await self._link.send(request(Action.SUBSCRIBE, start))
        await self._expect_echo(start)
        if start != FROM_START:
            yield await self._store(await self._first_run(start))
        while True:
            match await self._next():
                case Run() as run:
                    yield await self._store(run)
                case Marked(mark=Mark.IN_SYNC):
                    yield None
                case found:
                    raise self._unexpected(found, "messages")

    async def _find_start(self, ends: list[int]) -> int:
        """
        Return the message to subscribe after, which the source sends again.

        A slow writer may have appended to an earlier cycle while the connection was down: the
        source is asked whether what follows the end of each is the next cycle of the copy.
        """
        for end, following in pairwise(ends):
            await self._link.send(request(Action.QUERY, end))
            match await self._next():
                case Marked(mark=Mark.SYNC_INDEX, index=after):
                    if self._replica.cycle_of(after) < self._replica.cycle_of(following):
                        return end
                case Marked(mark=Mark.IN_SYNC):
                    pass
                case found:
                    raise self._unexpected(found, "the answer to a query")
        return ends[-1] if ends else FROM_START

    async def _expect_echo(self, start: int) -> None:
        found = await self._next()
        while found == Marked(Mark.IN_SYNC, 0):
            found = await self._next()
        if found != Marked(Mark.SYNC_INDEX, start):
            raise self._unexpected(found, f"the answer to a subscription from {start:#x}")

    async def _first_run(self, start: int) -> Run:
        """Return the run that begins with the message the copy has already."""
        found = await self._next()
        if isinstance(found, Run) and found.first == start:
            return found
        text = "the source does not have the message that the copy ends with"
        raise ReplicationError(
            f"{text}: index={start:#x} path={self._replica.path} peer={self._link.peer}"
        )

    async def _store(self, run: Run) -> int:
        if self._replica.is_synchronous:
            await asyncio.to_thread(self._replica.store, run)
        else:
            self._replica.store(run)
        await self._acknowledge(run.last)
        return run.last

    async def _acknowledge(self, index: int) -> None:
        if self._acknowledges:
            await self._link.send(request(Action.ACKNOWLEDGE, index))

    async def _next(self) -> Run | Marked:
        while True:
            for found in self._arrived:
                return found
            self._arrived = self._reader.feed(await self._link.read())

    def _unexpected(self, found: Run | Marked, expected: str) -> ReplicationError:
        shown = f"{found.mark.name} {found.index}" if isinstance(found, Marked) else "a message"
        text = "a source sent an unexpected frame"
        return ReplicationError(f"{text}: found={shown} expected={expected} peer={self._link.peer}")
