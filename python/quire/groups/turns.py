"""Reads of a consumer that a signal may interrupt anywhere, and its handler may repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.groups.delivered import Parts


class Turn:
    """
    One read, until its messages are in the caller's hands.

    A signal handler runs between two calls: stores without a call in between are one step. A read
    that a signal ended, or that a handler overtook by reading itself, leaves its messages to the
    next read.

    Attributes:
        thread: Its thread.
        parts: The messages that it is about to return.
        is_done: Whether it has returned them.
        is_failed: Whether it ended in another way.
        is_stolen: Whether a read in a signal's handler took what it had.

    """

    __slots__ = ("is_done", "is_failed", "is_stolen", "parts", "thread")

    def __init__(self, thread: int) -> None:
        """Begin without messages."""
        self.thread = thread
        self.parts: Parts = []
        self.is_done = self.is_failed = self.is_stolen = False
