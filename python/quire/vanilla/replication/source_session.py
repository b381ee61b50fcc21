"""A source's side of one connection: it answers requests, and sends messages."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from quire._waiting.sleeping import Sleeper
from quire.errors import MessageTooLargeError, PeerSilentError, ReplicationError
from quire.handles.vanilla import VanillaAppender, VanillaQueue
from quire.vanilla.replication import wire_frames
from quire.vanilla.replication.wire_frames import Action, Mark, Request, RequestReader

if TYPE_CHECKING:
    from quire._native import Buffer

_BATCH_COUNT: Final = 1024
_BATCH_BYTES: Final = 256 << 10
_TICKS: Final = 4  # in a heartbeat or a timeout
_LONGEST_TICK_S: Final = 0.25
_CYCLES_KEPT: Final = 64


class SinkStatus(NamedTuple):
    """
    How far a connected sink is, from :attr:`Source.sinks`.

        late = [each.peer for each in source.sinks if each.sent_index != queue.last_index]

    Attributes:
        peer: The sink's address.
        subscribed: Whether it gets messages.
        sent_index: The last message that it was sent; None before the first.
        acknowledged_index: The last message that it has acknowledged; None before the first.

    """

    peer: str
    subscribed: bool
    sent_index: int | None
    acknowledged_index: int | None


class Acknowledged:
    """
    The messages that a sink has acknowledged: the last one of each cycle.

    A slow writer may append to a cycle after newer ones began, so one index does not cover other
    cycles.
    """

    def __init__(self, entries_per_cycle: int) -> None:
        self._entries_per_cycle = entries_per_cycle
        self._ends: dict[int, int] = {}

    def add(self, index: int) -> None:
        """Record that a message, and the earlier ones of its cycle, are stored."""
        cycle = index // self._entries_per_cycle
        self._ends[cycle] = max(index, self._ends.get(cycle, index))
        if len(self._ends) > _CYCLES_KEPT:
            del self._ends[min(self._ends)]

    def __contains__(self, index: int) -> bool:
        """Whether a message is stored. A sink need not mention cycles before those it mentions."""
        cycle = index // self._entries_per_cycle
        if cycle in self._ends:
            return index <= self._ends[cycle]
        return bool(self._ends) and cycle < min(self._ends)

    @property
    def last(self) -> int:
        """The highest index."""
        return max(self._ends.values())


class Limits(NamedTuple):
    """
    A source's limits for its sinks.

    Attributes:
        heartbeat_s: After how long without a message a sink gets a heartbeat.
        timeout_s: How long a sink may read nothing, or leave a request unfinished.
        submit_bytes: The longest message that a sink may submit.

    """

    heartbeat_s: float
    timeout_s: float
    submit_bytes: int


class SourceSession:
    """
    The source's side of one connection, without the socket.

    Args:
        queue: The source's queue.
        peer: The sink's address.
        limits: The limits for the sink.
        appender: Appends submitted messages; None: the sink may not submit any.
        check: Called before messages or heartbeats are sent; an exception of it ends the
        connection.
        now_ns: The time, of a clock that is never set back.

    """

    awaits_end = False  # nothing in the protocol says that a stream ends

    takes_long: bool = False
    """Whether it computes anything before it answers."""

    def __init__(  # noqa: PLR0913 - what its source has
        self,
        queue: VanillaQueue,
        peer: str,
        limits: Limits,
        *,
        appender: VanillaAppender | None,
        check: Callable[[], None],
        now_ns: int,
    ) -> None:
        self.peer = self.name = peer
        self._check = check
        self._queue, self._limits, self._appender = queue, limits, appender
        self._tailer = queue.tailer()
        self._requests = RequestReader(None if appender is None else limits.submit_bytes)
        self._out: list[bytes] = []
        self._now_ns = self._spoke_ns = now_ns
        self._asked_ns: int | None = now_ns  # since when a request is awaited
        self._is_at_message = False  # False too where the sink asked for one that is not there
        self._is_stuck = False  # the last frame is too short for Java's sink to look at
        self._sent: int | None = None
        self._newest = -1  # the newest cycle of what was sent
        self._asked: list[int] = []  # what the sink wanted to know the next message of
        self.is_subscribed = False
        self.acknowledged: Acknowledged | None = None
        self.progress = 0

    @property
    def tick_s(self) -> float:
        """How often :meth:`tick` is to be called, in seconds."""
        least = min(self._limits.heartbeat_s, self._limits.timeout_s) / _TICKS
        return min(least, _LONGEST_TICK_S)

    @property
    def timeout_s(self) -> float:
        """How long the sink may read nothing, in seconds."""
        return self._limits.timeout_s

    @property
    def sleeper(self) -> Sleeper | None:
        """What has something to read once there is a message for the sink."""
        return self._tailer if self._is_at_message else None

    @property
    def is_waiting(self) -> bool:
        """Whether the next message can be sent once there is one."""
        return self._is_at_message

    @property
    def status(self) -> SinkStatus:
        """The sink's position."""
        acknowledged = self.acknowledged.last if self.acknowledged else None
        return SinkStatus(self.peer, self.is_subscribed, self._sent, acknowledged)

    def outgoing(self) -> bytes:
        """Return the bytes to send; each byte is returned once."""
        out = b"".join(self._out)
        self._out.clear()
        return out

    def receive_some(self, data: bytes, now_ns: int) -> bool:
        """Take bytes as :meth:`receive`, all of them."""
        self.receive(data, now_ns)
        return False

    def receive(self, data: bytes, now_ns: int) -> None:
        """
        Take bytes that the sink sent.

        Raises:
            ReplicationError: The bytes break the protocol, or the sink's request cannot be
                fulfilled.

        """
        self._now_ns = now_ns
        try:
            for request in self._requests.feed(data):
                self._asked_ns = None
                self._answer(request)
        except (MessageTooLargeError, ReplicationError) as error:
            raise ReplicationError(f"{error} peer={self.peer}") from None
        if self._requests.is_between_requests:
            self._asked_ns = None
        elif self._asked_ns is None:
            self._asked_ns = now_ns

    def _answer(self, request: Request) -> None:
        match request:
            case Request(Action.SUBSCRIBE, last):
                self._send(self._subscribe(last))
            case Request(Action.UNSUBSCRIBE):
                self.is_subscribed = self._is_at_message = False
                self.progress += 1
            case Request(Action.QUERY, index):
                self._send(self._query(index))
            case Request(Action.ACKNOWLEDGE, index):
                self._acknowledge(index)
            case Request(action, _, payload):
                self._append(payload, is_answered=action == Action.SUBMIT)

    def _append(self, payload: bytes, *, is_answered: bool) -> None:
        if self._appender is None:
            self._send(wire_frames.marked(Mark.NACK, wire_frames.UNSUPPORTED))
            return
        index = self._appender.write_bytes(payload)
        if is_answered:
            self._send(wire_frames.marked(Mark.ACK, index))

    def _subscribe(self, last: int) -> bytes:
        """Go to the place at which a sink wants to begin: it gets its last message again."""
        if last == wire_frames.TO_END:
            found = self._queue.last_index
            last = wire_frames.FROM_START if found is None else found
        if last == wire_frames.FROM_START:
            self._tailer.to_start()
            self._is_at_message = True
            self._newest = -1
        else:
            # As with Java, a sink that asks for a message that is not there gets only heartbeats.
            self._is_at_message = last >= 0 and self._tailer.move_to_index(last)
            self._newest = last // self._queue.entries_per_cycle
            if self._is_at_message:
                # It asks for the ends of its cycles first: what came since is sent, too.
                asked = [index for index in self._asked if index < last]
                self._tailer._watch_earlier(asked)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self.is_subscribed = True
        self.progress += 1
        return wire_frames.marked(Mark.SYNC_INDEX, last)

    def _query(self, index: int) -> bytes:
        self._asked = [*self._asked, index][-_CYCLES_KEPT:]
        with self._queue.tailer() as tailer:
            if index >= 0 and tailer.move_to_index(index):
                tailer.read()
                if (after := tailer.read()) is not None:
                    return wire_frames.marked(Mark.SYNC_INDEX, after.index)
        return wire_frames.marked(Mark.IN_SYNC, 0)

    def _acknowledge(self, index: int) -> None:
        if self.acknowledged is None:
            self.acknowledged = Acknowledged(self._queue.entries_per_cycle)
        self.acknowledged.add(index)
        self.progress += 1

    def pull(self, time_ns: int, now_ns: int) -> bool:
        """
        Put the next messages into what is to be sent; without any, a heartbeat that is due.

        Args:
            time_ns: Nanoseconds since 1970, which no frame of this protocol has.
            now_ns: The time, of a clock that is never set back.

        Returns:
            Whether there were messages.

        Raises:
            ReplicationError: Messages that the sink lacks may have been removed.

        """
        del time_ns
        self._now_ns = now_ns
        if self._is_at_message and (frames := self._next_messages()):
            self._check()
            self._send(frames)
            return True
        is_quiet = now_ns - self._spoke_ns >= self._limits.heartbeat_s * 1e9
        if self.is_subscribed and (self._is_stuck or is_quiet):
            self._check()
            self._is_stuck = False
            self._send(wire_frames.marked(Mark.IN_SYNC, 0))
        return False

    def tick(self, now_ns: int) -> None:
        """
        Let time pass.

        Raises:
            PeerSilentError: The sink left a request unfinished, or did not begin one.

        """
        since_ns, timeout_s = self._asked_ns, self._limits.timeout_s
        if since_ns is not None and now_ns - since_ns >= timeout_s * 1e9:
            text = "the sink sent nothing, or no complete request, for too long"
            raise PeerSilentError(f"{text}: peer={self.peer} timeout_s={timeout_s}")

    def end(self) -> None:
        """End the stream: no message follows."""
        self.is_subscribed = self._is_at_message = False

    def close(self) -> None:
        """Close the queue's files."""
        self._tailer.close()

    def _next_messages(self) -> bytes:
        read = self._tailer._read_columns  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        count, indexes, offsets, data = read(_BATCH_COUNT, max_bytes=_BATCH_BYTES)
        if not count:
            return b""
        numbers, ends = _integers("q", count, indexes), _integers("i", count + 1, offsets)
        self._check_cycles({number // self._queue.entries_per_cycle for number in numbers})
        self._sent = numbers[-1]
        last_frame = wire_frames.FRAME_BYTES + ends[-1] - ends[-2]
        self._is_stuck = last_frame < wire_frames.JAVA_READS_FROM
        return wire_frames.messages(numbers, ends, memoryview(data))

    def _check_cycles(self, cycles: Iterable[int]) -> None:
        """
        Check that retention took no cycle between what was sent and what comes next.

        It removes the oldest first: where some are skipped, the one before them must be there.

        Raises:
            ReplicationError: Retention removed a cycle that was not sent.

        """
        for cycle in sorted(cycles):
            if 0 <= self._newest < cycle - 1:
                before = Path(self._queue.directory_for_cycle(self._newest))
                if not before.is_dir():
                    text = "cycles that a sink had not been sent may have been removed"
                    raise ReplicationError(f"{text}: after={before} peer={self.peer}")
            self._newest = max(self._newest, cycle)

    def _send(self, frames: bytes) -> None:
        self._spoke_ns = self._now_ns
        self._out.append(frames)


def _integers(code: str, count: int, column: Buffer) -> tuple[int, ...]:
    return struct.unpack(f"<{count}{code}", column)
