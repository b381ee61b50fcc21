"""A sink's side of one connection: where it resumes, which messages it takes; no sockets."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from itertools import pairwise
from typing import Final

from quire.errors import PeerSilentError, ReplicationError
from quire.vanilla.replication.replica import Replica
from quire.vanilla.replication.wire_frames import (
    FROM_START,
    Action,
    FrameReader,
    Mark,
    Marked,
    Run,
    request,
)

_TICKS: Final = 4  # in a timeout
_LONGEST_TICK_S: Final = 0.25


class _Turn(Enum):
    """The frame that the source must send next."""

    ANSWER = auto()
    ECHO = auto()
    FIRST = auto()
    MESSAGES = auto()


class SinkSession:
    """
    The sink's side of a connection, without the socket.

    Args:
        replica: Stores the messages.
        peer: The source's address, for errors.
        acknowledge: Whether stored messages are acknowledged to the source.
        silence_s: How long the source may be silent, or read nothing.
        now_ns: The time, of a clock that is never set back.

    """

    has_ended = False  # nothing in the protocol says that a stream ends

    awaits_action = False  # there is nothing that it could ask for

    takes_long: bool = False
    """Whether it computes anything before it answers."""

    def __init__(
        self, replica: Replica, *, peer: str, acknowledge: bool, silence_s: float, now_ns: int
    ) -> None:
        self.peer = peer
        self._replica, self._acknowledges, self._silence_s = replica, acknowledge, silence_s
        self._frames = FrameReader()
        self._out: list[bytes] = []
        self._heard_ns = now_ns
        self._unsynced: deque[Run | Marked] = deque()
        self.in_syncs = 0
        self.stored: int | None = None
        self.begun_cycles: list[int] = []
        last = replica.last_index
        self._newest = -1 if last is None else replica.cycle_of(last)
        ends = replica.ends()
        for end in ends or [FROM_START]:
            self._acknowledge(end)
        # A slow writer may have appended to an earlier cycle while the connection was down: the
        # source is asked whether what follows the end of each is the next cycle of the copy.
        self._asked = deque(pairwise(ends))
        self._start = ends[-1] if ends else FROM_START
        self._ask()

    @property
    def tick_s(self) -> float:
        """How often :meth:`tick` is to be called, in seconds."""
        return min(self._silence_s / _TICKS, _LONGEST_TICK_S)

    @property
    def timeout_s(self) -> float:
        """How long the source may read nothing, in seconds."""
        return self._silence_s

    @property
    def progress(self) -> tuple[int | None, int]:
        """The last message that was stored, and how often the source had no more."""
        return self.stored, self.in_syncs

    @property
    def is_started(self) -> bool:
        """Whether messages follow from here on."""
        return self._turn is _Turn.MESSAGES

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
        Take bytes that the source sent.

        Raises:
            ReplicationError: The bytes break the protocol, or the source's queue is not that of the
                copy.

        """
        self._heard_ns = now_ns
        for frame in self._frames.feed(data):
            self._take(frame)

    def tick(self, now_ns: int) -> None:
        """
        Let time pass.

        Raises:
            PeerSilentError: The source was silent for too long.

        """
        if now_ns - self._heard_ns >= self._silence_s * 1e9:
            text = "the source sent nothing for too long"
            raise PeerSilentError(f"{text}: peer={self.peer} timeout_s={self._silence_s}")

    @property
    def awaits_sync(self) -> bool:
        """Whether there are messages to store on the medium."""
        return bool(self._unsynced)

    def sync(self) -> None:
        """Store the received messages on the medium, and acknowledge them: may take long."""
        while self._unsynced:
            self._keep(self._unsynced.popleft())

    def _take(self, frame: Run | Marked) -> None:
        match self._turn:
            case _Turn.ANSWER:
                self._take_answer(frame)
            case _Turn.ECHO:
                self._take_echo(frame)
            case _Turn.FIRST:
                self._take_first(frame)
            case _Turn.MESSAGES:
                self._take_message(frame)

    def _ask(self) -> None:
        """Ask what follows the end of the next cycle; subscribe when all were asked for."""
        if self._asked:
            self._turn = _Turn.ANSWER
            self._out.append(request(Action.QUERY, self._asked[0][0]))
        else:
            self._subscribe(self._start)

    def _subscribe(self, start: int) -> None:
        """Subscribe after a message, which the source sends again."""
        self._start, self._turn = start, _Turn.ECHO
        self._out.append(request(Action.SUBSCRIBE, start))

    def _take_answer(self, frame: Run | Marked) -> None:
        end, following = self._asked.popleft()
        match frame:
            case Marked(mark=Mark.SYNC_INDEX, index=after):
                if self._replica.cycle_of(after) < self._replica.cycle_of(following):
                    self._subscribe(end)
                    return
            case Marked(mark=Mark.IN_SYNC):
                pass
            case _:
                raise self._unexpected(frame, "the answer to a query")
        self._ask()

    def _take_echo(self, frame: Run | Marked) -> None:
        if frame == Marked(Mark.IN_SYNC, 0):
            return
        if frame != Marked(Mark.SYNC_INDEX, self._start):
            raise self._unexpected(frame, f"the answer to a subscription from {self._start:#x}")
        self._turn = _Turn.MESSAGES if self._start == FROM_START else _Turn.FIRST

    def _take_first(self, frame: Run | Marked) -> None:
        """Take the run that begins with the message the copy has already."""
        if not isinstance(frame, Run) or frame.first != self._start:
            text = "the source does not have the message that the copy ends with"
            where = f"index={self._start:#x} path={self._replica.path} peer={self.peer}"
            raise ReplicationError(f"{text}: {where}")
        self._turn = _Turn.MESSAGES
        self._take_message(frame)

    def _take_message(self, frame: Run | Marked) -> None:
        if isinstance(frame, Marked) and frame.mark != Mark.IN_SYNC:
            raise self._unexpected(frame, "messages")
        if self._replica.is_synchronous:
            self._unsynced.append(frame)
        else:
            self._keep(frame)

    def _keep(self, frame: Run | Marked) -> None:
        if isinstance(frame, Marked):
            self.in_syncs += 1
            return
        self._replica.store(frame)
        self._acknowledge(frame.last)
        cycle = self._replica.cycle_of(frame.last)
        if self._newest < cycle:
            self._newest = cycle
            self.begun_cycles.append(cycle)
        self.stored = frame.last

    def _acknowledge(self, index: int) -> None:
        if self._acknowledges:
            self._out.append(request(Action.ACKNOWLEDGE, index))

    def _unexpected(self, found: Run | Marked, expected: str) -> ReplicationError:
        shown = f"{found.mark.name} {found.index}" if isinstance(found, Marked) else "a message"
        text = "a source sent an unexpected frame"
        return ReplicationError(f"{text}: found={shown} expected={expected} peer={self.peer}")
