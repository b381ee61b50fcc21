"""Metadata documents of remote queues, in their places among the messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quire.errors import UnsupportedError
from quire.remote.lacking import FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from quire.formats.remote import Row

_COUNT: Final = 4096


class Documents:
    """
    Documents from a place on, fetched from the server, and how many of them were read.

    Args:
        ask: Sends a command to the server.
        topic: The name of the queue.
        start: The index of the message with which the documents begin.
        is_read: Whether that message was read before.

    """

    def __init__(self, ask: Callable[..., Any], topic: str, start: int, *, is_read: bool) -> None:
        self._ask, self._topic = ask, topic
        self._start, self._done = start, int(is_read)
        self._rows: list[Row] = []
        self.position = start + is_read

    @property
    def is_through(self) -> bool:
        """Whether all documents that the server sent were read."""
        return self._done >= len(self._rows)

    def next(self) -> Row | None:
        """
        Return the next document without moving past it; None if there is none yet.

        Raises:
            UnsupportedError: There is more metadata between two messages than an answer can hold.

        """
        if self.is_through:
            self._fetch()
        return None if self.is_through else self._rows[self._done]

    def _fetch(self) -> None:
        """Ask again from the last message on: what is new may lie before the next message."""
        had_metadata_alone = bool(self._rows)
        for place in range(len(self._rows) - 1, -1, -1):
            if not self._rows[place][2]:
                self._start, self._done = self._rows[place][0], self._done - place
                had_metadata_alone = False
                break
        words = ("QUIRE.READ", self._topic, "FROM", self._start, "COUNT", _COUNT, "METADATA")
        _, rows = self._ask(*words)
        self._rows = [(index, data, bool(flag)) for index, flag, data in rows]
        if self._done and self._start and self._rows:
            index, _, is_metadata = self._rows[0]
            if index != self._start or (had_metadata_alone and not is_metadata):
                self._done = 0  # the message was deleted, or has come where metadata stood
        if self.is_through and self._done >= _COUNT:
            raise UnsupportedError(
                f"not supported in a {FORMAT}: more metadata between two messages than an answer"
                f" holds: limit={_COUNT} index={self._start:#x}"
            )

    def step(self) -> None:
        """Move past the next document."""
        index, _, is_metadata = self._rows[self._done]
        self._done += 1
        self.position = index if is_metadata else index + 1

    def step_back(self, index: int) -> None:
        """Move back to the last document, which has this index."""
        if self._done and self._done <= len(self._rows) and self._rows[self._done - 1][0] == index:
            self._done -= 1
            self.position = index
