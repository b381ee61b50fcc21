"""The interface of a session for its driver: bytes and times in, bytes out."""

from __future__ import annotations

from typing import Final, Protocol

from quire._waiting.sleeping import Sleeper

TICK_S: Final = 0.25
"""How often a driver polls what cannot wake it."""


class AnySession(Protocol):
    """A side of one connection, whatever it speaks."""

    @property
    def peer(self) -> str:
        """The address of the peer."""
        ...

    @property
    def tick_s(self) -> float:
        """How often :meth:`tick` is to be called, in seconds."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long the peer may read nothing, in seconds."""
        ...

    @property
    def progress(self) -> object:
        """A value that changes with each step forward that a caller may wait for."""
        ...

    @property
    def takes_long(self) -> bool:
        """Whether :meth:`receive` may take long: another thread calls it, while time passes."""
        ...

    def outgoing(self) -> bytes:
        """Return the bytes to send; each byte is returned once."""
        ...

    def receive_some(self, data: bytes, now_ns: int, /) -> bool:
        """
        Take bytes that the peer sent, as many as take a moment: it is to be answered in time.

        Returns:
            Whether there are more, which come with the next call, also without bytes.

        Raises:
            QuireError: The bytes of the peer break the protocol. Outgoing bytes are sent before the
                connection is closed.

        """
        ...

    def tick(self, now_ns: int, /) -> None:
        """
        Advance the time, of a clock that is never set back.

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
        """What has something to read once :meth:`pull` gives more; None: time or the peer does."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether the next messages can be sent once there are any."""
        ...

    @property
    def awaits_end(self) -> bool:
        """Whether the peer ends the connection when the stream has ended."""
        ...

    def pull(self, time_ns: int, now_ns: int, /) -> bool:
        """Put the next messages into what is to be sent; return whether there were any."""
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
        """Whether messages follow from here on."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether no message follows."""
        ...

    @property
    def awaits_action(self) -> bool:
        """Whether the peer asked for something beside storing messages."""
        ...

    @property
    def awaits_sync(self) -> bool:
        """Whether :meth:`sync` is due."""
        ...

    def sync(self) -> None:
        """Sync stored messages, and acknowledge them: may take long."""
        ...
