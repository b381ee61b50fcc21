"""The queue of a source, as used by its sessions."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from quire._native import BatchReader, BatchWriter, cycle_digest
from quire.errors import AppendLockedError, IndexOutOfRangeError, QuireError, ReplicationError
from quire.formats.journal import APPEND_LOCK
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.tailer import JournalTailer
from quire.replication import epoch_starts, layout, standing
from quire.replication.digests import CycleDigests
from quire.replication.own_folder import open_again, own_folder
from quire.replication.positions import (
    Positions,
    free_groups,
    has_kept_groups,
    positions_of,
    take_groups,
)
from quire.replication.standing import Standing
from quire.replication.wire import Cycles, Place

_log = logging.getLogger("quire")
BATCH_BYTES: Final = 256 << 10
"""The approximate size of a batch, unless a single message is longer."""


class Original:
    """
    The queue of a source.

    Args:
        queue: It, open.

    Raises:
        ReplicationError: The queue is a replica.
        TableLostError: Another directory, or none, is at the queue's path.

    Attributes:
        has_closed_groups: Whether some of its groups are closed for consumers, as in a replica.

    """

    def __init__(self, queue: JournalQueue) -> None:
        self.queue = queue
        self._digests = CycleDigests(queue)
        self.has_closed_groups = self._are_exact = False
        self.standing = self._own_standing()

    def _own_standing(self) -> Standing:
        found = _source_standing(self.queue)
        # Of a handover that failed, or was killed, on a full disk.
        self.has_closed_groups = has_kept_groups(self.queue)
        return found

    def open_groups(self, queue: JournalQueue, *, is_undone: bool = False) -> None:
        """
        Reopen the groups for consumers; a handover may have closed them.

        If that fails, `has_closed_groups` stays set, and the caller tries again.

        Args:
            queue: This queue, or another handle of it.
            is_undone: Whether a handover of this source has closed them, and no other process has
                used them since.

        """
        was_tried, self.has_closed_groups = self.has_closed_groups, True
        if not was_tried:
            self._are_exact = is_undone
        try:
            with own_folder(queue):
                free_groups(queue, is_exact=self._are_exact)
            self.has_closed_groups = False
        except (QuireError, OSError) as error:
            text = "groups stay closed after a handover that failed, until there is room"
            level = logging.DEBUG if was_tried else logging.WARNING
            _log.log(level, "%s: path=%s reason=%s", text, queue.path, error)

    def check_sink(self, features: frozenset[str], peer: str) -> None:
        """Check that a sink may have the messages."""

    def facts(self) -> dict[str, Any]:
        """Return the content of a welcome."""
        return {
            "queue": self.standing.identity,
            "epoch": self.standing.epoch,
            "first": self.queue.first_index,
            "last": self.queue.last_index,
            "layout": layout.of_queue(self.queue),
            "epochs": epoch_starts.starts_of(self.queue),
        }

    def later(self, queue: object, epoch: object) -> int | None:
        """Return the epoch that a sink has seen; None unless it is a later one of this queue."""
        found = standing.parsed(queue, epoch, "sink")
        if found is None or found.identity != self.standing.identity:
            return None
        return found.epoch if found.epoch > self.standing.epoch else None

    def positions(self, before: int) -> Positions:
        """Return the positions of readers: groups as if they had not read beyond *before*."""
        return positions_of(self.queue, before)

    def fence(self, epoch: int) -> None:
        """
        Refuse all appends for good: another queue is the source of a later epoch.

        Args:
            epoch: The later epoch: this queue follows no source of an earlier one.

        """
        with open_again(self.queue) as queue, BatchWriter(queue):
            fenced = replace(self.standing, role="sink", epoch=epoch)
            take_groups(queue)
            standing.write_of(queue, fenced)
            self.standing = fenced

    def note_acknowledged(self, place: Place) -> None:
        """Publish the position of a replica to all processes, Java's included."""
        if self.queue.roll_cycle.to_sequence(place.next) > 0:
            self.queue._note_acknowledged(place.next - 1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def digest(self, place: Place) -> bytes | None:
        """Return the digest of a cycle up to a place; None if there is no such place."""
        try:
            return cycle_digest(self.queue, place)
        except IndexOutOfRangeError:
            return None

    def cycles(self, first: int, last: int) -> Cycles:
        """Return the content of a range of cycles: takes long."""
        count, digest = self._digests.of_range(first, last)
        return Cycles(first, last, next(iter(self.queue.cycles), -1), count, digest)

    def reader(self, place: Place | None) -> Reader:
        """
        Return a reader of the batches after a place.

        Raises:
            ReplicationError: The queue has no such place.

        """
        return Reader(self.queue.tailer(on_missing="raise"), place)


class Reader:
    """Reads batches for one sink."""

    def __init__(self, tailer: JournalTailer, place: Place | None) -> None:
        self.tailer = tailer
        self._batches = BatchReader(tailer, place)

    def read(self) -> bytes | None:
        """
        Return the next batch; None if there is nothing yet.

        Raises:
            DataLossError: Messages that the sink lacks were deleted.

        """
        return self._batches.read(BATCH_BYTES)

    @property
    def end(self) -> Place:
        """Where the replica ends after the batches that were read."""
        return Place(*self._batches.end)

    def close(self) -> None:
        """Close the files."""
        self.tailer.close()


def _source_standing(queue: JournalQueue) -> Standing:
    found = standing.read_of(queue) or Standing.new()
    if found.role == "source" and queue.lock_holder(APPEND_LOCK) is not None:
        # A handover that was killed before it gave the queue away, or a promotion before its end.
        with suppress(AppendLockedError), open_again(queue) as own:
            writer = BatchWriter(own)
            try:
                epoch_starts.begin(own, found.epoch)
                free_groups(own)
            finally:
                writer.promote()
    if found.role == "sink":
        text = "this queue is a replica, and cannot be a source"
        hint = f"quire promote {queue.path} makes it a source"
        raise ReplicationError(f"{text}: path={queue.path} ({hint})")
    if found.role != "source":
        found = found.as_role("source")
        standing.write_of(queue, found)
    epoch_starts.ensure(queue, found.epoch)
    return found
