"""Closing a source's queue, and passing its epoch to a sink without losing a message."""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from quire._native import BatchWriter
from quire.errors import (
    HandoverError,
    LockTimeoutError,
    PeerLostError,
    PeerSilentError,
    ReplicationError,
)
from quire.replication import standing, wire
from quire.replication.original import Original
from quire.replication.own_folder import open_again, own_folder
from quire.replication.positions import take_groups
from quire.replication.source_session import SourceSession
from quire.replication.standing import Standing
from quire.replication.tls import is_any_host
from quire.replication.unbroken import in_thread, result_of, until_end
from quire.replication.wire import Place

_LOCK_WAIT: Final = 1.5
"""How many timeouts of a queue the write lock is waited for."""


class Successor(NamedTuple):
    """
    The sink that a source has handed over to.

        successor = quire.replication.handover("orders", "standby")
        print(successor.name, successor.epoch, successor.address)

    Attributes:
        name: The sink's name.
        epoch: The number of its epoch.
        address: The host and port at which it serves; None if it does not.

    """

    name: str
    epoch: int
    address: tuple[str, int] | None


class ClosedQueue:
    """
    The queue of a source while it refuses appends, until it is opened again or given away.

    If the process is killed meanwhile, the next source of the queue opens it again, unless it was
    given away.

    Args:
        original: The source's queue.
        timeout_s: How long appends that are under way may take.

    Raises:
        AppendLockedError: Another process has closed the queue to appends.

    """

    def __init__(self, original: Original, timeout_s: float) -> None:
        self._original = original
        self._given: Standing | None = None
        self._queue = open_again(original.queue, timeout_s=timeout_s / _LOCK_WAIT)
        try:
            self._writer = BatchWriter(self._queue)
        except BaseException:
            self._queue.close()
            raise

    def end(self) -> Place | None:
        """
        Return where the queue ends, once appends in progress have ended: may wait.

        Raises:
            LockTimeoutError: An append did not end in time.

        """
        self._writer.settle()
        end = self._writer.end
        return None if end is None else Place(*end)

    def open_again(self) -> None:
        """
        Accept appends again, even after it was given away, as long as no peer has learned of it.

        Raises:
            OSError: The file of the queue's standing cannot be written back: the queue stays
                closed.
            ReplicationError: Another process has promoted the queue.
            AppendLockedError: The append lock was taken away.
            The append lock was taken away.

        """
        try:
            self._take_back()
            try:
                self._original.open_groups(self._queue, is_undone=True)
            finally:
                self._writer.promote()
        finally:
            self.close()

    def _take_back(self) -> None:
        """Restore the file that names this queue as the source."""
        own, given = self._original.standing, self._given
        found = own if given is None else standing.read_of(self._queue)
        if found == given:
            standing.write_of(self._queue, own)
        elif found != own:
            text = "the queue was promoted during its handover"
            raise ReplicationError(f"{text}: path={self._original.queue.path}")

    def give_away(self) -> Standing:
        """
        Record in the file that the queue is a sink's, of the next epoch; return the record.

        The queue stays closed. The caller assigns the record to the original.
        """
        own = self._original.standing
        with own_folder(self._queue):
            take_groups(self._queue)
        self._given = replace(own, epoch=own.epoch + 1, role="sink")
        standing.write_of(self._queue, self._given)
        return self._given

    def keep_closed(self) -> None:
        """Close the queue that was given away."""
        self.close()

    def close(self) -> None:
        """Close the files: appends stay refused."""
        self._writer.close()
        self._queue.close()


@dataclass(frozen=True, slots=True)
class Handover:
    """The source's view of the sink that will take over."""

    original: Original
    """The source's queue."""
    session: SourceSession
    """The session with the sink."""
    is_served: Callable[[], bool]
    """Whether the sink is still connected."""
    next_change: Callable[[], Awaitable[None]]
    """Returns when a sink has sent something, or soon."""
    timeout_s: float
    """How long appends and the sink may take for each of the two steps."""


class Succession:
    """
    A handover, from the side of the source.

    Attributes:
        failure: Why the queue stays closed; None if it was not given away, or if that was undone.
            The source ends with this error.

    """

    def __init__(self, handover: Handover) -> None:
        self._original, self._session = handover.original, handover.session
        self._is_served, self._next_change = handover.is_served, handover.next_change
        self._timeout_s = handover.timeout_s
        self._may_undo = True
        self.failure: HandoverError | None = None

    async def run(self) -> Successor:
        """
        Close the queue, wait until the sink has all messages, and make it the source.

        If this fails or is cancelled before the sink takes over, the queue is opened again.

        Raises:
            ReplicationError: The sink cannot take over; the queue is open again.
            HandoverError: The sink did not confirm that it is the source, or the queue cannot be
                opened again; it stays closed.

        """
        self._check()
        closing = in_thread(self._close)
        try:
            closed = await result_of(closing)
            place = await self._drained(closed)
            await send_positions(self._original, self._session)
            given = await self._give_away(closed)
        except (Exception, CancelledError) as error:
            if closing.exception() is None:
                await self._undo(closing.result(), error)
            raise
        self._original.standing = given
        try:
            await result_of(in_thread(closed.keep_closed))
            return await self._confirmed(given.epoch, place)
        except HandoverError as error:
            self.failure = error
            raise
        except (Exception, CancelledError) as error:
            text = "it is not known whether the sink was promoted"
            self.failure = self._unconfirmed(text, given.epoch)
            _raise_instead(self.failure, error)
            raise

    def _close(self) -> ClosedQueue:
        """Refuse appends."""
        return ClosedQueue(self._original, self._timeout_s)

    def _check(self) -> None:
        """Check that the sink can take over."""
        if wire.HANDOVER not in self._session.features:
            raise ReplicationError(f"the sink cannot take over: {self._shown}")

    async def _give_away(self, closed: ClosedQueue) -> Standing:
        """Stop being the source, which can be undone; return the queue's new role."""
        return await result_of(in_thread(closed.give_away))

    async def _undo(self, closed: ClosedQueue, error: BaseException) -> None:
        """
        Open the queue again.

        Raises:
            HandoverError: The queue cannot be opened again.

        """
        opening = in_thread(closed.open_again if self._may_undo else closed.close)
        try:
            await until_end(opening)
        finally:
            why = opening.exception()
            if why is not None or not self._may_undo:
                text = "the handover failed, and this queue stays closed"
                reasons = f"reason={error!r}" + ("" if why is None else f" then={why!r}")
                self.failure = HandoverError(f"{text}: {self._shown} {reasons}{self._hint}")
        if self.failure is not None:
            _raise_instead(self.failure, error)

    @property
    def _hint(self) -> str:
        return f" (quire promote {self._original.queue.path} opens it)"

    def _unconfirmed(self, text: str, epoch: int) -> HandoverError:
        hint = "if it was not, promote either; otherwise let this queue follow it as a sink"
        text = f"{text}, and this queue stays closed"
        return HandoverError(f"{text}: {self._shown} epoch={epoch} ({hint})")

    @property
    def _shown(self) -> str:
        where = f"path={self._original.queue.path}"
        return f"name={self._session.name} peer={self._session.peer} {where}"

    async def _drained(self, closed: ClosedQueue) -> Place | None:
        """Wait until the sink has all messages, and was heard after appends were closed."""
        closed_ns = time.monotonic_ns()
        ends = time.monotonic() + self._timeout_s
        try:
            end = await result_of(in_thread(closed.end))
        except LockTimeoutError as error:
            text = "an append that was under way did not end in time; appends continue"
            shown = f"{self._shown} timeout_s={self._timeout_s} reason={error}"
            raise ReplicationError(f"{text}: {shown}") from error
        while not _has_all(self._session, end) or self._session.heard_ns <= closed_ns:
            if not self._is_served():
                text = "the sink was lost before it had all messages; appends continue"
                raise PeerLostError(f"{text}: {self._shown}")
            if time.monotonic() >= ends:
                text = "the sink did not acknowledge all messages in time; appends continue"
                raise PeerSilentError(f"{text}: {self._shown} timeout_s={self._timeout_s}")
            await self._next_change()
        return end

    async def _confirmed(self, epoch: int, place: Place | None) -> Successor:
        """Let the sink begin the epoch, and wait for its confirmation."""
        await send_positions(self._original, self._session)  # its groups are closed now
        self._session.hand_over(epoch, place)
        ends = time.monotonic() + self._timeout_s
        while (found := self._session.taken_over) is None:
            if not self._is_served() or time.monotonic() >= ends:
                raise self._unconfirmed("the sink did not say that it was promoted", epoch)
            await self._next_change()
        return Successor(self._session.name, epoch, _reached(found.address, self._session.peer))


async def send_positions(original: Original, session: SourceSession) -> None:
    """Send a sink the positions of the queue's readers."""
    before = session.sent_end
    found = await result_of(in_thread(original.positions, before))
    session.send_positions(found, before)


def _has_all(session: SourceSession, end: Place | None) -> bool:
    found = session.acknowledged
    if found is None or end is None:
        return session.reader is not None and found is end
    return found[:2] == end[:2]


def _reached(address: tuple[str, int] | None, peer: str) -> tuple[str, int] | None:
    """Return a sink's address, as its source reaches it: it may listen on all addresses."""
    if address is None or not is_any_host(address[0]):
        return address
    return peer.rpartition(":")[0].strip("[]"), address[1]


def _raise_instead(failure: HandoverError, error: BaseException) -> None:
    """Raise the outcome of a handover instead of its cause, unless its task was cancelled."""
    if isinstance(error, Exception):
        raise failure from error
