"""The readers and writers that still need a cycle of a queue."""

from __future__ import annotations

from typing import Final, NamedTuple

from quire._common.roll_file_names import is_compressed
from quire._native import ReplicaStates, ring_intended
from quire.errors import CorruptError, UnsupportedError
from quire.groups import lowest_needed
from quire.handles.journal.queue import JournalQueue
from quire.maintenance.pending import RING
from quire.maintenance.sink_writes import unfinished_writes
from quire.ranges.stored_positions import stored_position

SINK_WRITE: Final = "Spark write"
REPLICA: Final = "replica"
NAMED_TAILER: Final = "named tailer"
GROUP: Final = "consumer group"


class Holder(NamedTuple):
    """
    A named reader, or a group of them, that resumes where it stopped; or an unfinished write.

    Attributes:
        kind: What it is, in words.
        name: Its name.
        next: The index it reads next; of a write the first that it may have.
        cycle: The cycle of that index, which it needs with all later ones; -1: all cycles.

    """

    kind: str
    name: str
    next: int
    cycle: int

    @property
    def reason(self) -> str:
        """Why a cycle from its own on is kept."""
        if self.kind == SINK_WRITE:
            return (
                f"kept for an unfinished {SINK_WRITE}: write={self.name} next={self.next:#x}"
                " (see quire.spark.finish)"
            )
        if self.kind == REPLICA:
            return (
                f"kept for a replica that is in sync: replica={self.name} next={self.next:#x}"
                " (quire replicate forget takes it out of the in-sync set)"
            )
        word = self.kind.split()[-1]
        return f"kept for a {self.kind}: {word}={self.name} next={self.next:#x}"


def holders_of(queue: JournalQueue) -> list[Holder]:
    """
    Return the named readers of a queue, its groups and replicas, and unfinished writes of Spark.

    Those find what they have appended by their marks in the queue. The cycle that a tailer is in is
    needed even if it was read to its end, as the tailer could not know that when it is opened
    again.
    """
    found = [(NAMED_TAILER, *tailer) for tailer in queue.named_tailers()]
    found += [(GROUP, *group) for group in lowest_needed(queue.path).items()]
    found += [
        (SINK_WRITE, it.name, 0 if it.after is None else it.after + 1)
        for it in unfinished_writes(queue.path)
    ]
    found += [("ring drainer", *at) for at in _intended(queue)]
    found += [(REPLICA, *at) for at in _lacking(queue)]
    return [
        Holder(kind, name, index, stored_position(queue, index)[0]) for kind, name, index in found
    ]


def _intended(queue: JournalQueue) -> list[tuple[str, int]]:
    """
    Return where a drainer has noted what it appends.

    If it dies before it removes the messages from the ring, its successor looks for them there:
    without that cycle it would append them again.
    """
    try:
        index = ring_intended(queue.path)
    except (CorruptError, UnsupportedError, OSError):  # nobody can drain such a ring
        return []
    return [] if index is None else [(RING, index)]


def _lacking(queue: JournalQueue) -> list[tuple[str, int]]:
    """
    Return the members of the in-sync set, and what each lacks first.

    A replica goes on after its last message, which must still be there then.
    """
    states = ReplicaStates.open_existing(queue.path, read_only=True)
    if states is None:
        return []
    return [
        (name, 0 if acknowledged is None else acknowledged + 1)
        for name, _, is_member, _, _, acknowledged, _, _ in states.replicas()
        if is_member
    ]


def growth_of(queue: JournalQueue, cycle: int) -> str | None:
    """Return why a cycle could still get messages, or cannot be judged; None if it is finished."""
    if is_compressed(queue.file_for_cycle(cycle)):
        return None
    try:
        end = queue.end_of_cycle(cycle)
    except CorruptError as error:
        return f"kept as it is damaged: {error} (see `quire verify`)"
    if end is None:
        return "kept as it was never completed: Java could append (see `quire verify`)"
    if not end[2]:
        return "kept as it has no end-of-file marker: Java could append (see normalise_eofs)"
    return None


def reader_in(holders: list[Holder], cycle: int) -> str | None:
    """Return which reader still needs a cycle; None if all are in later ones."""
    return next((holder.reason for holder in holders if holder.cycle <= cycle), None)
