"""Closing a source's queue, and giving its epoch to a sink: nothing that was appended is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from quire._native import BatchWriter
from quire.errors import (
    HandoverError,
    PeerLostError,
    PeerSilentError,
    ReplicationError,
)
from quire.replication import standing, wire
from quire.replication.original import Original
from quire.replication.own_folder import open_again
from quire.replication.positions import free_groups, take_groups
from quire.replication.source_session import SourceSession
from quire.replication.wire import Place


class Successor(NamedTuple):
    """
    The sink that a source has handed over to.

        successor = quire.replication.handover("orders", "standby")
        print(successor.name, successor.epoch, successor.address)

    Attributes:
        name: What it calls itself.
        epoch: The number of its epoch.
        address: Host and port where it serves; None if it does not.

    """

    name: str
    epoch: int
    address: tuple[str, int] | None


class ClosedQueue:
    """
    The queue of a source while nobody may append to it, until it is opened again or given away.

    Killed meanwhile, the next source of the queue opens it again, unless it was given away.

    Args:
        original: The source's queue.

    Raises:
        AppendLockedError: Another process has closed it.

    """

    def __init__(self, original: Original) -> None:
        self._original = original
        self._queue = open_again(original.queue)
        try:
            self._writer = BatchWriter(self._queue)
        except BaseException:
            self._queue.close()
            raise

    def end(self) -> Place | None:
        """Return where the queue ends, once appends that were under way have ended: may wait."""
        self._writer.settle()
        end = self._writer.end
        return None if end is None else Place(*end)

    def open_again(self) -> None:
        """Let everybody append."""
        free_groups(self._queue)
        self._writer.promote()
        self._queue.close()

    def give_away(self) -> int:
        """Keep the queue closed for good, and return the number of its successor's epoch."""
        own = self._original.standing
        take_groups(self._queue)
        self._original.standing = replace(own, epoch=own.epoch + 1, role="sink")
        standing.write_of(self._queue, self._original.standing)
        self.close()
        return own.epoch + 1

    def close(self) -> None:
        """Let go of the files: nobody can append."""
        self._writer.close()
        self._queue.close()


@dataclass(frozen=True, slots=True)
class Handover:
    """What a source knows of the sink that is to take over."""

    original: Original
    """The source's queue."""
    session: SourceSession
    """What it says to the sink."""
    is_served: Callable[[], bool]
    """Whether the sink is still connected."""
    next_change: Callable[[], Awaitable[None]]
    """Returns when a sink has said something, or soon."""
    timeout_s: float
    """How long the sink may take for each of the two steps."""


class Succession:
    """A handover, from the side of the source."""

    def __init__(self, handover: Handover) -> None:
        self._original, self._session = handover.original, handover.session
        self._is_served, self._next_change = handover.is_served, handover.next_change
        self._timeout_s = handover.timeout_s

    async def run(self) -> Successor:
        """
        Close the queue, wait until the sink has it all, and make it the source.

        Raises:
            ReplicationError: The sink cannot take over; the queue is open again.
            HandoverError: The sink did not say that it is the source; the queue stays
                closed.

        """
        self._check()
        closed = await asyncio.to_thread(self._close)
        try:
            place = await self._drained(closed)
            await send_positions(self._original, self._session)
            epoch = await self._give_away(closed)
        except BaseException:
            if self._original.standing.role == "source":
                closed.open_again()
            raise
        return await self._confirmed(epoch, place)

    def _close(self) -> ClosedQueue:
        """Let nobody append."""
        return ClosedQueue(self._original)

    def _check(self) -> None:
        """Check that the sink can take over."""
        if wire.HANDOVER not in self._session.features:
            raise ReplicationError(f"the sink cannot take over: {self._shown}")

    async def _give_away(self, closed: ClosedQueue) -> int:
        """Stop being the source, for good; return the next epoch."""
        return await asyncio.to_thread(closed.give_away)

    @property
    def _shown(self) -> str:
        where = f"path={self._original.queue.path}"
        return f"name={self._session.name} peer={self._session.peer} {where}"

    async def _drained(self, closed: ClosedQueue) -> Place | None:
        """Wait until the sink has all, and has been heard since nobody appends."""
        closed_ns = time.monotonic_ns()
        ends = time.monotonic() + self._timeout_s
        end = await asyncio.to_thread(closed.end)
        while not _has_all(self._session, end) or self._session.heard_ns <= closed_ns:
            if not self._is_served():
                text = "the sink was lost before it had all messages; appends go on"
                raise PeerLostError(f"{text}: {self._shown}")
            if time.monotonic() >= ends:
                text = "the sink did not acknowledge all messages in time; appends go on"
                raise PeerSilentError(f"{text}: {self._shown} timeout_s={self._timeout_s}")
            await self._next_change()
        return end

    async def _confirmed(self, epoch: int, place: Place | None) -> Successor:
        """Have the sink begin the epoch, and wait until it says so."""
        await send_positions(self._original, self._session)  # its groups are closed now
        self._session.hand_over(epoch, place)
        ends = time.monotonic() + self._timeout_s
        while (found := self._session.taken_over) is None:
            if not self._is_served() or time.monotonic() >= ends:
                text = "the sink did not say that it was promoted, and this queue stays closed"
                hint = "if it was not, promote either; else have this queue follow it as a sink"
                raise HandoverError(f"{text}: {self._shown} epoch={epoch} ({hint})")
            await self._next_change()
        return Successor(self._session.name, epoch, found.address)


async def send_positions(original: Original, session: SourceSession) -> None:
    """Send a sink where the readers of the queue are."""
    before = session.sent_end
    found = await asyncio.to_thread(original.positions, before)
    session.send_positions(found, before)


def _has_all(session: SourceSession, end: Place | None) -> bool:
    found = session.acknowledged
    if found is None or end is None:
        return session.reader is not None and found is end
    return found[:2] == end[:2]
