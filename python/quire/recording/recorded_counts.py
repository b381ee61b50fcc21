"""The counts of a recording so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """
    The counts of a recorder.

    Attributes:
        received: Messages that arrived.
        written: Messages that were appended.
        refused: Messages that were not, because they are empty, too long or unfinished.
        dropped: Datagrams that the system dropped because the receive buffer was full; None if
            that is unknown, as on macOS, or cannot happen, as with TCP.

    Examples:
        >>> from quire.recording import Counts
        >>> str(Counts(received=3, written=2, refused=1))
        'received=3 written=2 refused=1'

    """

    received: int = 0
    written: int = 0
    refused: int = 0
    dropped: int | None = None

    def __str__(self) -> str:
        dropped = "" if self.dropped is None else f" dropped={self.dropped}"
        return f"received={self.received} written={self.written}{dropped} refused={self.refused}"
