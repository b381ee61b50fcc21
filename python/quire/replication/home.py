"""The files of a node: the queue, its standing, and its lease."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from quire._common.file_identity import Identity, identity_at
from quire._native import BatchWriter, ReplicaStates, boot_time_ns
from quire.errors import DivergedError, ReplicationError
from quire.formats.journal import APPEND_LOCK
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.replicas import forget_beyond
from quire.opening.opener import open_without_key as open_queue
from quire.replication import aside, directory_mark, epoch_starts, standing
from quire.replication.epochs import without_source
from quire.replication.forgetting import MAILBOX, take_request
from quire.replication.own_folder import own_folder
from quire.replication.own_states import states_at
from quire.replication.positions import free_groups, take_groups
from quire.replication.standing import Standing

_log = logging.getLogger("quire")
_OVER: Final = 1
_NOTICED_NS: Final = 2_000_000_000
"""After this long, every process has noticed a new lease file."""


class Home:
    """
    The queue of a node.

    Args:
        path: Its directory, which need not exist.

    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)
        self._states: ReplicaStates | None = None
        self._made_ns = 0
        self._queue: JournalQueue | None = None
        self._folder: Identity | None = None

    @property
    def is_queue(self) -> bool:
        """Whether there is a queue already."""
        return (Path(self.path) / "metadata.cq4t").exists()

    @property
    def standing(self) -> Standing | None:
        """The queue's role in the replication; None if there is no queue."""
        return standing.read(self.path) if self.is_queue else None

    def begin(self) -> str | None:
        """Return the queue's identity, and refuse appends until there is a lease."""
        if not self.is_queue:
            return None
        found = standing.read(self.path)
        if found is None:
            found = Standing.new()
            standing.write(self.path, found)
        self.prepare()
        return found.identity

    def prepare(self) -> bool:
        """Create the lease file, once there is a queue; return whether it exists."""
        if self._states is None and self.is_queue and standing.read(self.path) is not None:
            states = states_at(self.path)
            states.set_lease_end(_OVER)
            self._states, self._made_ns = states, boot_time_ns()
        return self._states is not None

    def lacks_acknowledged(self) -> bool:
        """
        Whether the queue lacks messages that this node may have acknowledged as a sink.

        Raises:
            AppendLockedError: A sink of another process keeps the copy.

        """
        if not self.is_queue:
            return True
        states = ReplicaStates.open_existing(self.path)
        known = None if states is None else states.elsewhere
        if known is None:
            return False
        with open_queue(self.path, create=False) as queue:
            if queue.lock_holder(APPEND_LOCK) is not None:
                with BatchWriter(queue) as writer:
                    aside.finish(queue, writer)
            last = queue.last_index
        return last is None or last < known

    def marks(self) -> frozenset[str]:
        """
        Return the marks of the directory, which an older state of it does not have.

        There are none if the queue was promoted by hand.
        """
        return directory_mark.marks_at(self.path) if self.is_queue else frozenset()

    def replace_mark(self, present: str | None) -> str | None:
        """
        Replace the mark of the directory; return the new one.

        Args:
            present: The mark that counts, which is kept.

        Returns:
            None if there is no queue yet, or another directory is at the path.

        """
        if not self.is_queue:
            return None
        if self._folder is None:
            self._folder = identity_at(self.path)
        return directory_mark.replaced(self.path, present, self._folder)

    @property
    def may_lead(self) -> bool:
        """Whether every process checks the lease."""
        return self.prepare() and boot_time_ns() >= self._made_ns + _NOTICED_NS

    def extend_lease(self, end_ns: int) -> None:
        """Accept appends until a time."""
        if self._states is not None:
            self._states.set_lease_end(end_ns)

    def end_lease(self) -> None:
        """Refuse appends."""
        if self._states is not None:
            self._states.set_lease_end(_OVER)

    def begin_reign(self, epoch: int, members: frozenset[str]) -> None:
        """Become the source of an epoch; appends are still refused."""
        found = self.standing
        if found is None or self._states is None:
            raise FileNotFoundError(self.path)
        self.set_members(members)
        with open_queue(self.path, create=False) as queue:
            if queue.lock_holder(APPEND_LOCK) is not None:
                with BatchWriter(queue) as writer:
                    aside.finish(queue, writer)
            with without_source(self._states):
                self._states.begin_epoch(epoch)
                forget_beyond(self._states, queue)
            epoch_starts.begin(queue, epoch)
        standing.write(self.path, replace(found, epoch=epoch, role="source"))

    @property
    def members(self) -> frozenset[str]:
        """The nodes in the local in-sync set."""
        found = [] if self._states is None else self._states.replicas()
        return frozenset(name for name, _, is_member, *_ in found if is_member)

    def add_member(self, name: str) -> None:
        """Add a node to the local in-sync set."""
        states = self._states
        if states is not None:
            states.set_member(states.slot_of(name, "unknown"), True)  # noqa: FBT003

    def set_members(self, members: frozenset[str]) -> None:
        """Replace the members of the local in-sync set by these nodes."""
        present = self.members
        for name in members - present:
            self.add_member(name)
        for name in present - members:
            self.forget_member(name)

    def forget_member(self, name: str) -> None:
        """Remove a node from the local in-sync set."""
        if self._states is not None:
            self._states.forget(name)

    def asked_to_forget(self) -> Mapping[str, Any] | None:
        """Return the request to remove a node from the in-sync set, once."""
        with own_folder(self._opened()) as folder:
            return take_request(folder)

    def answer_forgotten(self, asked: Mapping[str, Any], reason: str | None) -> None:
        """Answer such a request: None for success, or the reason for the failure."""
        with own_folder(self._opened()) as folder:
            MAILBOX.answer(folder, asked, {} if reason is None else ReplicationError(reason))

    def _opened(self) -> JournalQueue:
        if self._queue is None:
            raise FileNotFoundError(self.path)
        return self._queue

    def opened(self) -> JournalQueue:
        """Open the queue of the source."""
        queue: JournalQueue = open_queue(self.path, create=False)
        self._queue = queue
        return queue

    @property
    def last_index(self) -> int | None:
        """The index of the last message, while the queue is open."""
        return None if self._queue is None else self._queue.last_index

    def open_appends(self, lease_end_ns: int) -> None:
        """Accept appends until the lease ends."""
        self.extend_lease(lease_end_ns)
        with open_queue(self.path, create=False) as queue:
            if queue.lock_holder(APPEND_LOCK) is not None:
                writer = BatchWriter(queue)
                free_groups(queue)
                writer.promote()

    def close_appends(self, *, is_known: bool) -> None:
        """
        Stop being the source: take the append lock, which stays locked.

        Args:
            is_known: Whether etcd knows the queue, which then becomes a sink's.

        """
        self.end_lease()
        self._queue = None
        found = self.standing
        if found is None:
            return
        with open_queue(self.path, create=False) as queue:
            is_locked = queue.lock_holder(APPEND_LOCK) is not None
            if found.role == "sink" and is_locked:
                return
            with BatchWriter(queue):
                if is_known and found.role != "sink":
                    take_groups(queue)
                    standing.write(self.path, found.as_role("sink"))

    def put_aside(self, error: DivergedError) -> None:
        """
        Put aside messages that the source does not have, unless one was acknowledged.

        Raises:
            DivergedError: An acknowledged message is missing at the source, and may be lost; or the
                source had the message that differs, and one of the two files is damaged.

        """
        if error.was_same:
            raise error
        acknowledged = None if self._states is None else self._states.acknowledged("all")
        if error.index is None or (acknowledged is not None and error.index <= acknowledged):
            text = "the source lacks messages that all nodes had acknowledged"
            raise DivergedError(f"{text}: acknowledged_index={acknowledged} {error}", error.index)
        aside.put_aside(self.path, error.index)

    def close(self) -> None:
        """Close the files; appends are refused until the next node here has a lease."""
        self.end_lease()
        self._states = None
