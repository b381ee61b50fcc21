"""A sink's side of one connection."""

from __future__ import annotations

import logging
import struct
from collections.abc import Mapping
from typing import Any, Final

from quire._native import StreamDecompressor
from quire.errors import OldEpochError, ReplicationError
from quire.replication import wire
from quire.replication.cycle_search import CycleSearch, DiffersIn, LacksBefore, Range, Same
from quire.replication.replica import Replica
from quire.replication.session import Session
from quire.replication.wire import Frame, Kind, Place

_log = logging.getLogger("quire")
_BATCH_HEAD: Final = struct.Struct("<qIII")
STORED: Final = "stored"
SYNCED: Final = "synced"
_EXPECTED: Final = frozenset(
    {
        *(
            Kind.WELCOME,
            Kind.REFUSAL,
            Kind.DIGEST,
            Kind.CYCLES,
            Kind.BATCH,
            Kind.COMPRESSED_BATCH,
            Kind.HEARTBEAT,
            Kind.END,
        ),
        *(Kind.HANDOVER, Kind.TAILER, Kind.GROUP, Kind.GROUPS, Kind.TAILERS, Kind.FILE),
    }
)


class SinkSession(Session):
    """
    The sink's side of a connection, without the socket.

    Args:
        replica: The sink's queue.
        name: The sink's name.
        peer: The source's address, for errors.
        level: Which messages it acknowledges: ``"stored"`` or only ``"synced"`` ones.
        now_ns: The time, of a clock that is never set back.
        address: The address at which it will serve after a promotion; None: nowhere.
        takes_over: Whether the source may hand over to it.

    """

    def __init__(  # noqa: PLR0913 - what it says
        self,
        replica: Replica,
        *,
        name: str,
        peer: str,
        level: str,
        now_ns: int,
        address: str | None = None,
        takes_over: bool = True,
    ) -> None:
        super().__init__("source", peer, _EXPECTED, now_ns)
        self._replica, self._level = replica, level
        self._takes_over = takes_over
        facts: dict[str, Any] = {"name": name}
        if address is not None:
            facts["address"] = address
        if not takes_over:
            facts["features"] = [it for it in wire.FEATURES if it != wire.HANDOVER]
        if replica.refills:
            facts["features"] = [*wire.FEATURES, wire.REFILL]
        self._out.append(wire.facts(Kind.GREETING, facts))
        self._search: _Search | None = None
        self._cycle_search: CycleSearch | None = None
        self._facts: Mapping[str, Any] = {}
        self.lacks: int | None = None
        self._unacknowledged: tuple[int, Place] | None = None
        self.is_started = self._is_welcome = False
        self.stored: Place | None = None
        self.has_ended = self._is_older = False
        self.handed_over: wire.HandedOver | None = None
        self._positions = list[wire.PositionFrame]()
        self._decompressor: StreamDecompressor | None = None

    @property
    def progress(self) -> Place | None:
        """Where the replica ends."""
        return self.stored

    def outgoing(self) -> bytes:
        """Return the bytes to send; each byte is returned once."""
        if self._level == STORED:
            self._acknowledge()
        return super().outgoing()

    @property
    def takes_long(self) -> bool:
        """Whether digests are compared."""
        return not self.is_started

    @property
    def awaits_action(self) -> bool:
        """Whether the source has handed over, or has sent positions of its readers."""
        return self.handed_over is not None or bool(self._positions)

    @property
    def awaits_sync(self) -> bool:
        """Whether :meth:`sync` is due before stored messages can be acknowledged."""
        return self._level == SYNCED and self._unacknowledged is not None

    def sync(self) -> None:
        """Sync the stored messages, and acknowledge them: may take long."""
        self._replica.sync()
        self._acknowledge()

    def _acknowledge(self) -> None:
        if self._unacknowledged is not None:
            time_ns, place = self._unacknowledged
            self._out.append(wire.acknowledgement(time_ns, place, self._level))
            self._unacknowledged = None

    def _take(self, frame: Frame) -> None:
        match frame:
            case wire.Facts(_, facts) if not self._is_welcome:
                self._is_welcome = True
                self._join(facts)
            case wire.Refused(code, reason):
                raise _refusal(code, reason, self.peer)
            case wire.Cycles() if self._cycle_search is not None and self._search is None:
                self._take_cycles(self._cycle_search, frame)
            case wire.Digest(place, digest) if self._search is not None and self.lacks is None:
                self._compare(self._search, place, digest)
            case wire.Batch() | wire.CompressedBatch() if (
                self.is_started and self.handed_over is None
            ):
                self._apply(frame)
            case (
                wire.TailerAt()
                | wire.GroupAt()
                | wire.GroupNames()
                | wire.TailerVersions()
                | wire.FileSent()
            ) if self._is_welcome and self.handed_over is None:
                self._take_aside(frame)
            case wire.Heartbeat():
                pass
            case wire.Ended() if self.is_started:
                self.has_ended = True
            case wire.HandedOver() if self.is_started and self.handed_over is None:
                self._check_handover(frame)
                self.handed_over = frame
            case _:
                self._out_of_turn(frame)

    def _apply(self, batch: wire.Batch | wire.CompressedBatch) -> None:
        if isinstance(batch, wire.CompressedBatch):
            documents = self._decompressed(batch)
        else:
            documents = batch.documents
        self._check_end(documents)
        self.stored = self._replica.apply(documents, batch.time_ns // 1_000_000)
        self._unacknowledged = (batch.time_ns, self.stored)

    def _decompressed(self, batch: wire.CompressedBatch) -> bytes:
        self._decompressor = self._decompressor or StreamDecompressor()
        try:
            return self._decompressor.decompress(batch.stored, batch.length)
        except ValueError as error:
            raise ReplicationError(f"the source sent {error}: peer={self.peer}") from None

    def _take_aside(self, frame: wire.PositionFrame | wire.FileSent) -> None:
        """Process the frames beside the messages: positions and files."""
        match frame:
            case wire.FileSent(name, content):
                self._replica.put_file(name, content)
            case _ if self.is_started:
                self._positions.append(frame)
            case _:
                self._out_of_turn(frame)

    def take_positions(self) -> list[wire.PositionFrame]:
        """Return, once, the positions that the source sent: those within the stored messages."""
        found, self._positions = self._positions, []
        return found

    def _check_end(self, documents: bytes) -> None:
        """
        Check that a batch does not continue a cycle that has ended here.

        A source that was promoted before it learned of the end may append to the cycle.
        """
        place = self.stored
        if place is None or not place.is_ended or len(documents) < _BATCH_HEAD.size:
            return
        first, _, count, _ = _BATCH_HEAD.unpack_from(documents)
        if count and first == place.next:
            text = "the replica's last cycle has ended, and its source appends to it"
            raise self._replica.diverged(text, first, self.peer)

    def _check_handover(self, frame: wire.HandedOver) -> None:
        """Check that the copy has all messages, and that the epoch is the next one."""
        own, epoch = self._replica.standing, frame.epoch
        is_whole = (self.stored and self.stored[:2]) == (frame.place and frame.place[:2])
        is_next = own is not None and epoch == own.epoch + 1
        if not (is_whole and is_next and self._takes_over):
            text = "the source handed over messages that this replica lacks, or another epoch"
            found = f"place={frame.place} own_place={self.stored} epoch={epoch}"
            raise ReplicationError(f"{text}: {found} peer={self.peer}")

    def take_over(self, address: tuple[str, int] | None) -> None:
        """Report that the replica is the source of the new epoch, and its address."""
        if self.handed_over is not None:
            self._out.append(wire.taken_over(self.handed_over.epoch, address))

    def _join(self, facts: Mapping[str, Any]) -> None:
        self._check_version(facts)
        if self._replica.refills and wire.REFILL not in self.features:
            text = "a source listens there, not a replica that refills one"
            hint = "`quire replicate sink` follows a source"
            raise ReplicationError(f"{text}: peer={self.peer} ({hint})")
        self._replica.join(facts)
        end = self._replica.end
        if end is None:
            self._start(None)
        else:
            self._facts = facts
            self._compare_older(end)

    def _compare_older(self, end: Place) -> None:
        """Compare all cycles but the newest, if the source can; then the newest."""
        first, digests = self._facts.get("first"), self._replica.older_digests()
        if wire.CYCLES in self.features and type(first) is int:
            lowest = self._replica.split(Place(first, 0, is_ended=False))[0]
            cycles = digests.cycles()
            if lowest < cycles[0]:
                text = "the oldest cycles of the source were pruned here, or were lost"
                _log.info("%s: first_cycle=%d source_first_cycle=%d", text, cycles[0], lowest)
            search = CycleSearch(digests, cycles, lowest)
            if search.is_needed:
                self._cycle_search = search
                self._out.append(wire.cycles_request(*search.asked))
                return
        self._compare_in(end)

    def _compare_in(self, end: Place) -> None:
        """Compare a cycle up to a place."""
        self._search = _Search(self._replica, end, self.peer, self._facts.get("first"))
        self._out.append(wire.digest_request(end))

    def _take_cycles(self, search: CycleSearch, found: wire.Cycles) -> None:
        asked = Range(found.first, found.last)
        match search.answer(asked, found.lowest, found.count, found.digest):
            case None:
                self._out.append(wire.cycles_request(*search.asked))
            case Same():
                self._cycle_search, end = None, self._replica.end
                if end is not None:
                    self._compare_in(end)
            case LacksBefore(cycle):
                self._fetch_from(self._replica.index_of(cycle, 0))
            case DiffersIn(cycle):
                self._is_older, end = True, self._replica.end_of(cycle)
                if end is None:
                    index = self._replica.index_of(cycle, 0)
                    text = "the file of a cycle cannot be read"
                    raise self._replica.diverged(text, index, self.peer)
                self._compare_in(end)

    def _fetch_from(self, index: int) -> None:
        """Ask for a reconnect once the messages from an index on are put aside."""
        last, end = self._facts.get("last"), self._replica.end
        if end is None or type(last) is not int or last < end.next - 1:
            text = "the source lacks messages that this replica has, and has others"
            raise self._replica.diverged(text, index, self.peer)
        self.lacks, self.has_ended = index, True

    def _start(self, place: Place | None) -> None:
        if self._level == SYNCED and place is not None:
            # It counts as acknowledged, and a process that was killed may not have synced it.
            self._replica.sync()
        if place is not None:
            self._replica.note_elsewhere(place)  # the source has what the digests were compared of
        self._replica.agree()
        self.is_started, self.stored, self._search = True, place, None
        self._out.append(wire.start(place))

    def _compare(self, search: _Search, place: Place, digest: bytes | None) -> None:
        asked = search.compare(place, digest)
        if asked is None and self._is_older:
            self._fetch_from(search.end.next)  # the source has more of that cycle
        elif asked is None:
            self._start(search.end)
        else:
            self._out.append(wire.digest_request(asked))

    def tick(self, now_ns: int) -> None:
        """
        Advance the time: send a heartbeat if nothing was sent for long.

        Raises:
            PeerSilentError: The source was silent for too long.

        """
        self._check_silence(self._heard_ns, now_ns)
        self._beat(now_ns)


class _Search:
    """
    The search for the first message that differs: the last cycle's digest is compared first.

    Args:
        replica: The sink's queue.
        end: The place where the queue ends.
        peer: The source's address, for errors.
        first: The index of the source's first message.

    """

    def __init__(self, replica: Replica, end: Place, peer: str, first: object) -> None:
        self._replica, self.end, self._peer, self._first = replica, end, peer, first
        self._start = end.next - replica.split(end)[1]
        self._same, self._different = self._start, end.next + 1  # what is before these
        self._asked = end

    def compare(self, place: Place, digest: bytes | None) -> Place | None:
        """
        Return the next place to request; None if everything is the same.

        Raises:
            DivergedError: The first message that differs is known.
            ReplicationError: The source no longer has the end of the replica.

        """
        if place != self._asked:
            raise ReplicationError(f"the source sent a digest out of turn: peer={self._peer}")
        is_same = digest is not None and digest == self._replica.digest(place)
        if place == self.end and is_same:
            return None
        self._check_deleted(digest)
        if is_same:
            self._same = place.next
        else:
            self._different = min(place.next, self._different)
        if self._different - self._same <= 1:
            text = "the replica and its source hold different messages"
            raise self._replica.diverged(text, self._same, self._peer)
        middle = (self._same + self._different) // 2
        self._asked = Place(middle, 0, is_ended=False)
        return self._asked

    def _check_deleted(self, digest: bytes | None) -> None:
        if digest is None and isinstance(self._first, int) and self._first > self.end.next:
            text = "the source has deleted what follows the end of this replica"
            indexes = f"next={self.end.next:#x} source_first={self._first:#x}"
            hint = "replicate into an empty directory"
            raise ReplicationError(f"{text}: path={self._replica.path} {indexes} ({hint})")


def _refusal(code: str, reason: str, peer: str) -> ReplicationError:
    text = f"the source refused this sink: reason={reason!r} code={code!r} peer={peer}"
    return OldEpochError(text) if code == "old-epoch" else ReplicationError(text)
