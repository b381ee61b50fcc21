"""The interface of a session for its driver: bytes and times in, bytes out."""

from __future__ import annotations

from typing import Final, Protocol

from quire._waiting.sleeping import Sleeper

TICK_S: Final = 0.25
"""The interval at which a driver polls for changes that cannot wake it."""


class AnySession(Protocol):
    """One side of a connection, in any protocol."""

    @property
    def peer(self) -> str:
        """The address of the peer."""
        ...

    @property
    def tick_s(self) -> float:
        """The interval in seconds at which :meth:`tick` must be called."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long the peer may read nothing before the connection is given up, in seconds."""
        ...

    @property
    def progress(self) -> object:
        """A value that changes whenever there is progress for which a caller may wait."""
        ...

    @property
    def takes_long(self) -> bool:
        """Whether :meth:`receive_some` may take long: then it must be called in another thread."""
        ...

    def outgoing(self) -> bytes:
        """Return the bytes to send; each byte is returned once."""
        ...

    def receive_some(self, data: bytes, now_ns: int, /) -> bool:
        """
        Process bytes from the peer, for a short time only, so that the peer is answered in time.

        Returns:
            Whether bytes are left, which the next call processes, even if it is given no bytes.

        Raises:
            QuireError: The bytes of the peer violate the protocol. The driver sends outgoing bytes
                before it closes the connection.

        """
        ...

    def tick(self, now_ns: int, /) -> None:
        """
        Advance the time, which is that of a monotonic clock.

        Raises:
            PeerSilentError: The peer was silent for too long.

        """
        ...


class SendingSession(AnySession, Protocol):
    """The side of a source."""

    @property
    def name(self) -> str:
        """The sink's name; empty before it is known."""
        ...

    @property
    def sleeper(self) -> Sleeper | None:
        """Wakes the driver when :meth:`pull` has more to send; None: only the peer or time does."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether new messages can be sent as soon as there are any."""
        ...

    @property
    def awaits_end(self) -> bool:
        """Whether the peer ends the connection when the stream has ended."""
        ...

    def pull(self, time_ns: int, now_ns: int, /) -> bool:
        """Add the next messages to the outgoing bytes; return whether there were any."""
        ...

    def end(self) -> None:
        """End the stream: no message follows."""
        ...

    def close(self) -> None:
        """Close the queue's files."""
        ...


class ReceivingSession(AnySession, Protocol):
    """The side of a sink."""

    @property
    def is_started(self) -> bool:
        """Whether the stream of messages has begun."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the stream of messages has ended."""
        ...

    @property
    def awaits_action(self) -> bool:
        """Whether the peer requested an action other than storing messages."""
        ...

    @property
    def awaits_sync(self) -> bool:
        """Whether :meth:`sync` is due."""
        ...

    def sync(self) -> None:
        """Sync stored messages and acknowledge them; may take long."""
        ...
