"""The queue of a sink, as used by its session."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

from quire._native import BatchWriter, ReplicaStates, cycle_digest
from quire.errors import (
    ClosedError,
    CorruptError,
    DivergedError,
    EncryptionError,
    IndexOutOfRangeError,
    LockHeldError,
    OldEpochError,
    ReplicationError,
    RollCycleMismatchError,
    UnsupportedError,
)
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.replicas import forget_beyond
from quire.opening.opener import open_without_key as open_queue
from quire.replication import aside, epoch_starts, layout, standing
from quire.replication.aside import PutAside
from quire.replication.digests import CycleDigests
from quire.replication.epoch_starts import EpochStarts
from quire.replication.epochs import without_source
from quire.replication.own_folder import own_folder
from quire.replication.own_states import states_of
from quire.replication.positions import KeptPositions, fit_groups, free_groups, take_groups
from quire.replication.standing import Standing
from quire.replication.synced_end import SyncedEnd
from quire.replication.wire import Place, PositionFrame
from quire.sealed.needed_files import put_needed


class Replica:
    """
    The queue of a sink: the same messages under the same indexes as at its source.

    Args:
        path: Its directory, which is created with the first connection if it does not exist.
        options: Options of :func:`quire.open`, except those that the source decides.
        refills: Whether it is the queue of a source that gets its lost messages from a replica.

    """

    def __init__(
        self, path: str | PathLike[str], options: Mapping[str, Any], *, refills: bool = False
    ) -> None:
        self.path = fspath(path)
        self._options, self.refills = dict(options), refills
        self._queue: JournalQueue | None = None
        self._writer: BatchWriter | None = None
        self._digests: CycleDigests | None = None
        self._states: ReplicaStates | None = None
        self._positions: KeptPositions | None = None
        self._epochs: EpochStarts = ()
        self._synced: SyncedEnd | None = None
        self._time_ms = 0
        self.standing = standing.read(path) if Path(path).is_dir() else None

    def join(self, facts: Mapping[str, Any]) -> None:
        """
        Become the replica of a source; create the queue if there is none.

        Raises:
            ReplicationError: The copy belongs to another queue, has messages of its own, or has
                another layout, or the source is of an older epoch.
            AppendLockedError: Another sink keeps the copy.

        """
        found = _standing_of(facts)
        self._check_epoch(found)
        shape = layout.sent_in(facts)
        if self._queue is None:
            self._queue = self._opened(shape)
        layout.check_same(self._queue, shape)
        if self._writer is None:
            if self.standing is None and self._queue.last_index is not None:
                text = "the directory holds a queue that is not a replica"
                raise ReplicationError(f"{text}: path={self.path} (give a directory of its own)")
            self._writer = self._closed(self._queue, facts.get("last"))
            aside.finish(self._queue, self._writer)
            end = self.end
            next_index = 0 if end is None else end.next
            fit_groups(self._queue, next_index)
            self._synced = SyncedEnd(self._queue, next_index)
            self._positions = KeptPositions(self._queue)
        if self.standing is not None and self.standing.role == "source":
            take_groups(self._queue)
        if found != self.standing:
            standing.write_of(self._queue, found)
            self.standing = found
        self._epochs = epoch_starts.parsed(facts.get("epochs"))

    def _closed(self, queue: JournalQueue, last: object) -> BatchWriter:
        """
        Close the queue for the appends of other processes.

        Raises:
            ReplicationError: The queue of the source has more messages than the replica.
            WriterInUseError: The source of the queue is running.

        """
        if not self.refills or self.standing is None or self.standing.role == "sink":
            return BatchWriter(queue)
        states = ReplicaStates.open_existing(self.path)
        if states is not None:
            states.lock_source()
            states.unlock_source()
        writer, own = BatchWriter(queue), queue.last_index
        if own is not None and (type(last) is not int or own > last):
            writer.promote()
            shown = None if type(last) is not int else f"{last:#x}"
            text = "this queue has more messages than the replica"
            indexes = f"last_index={own:#x} replica_last_index={shown}"
            raise ReplicationError(f"{text}: path={self.path} {indexes} (nothing was changed)")
        return writer

    def _opened(self, shape: Mapping[str, Any]) -> JournalQueue:
        """Open the queue, which is created with the layout of the source."""
        options: dict[str, Any] = layout.options_of(shape, self._options)
        try:
            queue = cast("JournalQueue", open_queue(self.path, **options))
        except (ValueError, UnsupportedError, RollCycleMismatchError) as error:
            text = "no replica can have the source's layout"
            raise ReplicationError(f"{text}: path={self.path} reason={str(error)!r}") from None
        return queue

    def _check_epoch(self, found: Standing) -> None:
        own = self.standing
        if own is None:
            return
        if found.identity != own.identity:
            text = "this is the replica of another queue"
            ids = f"queue={own.identity} source_queue={found.identity}"
            raise ReplicationError(f"{text}: path={self.path} {ids}")
        if found.epoch == own.epoch and own.role == "source" and not self.refills:
            text = "this is the source's own queue, or another source of its epoch"
            raise ReplicationError(f"{text}: path={self.path} epoch={own.epoch}")
        if found.epoch < own.epoch:
            text = "the source is of an older epoch than this replica has seen"
            epochs = f"epoch={found.epoch} own_epoch={own.epoch}"
            raise OldEpochError(f"{text}: {epochs}", own.epoch, own.identity)

    def standing_on_disk(self) -> Standing | None:
        """
        Return its standing as it is now: another process may promote it.

        Raises:
            TableLostError: The queue is open, and another directory is at its path, or none.

        """
        queue = self._queue
        if queue is not None:
            with suppress(ClosedError):  # its end is put aside, by another thread
                return standing.read_of(queue)
        return standing.read(self.path)

    @property
    def end(self) -> Place | None:
        """Where the replica ends; None if it is empty."""
        end = self._joined().end
        return None if end is None else Place(*end)

    def digest(self, place: Place) -> bytes | None:
        """Return the digest of a cycle up to a place; None if none can be read there."""
        with suppress(CorruptError):
            return None if self._queue is None else cycle_digest(self._queue, place)
        return None

    def older_digests(self) -> CycleDigests:
        """Return the digests of the replica's cycles."""
        queue = self._queue
        if queue is None:
            raise ReplicationError(f"no source was connected yet: path={self.path}")
        if self._digests is None:
            self._digests = CycleDigests(queue)
        return self._digests

    def apply(self, documents: bytes, time_ms: int) -> Place:
        """Append the documents of a batch; return where the replica ends with them."""
        writer = self._joined()
        try:
            end = Place(*writer.apply(documents, time_ms=time_ms))
        except IndexOutOfRangeError as error:
            text = "the source sent a message that this queue cannot have"
            raise ReplicationError(f"{text}: path={self.path} reason={error}") from None
        self.note_elsewhere(end)
        self._time_ms = time_ms
        return end

    def note_elsewhere(self, end: Place) -> None:
        """Let readers that wait for two machines see the source's acknowledgement, too."""
        queue = self._queue
        if queue is None or queue.roll_cycle.to_sequence(end.next) == 0:
            return
        if self._states is None:
            self._states = states_of(queue)
        self._states.note_elsewhere(end.next - 1)
        queue._wake_sleepers()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def agree(self) -> None:
        """Record that the source holds the same messages as the replica."""
        if self._queue is not None:
            epoch_starts.adopt(self._queue, self._epochs)

    def diverged(self, text: str, index: int, peer: str) -> DivergedError:
        """Return the error of a message that the source does not have, or has another of."""
        where = f"first_different_index={index:#x} path={self.path} peer={peer}"
        hint, was_same = "nothing was changed", self._was_same(index)
        if was_same:
            hint = f"the source had the same message: one of the two files was damaged; {hint}"
        return DivergedError(f"{text}: {where} ({hint})", index, was_same=was_same)

    def _was_same(self, index: int) -> bool:
        """Return whether the source had the same message, as far as this machine knows."""
        if self._queue is None:
            return False
        states = ReplicaStates.open_existing(self.path, read_only=True)
        known = None if states is None else states.elsewhere
        own = epoch_starts.starts_of(self._queue)
        is_synced = self._synced is not None and index < self._synced.next
        is_known = is_synced or (known is not None and index <= known)
        return is_known and index < epoch_starts.same_until(own, self._epochs)

    def promote(self, epoch: int) -> None:
        """Make it the source of a new epoch, which accepts appends, and close it."""
        writer, own, queue = self._joined(), self.standing, self._queue
        if own is None or queue is None:
            raise ReplicationError(f"no source was connected yet: path={self.path}")
        states = states_of(queue)
        with without_source(states):
            states.begin_epoch(epoch)
            forget_beyond(states, queue)
        epoch_starts.begin(queue, epoch)
        promoted = replace(own, epoch=epoch, role="source")
        standing.write_of(queue, promoted)
        self.standing = promoted
        free_groups(queue, is_exact=not self.refills)
        writer.promote()
        self.close()

    @property
    def has_positions_waiting(self) -> bool:
        """Whether positions of the source's readers are still to be stored."""
        return self._positions is not None and self._positions.is_waiting

    def keep_positions(self, frames: list[PositionFrame]) -> None:
        """
        Store the positions of the source's readers: may take long.

        Raises:
            TableLostError: Another directory is at the queue's path, or none.

        """
        queue, positions = self._queue, self._positions
        if queue is not None and positions is not None:
            with own_folder(queue):
                positions.keep(frames)

    def put_file(self, name: str, content: bytes) -> None:
        """
        Store a file that messages need in the directory, before those messages.

        Raises:
            ReplicationError: The directory has the wrapped keys of another queue, or those from the
                source are damaged.

        """
        self._joined()
        queue = self._queue
        if queue is None:
            return
        try:
            with own_folder(queue) as folder:
                put_needed(folder, name, content)
        except (EncryptionError, LockHeldError) as error:
            text = "the source sent a file that cannot be stored beside the messages"
            raise ReplicationError(f"{text}: path={self.path} {name=} reason={error}") from None

    def sync(self) -> None:
        """Wait until all applied messages are on the medium."""
        writer, synced = self._joined(), self._synced
        end, now_ms = writer.end, self._time_ms
        writer.sync()
        if synced is not None and end is not None:
            synced.note(Place(*end).next, now_ms)

    @property
    def queue(self) -> JournalQueue | None:
        """The queue, once a source has sent its layout."""
        return self._queue

    def split(self, place: Place) -> tuple[int, int]:
        """Return cycle and sequence of a place."""
        queue = self._queue
        if queue is None:
            raise ReplicationError(f"no source was connected yet: path={self.path}")
        return queue.roll_cycle.to_cycle(place.next), queue.roll_cycle.to_sequence(place.next)

    def index_of(self, cycle: int, sequence: int) -> int:
        """Return the index of a message."""
        if self._queue is None:
            raise ReplicationError(f"no source was connected yet: path={self.path}")
        return self._queue.roll_cycle.to_index(cycle, sequence)

    def end_of(self, cycle: int) -> Place | None:
        """Return where a cycle ends; None if its file cannot be read."""
        found = self.older_digests().of_cycle(cycle)
        is_readable = found is not None and found.is_readable
        return Place(found.next, found.metadata, is_ended=False) if found and is_readable else None

    def _joined(self) -> BatchWriter:
        if self._writer is None:
            raise ReplicationError(f"no source was connected yet: path={self.path}")
        return self._writer

    def put_aside(self, index: int) -> PutAside:
        """Put aside the messages from an index on: may take long. Join again afterwards."""
        self.close()
        return aside.put_aside(self.path, index, self._options)

    def close(self) -> None:
        """Close it. Appends are refused until the next sink runs, or it is promoted."""
        writer, queue = self._writer, self._queue
        self._writer = self._queue = self._digests = self._positions = None
        if writer is not None:
            writer.close()
        if queue is not None:
            queue.close()


def _standing_of(facts: Mapping[str, Any]) -> Standing:
    found = standing.parsed(facts.get("queue"), facts.get("epoch"), "sink")
    if found is None:
        text = "the source did not send the identity of its queue"
        found_facts = f"queue={facts.get('queue')!r} epoch={facts.get('epoch')!r}"
        raise ReplicationError(f"{text}: {found_facts}")
    return found
