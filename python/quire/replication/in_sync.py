"""The in-sync set of a source, kept beside the queue: the sinks that appends wait for."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Final

from quire._common import arguments
from quire.errors import QuireError
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.replicas import forget_beyond
from quire.replication.own_states import states_of
from quire.replication.source_session import SourceSession
from quire.replication.wire import Place

_log = logging.getLogger("quire")
_SETTLED_S: Final = 1.0
"""A sink that takes longer to catch up has new messages to catch up with by then."""


class InSyncSet:
    """
    The states of a source's sinks, in the file that all processes of the queue map.

    A sink joins once it has every message that existed when it connected or, if that took longer,
    when it last caught up. It stays a member while it is disconnected, and across restarts of the
    source, until it is forgotten or dropped.

    Args:
        queue: The source's.
        epoch: The number of the source's epoch.
        drop_after_s: Remove sinks that were disconnected this long; None: never.
        joins: Whether sinks join by catching up; if not, the caller sets the members.

    Raises:
        CorruptError: The file is damaged.
        TableLostError: The queue's directory was renamed, removed or replaced.
        WriterInUseError: Another source of the queue is running.

    """

    def __init__(
        self, queue: JournalQueue, epoch: int, drop_after_s: float | None, *, joins: bool = True
    ) -> None:
        arguments.optional(arguments.seconds)("drop_after_s", drop_after_s)
        self._queue, self._drop_after_s, self._joins = queue, drop_after_s, joins
        self._states = states_of(queue)
        self._states.lock_source()
        self._states.begin_epoch(epoch)
        forget_beyond(self._states, queue)
        self._sessions: dict[int, SourceSession] = {}
        self._joined: set[SourceSession] = set()
        self._targets: dict[SourceSession, tuple[int | None, float]] = {}
        self._away_since: dict[str, float] = {}

    def note(self, session: SourceSession) -> bool:
        """Store what a session's sink has acknowledged; return whether an append waited for it."""
        if session.reader is None:
            return False
        slot = self._slot_of(session)
        if self._sessions.get(slot) is not session:
            return False  # the sink has connected again
        sent, acknowledged = self._index(session.sent), self._index(session.acknowledged)
        time_ns = session.acknowledged_ns
        is_awaited = self._states.note(slot, sent=sent, acknowledged=acknowledged, time_ns=time_ns)
        is_to_join = self._joins and session not in self._joined
        if is_to_join and self._has_caught_up(session, acknowledged):
            self._joined.add(session)
            self._states.set_member(slot, True)  # noqa: FBT003 - positional alone
            _log.info("a sink is in sync: name=%s peer=%s", session.name, session.peer)
        self._queue._wake_sleepers()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return is_awaited

    def _slot_of(self, session: SourceSession) -> int:
        """Return the slot of a session, which is assigned at its first acknowledgement."""
        if session.slot is None:
            session.slot = slot = self._states.slot_of(session.name, session.peer)
            before = self._sessions.get(slot)
            if before is not None:
                before.supersede()
            self._sessions[slot] = session
            is_synced = session.level == "synced"
            self._states.note_connection(slot, is_connected=True, is_synced=is_synced)
            self._away_since.pop(session.name, None)
            self._targets[session] = (self._queue.last_index, time.monotonic())
            session.noted_level = session.level
        elif session.noted_level != session.level:
            session.noted_level = session.level
            is_synced = session.level == "synced"
            self._states.note_connection(session.slot, is_connected=True, is_synced=is_synced)
        return session.slot

    def _has_caught_up(self, session: SourceSession, acknowledged: int | None) -> bool:
        target, since = self._targets[session]
        if target is not None and (acknowledged is None or acknowledged < target):
            return False
        now = time.monotonic()
        if now - since < _SETTLED_S:
            return True
        target = self._queue.last_index
        self._targets[session] = (target, now)
        return target is None or (acknowledged is not None and acknowledged >= target)

    def _index(self, place: Place | None) -> int | None:
        """Return the index of the last message before a place; None before the first."""
        if place is None or place.next == 0:
            return None
        roll_cycle = self._queue.roll_cycle
        if roll_cycle.to_sequence(place.next) > 0:
            return place.next - 1
        before = [it for it in self._queue.cycles if it < roll_cycle.to_cycle(place.next)]
        for cycle in reversed(before):
            found = self._queue.end_of_cycle(cycle)
            if found is not None and found[1]:
                return roll_cycle.to_index(cycle, found[1] - 1)
        return None

    def leave(self, session: SourceSession) -> None:
        """Record that a sink has disconnected; it stays a member."""
        self._joined.discard(session)
        self._targets.pop(session, None)
        slot = session.slot
        if slot is not None and self._sessions.get(slot) is session:
            del self._sessions[slot]
            is_synced = session.level == "synced"
            self._states.note_connection(slot, is_connected=False, is_synced=is_synced)

    def tick(self) -> None:
        """Advance the time: remove sinks that were disconnected too long."""
        if self._drop_after_s is None:
            return
        now = time.monotonic()
        for name, _, is_member, is_connected, *_ in self._states.replicas():
            if not is_member or is_connected:
                self._away_since.pop(name, None)
            elif now - self._away_since.setdefault(name, now) >= self._drop_after_s:
                self._states.forget(name)
                _log.warning(
                    "a sink was away too long, and appends no longer wait for it: name=%s "
                    "drop_after_s=%s",
                    name,
                    self._drop_after_s,
                )

    def close(self) -> None:
        """Allow another source to store the states of sinks."""
        with suppress(QuireError, OSError):
            self._states.unlock_source()
