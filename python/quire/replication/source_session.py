"""A source's side of one connection."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from quire._native import StreamCompressor
from quire._waiting.sleeping import Sleeper
from quire.errors import OldEpochError, PeerLostError, ReplicationError
from quire.replication import wire
from quire.replication.naming import is_name
from quire.replication.original import Original, Reader
from quire.replication.own_folder import own_folder
from quire.replication.passed_cycles import PassedCycles
from quire.replication.positions import Positions, SentPositions
from quire.replication.session import Session, refusal_of
from quire.replication.wire import Frame, Kind, Place
from quire.sealed.needed_files import ChangedFiles

_log = logging.getLogger("quire")
_WINDOW_BYTES: Final = 16 << 20
_ADDRESS_LIMIT: Final = 200
_EXPECTED: Final = frozenset(
    {
        Kind.GREETING,
        Kind.REFUSAL,
        Kind.DIGEST_REQUEST,
        Kind.CYCLES_REQUEST,
        Kind.START,
        Kind.ACKNOWLEDGEMENT,
        Kind.HEARTBEAT,
        Kind.TAKEN_OVER,
    }
)


class SourceSession(Session):
    """
    The source's side of one connection, without the socket.

    Args:
        original: The source's queue.
        peer: The sink's address, for errors.
        now_ns: The time, of a clock that is never set back.
        compress: Whether batches are compressed, if the sink supports it.

    """

    def __init__(
        self, original: Original, peer: str, now_ns: int, *, compress: bool = False
    ) -> None:
        super().__init__("sink", peer, _EXPECTED, now_ns)
        self._compresses = compress
        self._compressor: StreamCompressor | None = None
        self._original, self._began_ns = original, now_ns
        self._reader: Reader | None = None
        self._in_flight: deque[tuple[Place, int]] = deque()
        self._in_flight_bytes = 0
        self._is_greeted = self._has_ended = self._is_superseded = False
        self.name, self.address, self.level = "", "", "stored"
        self.sent: Place | None = None
        self.acknowledged: Place | None = None
        self.acknowledged_ns = 0
        self.slot: int | None = None
        self.noted_level: str | None = None
        self.refused: ReplicationError | None = None
        self.taken_over: wire.TakenOver | None = None
        self._promised: int | None = None
        self._positions = SentPositions()
        self._passed: PassedCycles | None = None
        self._missed: int | None = None
        self._files = ChangedFiles(original.queue.path, lambda: own_folder(original.queue))

    @property
    def reader(self) -> Reader | None:
        """The reader for the sink, once it has requested batches."""
        return self._reader

    @property
    def sleeper(self) -> Sleeper | None:
        """The sleeper that is due once there is a batch."""
        return None if self._reader is None else self._reader.tailer

    @property
    def takes_long(self) -> bool:
        """Whether digests may be requested."""
        return self._is_greeted and self._reader is None

    @property
    def awaits_end(self) -> bool:
        """Whether the sink closes the connection when the stream has ended."""
        return self._reader is not None

    @property
    def progress(self) -> tuple[Place | None, bool, bool]:
        """The sink's acknowledgement, whether it has started, and whether it has taken over."""
        return self.acknowledged, self._reader is not None, self.taken_over is not None

    def receive_some(self, data: bytes, now_ns: int) -> bool:
        """
        Take bytes that the sink sent, but no more frames than take a moment.

        Returns:
            Whether there are more, which come with the next call, also without bytes.

        Raises:
            ReplicationError: The bytes break the protocol, what the sink says cannot be done, or it
                refuses this source.
            OldEpochError: The sink has seen a later epoch.

        """
        has_more = super().receive_some(data, now_ns)
        if self.refused is not None:
            raise self.refused
        return has_more

    def _take(self, frame: Frame) -> None:
        match frame:
            case wire.Facts(_, facts) if not self._is_greeted:
                self._greet(facts)
            case wire.Refused() if self._is_greeted or frame.code == "protocol":
                # A sink that has not greeted follows another source; it ends this one by no epoch.
                self.refused = self._refusal(frame)
            case wire.DigestAsked(place) if self._is_greeted and self._reader is None:
                self._out.append(wire.digest(place, self._original.digest(place)))
            case wire.CyclesAsked(first, last) if self._is_greeted and self._reader is None:
                self._out.append(wire.cycles(self._original.cycles(first, last)))
            case wire.Started(place) if self._is_greeted and self._reader is None:
                reader = self._original.reader(place)
                self.sent = self.acknowledged = place
                if self._passed is not None and place is not None:
                    self._passed.note(place.next)
                self._reader = reader  # last: another thread pulls from then on
            case wire.Acknowledged(time_ns, place, level):
                self._acknowledge(place, level)
                self.acknowledged_ns = time_ns
            case wire.TakenOver(epoch, _) if epoch == self._promised and self.taken_over is None:
                self.taken_over = frame
            case wire.Heartbeat():
                pass
            case _:
                self._out_of_turn(frame)

    def _greet(self, facts: Mapping[str, Any]) -> None:
        self._check_version(facts)
        self._original.check_sink(self.features, self.peer)
        name = facts.get("name")
        if not isinstance(name, str) or not is_name(name):
            raise ReplicationError(f"a sink has no valid name: name={name!r} peer={self.peer}")
        address: object = facts.get("address", "")
        if (
            not isinstance(address, str)
            or len(address) > _ADDRESS_LIMIT
            or not address.isprintable()
        ):
            text = "a sink has no valid address"
            raise ReplicationError(f"{text}: address={address!r} peer={self.peer}")
        self.name, self.address, self._is_greeted = name, address, True
        self._passed = PassedCycles(self._original.queue)
        self._out.append(wire.facts(Kind.WELCOME, self._original.facts()))
        self._send_files()

    def _send_files(self) -> None:
        """Send the files that the following messages need, if they have changed."""
        if wire.FILES in self.features:
            self._out.extend(wire.file(name, content) for name, content in self._files.news())

    def _refusal(self, refused: wire.Refused) -> ReplicationError:
        """Return the error for a refusal: a later epoch, if the refusal has all of its fields."""
        text = "a sink refused this source"
        details = f"reason={refused.reason!r} code={refused.code!r}"
        shown = f"{text}: {details} name={self.name} peer={self.peer}"
        if refused.code != "old-epoch":
            return ReplicationError(shown)
        later = self._original.later(refused.queue, refused.epoch)
        if later is not None:
            return OldEpochError(shown, later, self._original.standing.identity)
        claim = f"queue={refused.queue!r} epoch={refused.epoch!r}"
        return ReplicationError(
            f"{shown} {claim} (no later epoch of this queue: the source continues)"
        )

    def _acknowledge(self, place: Place, level: str) -> None:
        while self._in_flight and self._in_flight[0][0] != place:
            self._drop_first()
        if not self._in_flight:
            text = "a sink acknowledged messages that it was not sent"
            raise ReplicationError(f"{text}: next={place.next:#x} peer={self.peer}")
        self._drop_first()
        self.acknowledged, self.level = place, level
        self._original.note_acknowledged(place)

    def _drop_first(self) -> None:
        _, size = self._in_flight.popleft()
        self._in_flight_bytes -= size

    def hand_over(self, epoch: int, place: Place | None) -> None:
        """Make the sink, which has all messages up to a place, the source of a new epoch."""
        self._promised, self._has_ended = epoch, True
        self._out.append(wire.hand_over(epoch, place))

    def pull(self, time_ns: int, now_ns: int) -> bool:
        """
        Add the next batch to the output, unless the sink has enough to do.

        Args:
            time_ns: Nanoseconds since 1970, as the messages were appended about now.
            now_ns: The time, of a clock that is never set back.

        Returns:
            Whether there was one.

        Raises:
            ReplicationError: Messages that the sink lacks were deleted.

        """
        if self._reader is None or self._has_ended or not self.is_waiting:
            return False
        documents = self._reader.read()
        if documents is None:
            return False
        end = self._reader.end
        if self._passed is not None:
            self._passed.note(end.next)
        self._in_flight.append((end, len(documents)))
        self._in_flight_bytes += len(documents)
        self._send_files()
        self._out.append(self._batch(time_ns, documents))
        self.sent = end  # last: what another thread says of messages before it comes after them
        self._spoke_ns = now_ns
        return True

    def _batch(self, time_ns: int, documents: bytes) -> bytes:
        is_short = len(documents) <= wire.COMPRESSED_LIMIT
        if not (self._compresses and is_short and wire.ZSTD in self.features):
            return wire.batch(time_ns, documents)
        self._compressor = self._compressor or StreamCompressor()
        stored = self._compressor.compress(documents)
        return wire.compressed_batch(time_ns, len(documents), stored)

    @property
    def takes_positions(self) -> bool:
        """Whether the sink wants positions of readers, and has received those sent before."""
        is_open = self._reader is not None and not self._has_ended
        return is_open and wire.POSITIONS in self.features and not self._out

    def send_positions(self, found: Positions, before: int) -> None:
        """Send changed positions of readers; messages up to the index *before* were sent."""
        if self._reader is not None and wire.POSITIONS in self.features:
            if wire.TAILERS in self.features:
                self._out.extend(map(wire.position, self._positions.all_tailers(found)))
            self._out.extend(map(wire.position, self._positions.news(found, before)))

    @property
    def sent_end(self) -> int:
        """The index after the last message that the sink has or was sent."""
        return 0 if self.sent is None else self.sent.next

    @property
    def is_waiting(self) -> bool:
        """Whether the next batch can be sent once there is one."""
        return self._reader is not None and self._in_flight_bytes < _WINDOW_BYTES

    @property
    def has_all(self) -> bool:
        """Whether the sink has acknowledged everything that it was sent."""
        return self._reader is not None and not self._in_flight

    def look_back(self) -> None:
        """End at the next tick if messages came before those that the sink was sent."""
        if self._passed is None or self.sent is None or self._missed is not None:
            return
        self._missed = self._passed.missed(self.sent.next)
        if self._missed is not None:
            text = "messages came in a cycle before those that a sink has; it connects again"
            where = (self._missed, self.name, self._original.queue.path)
            _log.warning("%s: cycle=%d name=%s path=%s", text, *where)

    def supersede(self) -> None:
        """End at the next tick, since another sink of this name has connected."""
        self._is_superseded = True

    def tick(self, now_ns: int) -> None:
        """
        Advance the time: send a heartbeat if nothing was sent for long.

        Raises:
            PeerSilentError: The sink was silent for too long.
            PeerLostError: The sink lacks messages before those that it was sent.
            ReplicationError: Another sink of this name has connected.

        """
        if self._missed is not None:
            text = "the sink lacks a cycle before those that it was sent"
            raise PeerLostError(f"{text}: cycle={self._missed} peer={self.peer}")
        if self._is_superseded:
            text = "another sink of this name has connected"
            error = ReplicationError(f"{text}: name={self.name} peer={self.peer}")
            self._out.append(refusal_of(error))
            raise error
        # A sink has as long to greet, however slowly it sends.
        self._check_silence(self._heard_ns if self._is_greeted else self._began_ns, now_ns)
        if self._is_greeted:
            self._beat(now_ns)

    def end(self) -> None:
        """End the stream: no batch follows."""
        if self._reader is not None and not self._has_ended:
            self._out.append(wire.end())
        self._has_ended = True

    def close(self) -> None:
        """Close the queue's files."""
        if self._reader is not None:
            self._reader.close()
