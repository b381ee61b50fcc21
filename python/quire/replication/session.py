"""One side of a connection: bytes and times in, bytes out. It knows no sockets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final, NoReturn

from quire.errors import DivergedError, OldEpochError, PeerSilentError, ReplicationError
from quire.replication import wire
from quire.replication.wire import Frame, FrameReader, Kind

HEARTBEAT_NS: Final = 1_000_000_000
SILENCE_NS: Final = 10 * HEARTBEAT_NS
TIMEOUT_S: Final = SILENCE_NS / 1e9
TICK_S: Final = HEARTBEAT_NS / 4e9
_FRAMES_AT_ONCE: Final = 64
"""Each may take as long as the making of a file."""

_CODES: Final[Mapping[type[ReplicationError], str]] = {
    OldEpochError: "old-epoch",
    DivergedError: "diverged",
}


class Session(ABC):
    """
    The common part of both sides of a connection.

    Args:
        peer_role: The role of the peer, for errors: ``"source"`` or ``"sink"``.
        peer: Its address, for errors.
        expected: The kinds of frames that it may send.
        now_ns: The time of a monotonic clock.

    """

    def __init__(self, peer_role: str, peer: str, expected: frozenset[Kind], now_ns: int) -> None:
        self.peer = peer
        self._peer_role = peer_role
        self._frames = FrameReader(expected)
        self._out: deque[bytes] = deque()
        self._is_busy = False
        self._heard_ns = self._spoke_ns = now_ns
        self.features: frozenset[str] = frozenset()

    @property
    def tick_s(self) -> float:
        """How often :meth:`tick` is to be called, in seconds."""
        return TICK_S

    @property
    def timeout_s(self) -> float:
        """How long the peer may read nothing, in seconds."""
        return TIMEOUT_S

    def outgoing(self) -> bytes:
        """Return the bytes to send; each byte is returned once."""
        out = list[bytes]()
        while self._out:  # another thread may be adding to it, see `takes_long`
            out.append(self._out.popleft())
        return b"".join(out)

    def receive(self, data: bytes, now_ns: int) -> None:
        """
        Take bytes that the peer sent.

        Raises:
            ReplicationError: The bytes break the protocol, or the peer's request cannot be
                fulfilled. The refusal is outgoing, to be sent before the connection is closed.

        """
        while self.receive_some(data, now_ns):
            data = b""

    def receive_some(self, data: bytes, now_ns: int) -> bool:
        """
        Take bytes that the peer sent, but process only as many frames as take a moment.

        Returns:
            Whether frames are left, which the next call processes, even without bytes.

        Raises:
            ReplicationError: The bytes break the protocol, or the peer's request cannot be
            fulfilled.

        """
        self._heard_ns, self._is_busy = now_ns, True
        try:
            with closing(self._frames.feed(data)) as frames:
                for number, frame in enumerate(frames, 1):
                    self._take(frame)
                    if number == _FRAMES_AT_ONCE:
                        return True
        except ReplicationError as error:
            self._out.append(refusal_of(error))
            raise
        finally:
            self._is_busy = False
        return False

    @abstractmethod
    def _take(self, frame: Frame) -> None:
        """Process a frame of the peer."""

    def _check_version(self, facts: Mapping[str, Any]) -> None:
        if facts.get("version") != wire.VERSION:
            text = f"the {self._peer_role} speaks another version of the protocol"
            found = f"version={facts.get('version')!r} own_version={wire.VERSION}"
            raise ReplicationError(f"{text}: {found} peer={self.peer}")
        features = facts.get("features", [])
        if isinstance(features, list):
            self.features = frozenset(it for it in (*wire.FEATURES, wire.REFILL) if it in features)

    @property
    def heard_ns(self) -> int:
        """When the peer last sent something."""
        return self._heard_ns

    def _out_of_turn(self, frame: Frame) -> NoReturn:
        text = f"the {self._peer_role} sent a frame out of turn"
        raise ReplicationError(f"{text}: frame={type(frame).__name__} peer={self.peer}")

    def _check_silence(self, since_ns: int, now_ns: int) -> None:
        if self._is_busy:
            self._heard_ns = now_ns  # what the peer says meanwhile is not read
        elif now_ns - since_ns >= SILENCE_NS:
            text = f"the {self._peer_role} sent nothing for too long"
            raise PeerSilentError(f"{text}: peer={self.peer} silence_s={SILENCE_NS / 1e9:g}")

    def _beat(self, now_ns: int) -> None:
        """Send a heartbeat if nothing was sent for long."""
        if now_ns - self._spoke_ns >= HEARTBEAT_NS:
            self._out.append(wire.heartbeat(now_ns))
            self._spoke_ns = now_ns


def refusal_of(error: ReplicationError) -> bytes:
    """Return the frame that gives the peer the reason why the connection ends."""
    code = _CODES.get(type(error), "protocol")
    if isinstance(error, OldEpochError):
        return wire.refusal(code, str(error), queue=error.queue, epoch=error.epoch)
    return wire.refusal(code, str(error))
