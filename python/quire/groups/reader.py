"""How a member reads its messages: by index, through its own tailers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quire._native import Excerpt, QuickExcerpt, Tailer
from quire.errors import IndexOutOfRangeError
from quire.formats.adapters import adapter_of, journal_of, numbering_of, tailer_of
from quire.formats.columns import Columns
from quire.groups.delivered import Chunk

if TYPE_CHECKING:
    from quire._waiting.sleeping import Sleeper
    from quire.formats.protocols import AnyQueue, AnyTailer

_BATCH_BYTES: Final = 8 * 2**20
_KEPT: Final = 32
"""How many messages are read at once for a member that claims one at a time."""
_KEPT_BYTES: Final = 64 * 2**10


class Reader:
    """Two tailers: one goes ahead, one back to messages that are delivered again."""

    def __init__(self, queue: AnyQueue, on_missing: str = "skip") -> None:
        """Open them at the first message; what *on_missing* says is that of the one ahead."""
        self._queue = queue
        journal = journal_of(queue)
        if journal is None:
            self._ahead: AnyTailer = tailer_of(queue)
            self._again: AnyTailer = tailer_of(queue)
        else:
            self._ahead = Tailer(journal, on_missing=on_missing)
            self._again = Tailer(journal, on_missing="skip")  # the member says what is gone
        self._kept = Chunk(Columns.empty())
        self._adapter = adapter_of(queue)
        self._numbering = numbering_of(queue)
        self.step = self._numbering.step
        is_sealed = journal is not None and journal._keyed_hash(b"") is not None  # noqa: SLF001
        self._sealed = journal if is_sealed else None

    @property
    def sleeper(self) -> Sleeper:
        """The tailer that goes ahead: it is due once there is a message where it stopped."""
        return self._ahead

    def ahead(self, index: int, count: int) -> tuple[Chunk, int]:
        """Return messages and the row of the first from an index on, 0 for the first of all."""
        row = self._kept.row_of(index)
        if row is not None and count == 1:
            return self._kept, row
        if not index:
            self._ahead.to_start()
        elif self._ahead.index != index:
            # False at the end of a cycle, too: the messages that follow are read next.
            self._ahead.move_to_index(index)
        columns = Columns.empty()
        if index and count == 1:
            # Of this cycle alone: the next one may still be deleted, and that is to be reported.
            end = self._numbering.to_index(self._numbering.to_cycle(index) + 1, 0)
            columns = Columns.read(self._ahead, _KEPT, max_bytes=_KEPT_BYTES, end=end)
        is_kept = len(columns) > 0
        if not is_kept:
            columns = Columns.read(self._ahead, count, max_bytes=_BATCH_BYTES)
        if len(columns) and columns.indexes[0] < index:
            columns = Columns.empty()  # the index is in a lost cycle
        found = Chunk(columns)
        if is_kept:
            self._kept = found
        return found, 0

    def between(self, first: int, end: int, *, is_bounded: bool = False) -> Columns:
        """Return what is left from one index up to another, exclusive; if asked, 8 MiB at most."""
        try:
            self._again.move_to_index(first)
        except IndexOutOfRangeError:
            return Columns.empty()
        most = _BATCH_BYTES if is_bounded else None
        return Columns.read(self._again, (end - first) // self.step, max_bytes=most, end=end)

    def stored(self, index: int, data: bytes | memoryview) -> bytes | memoryview:
        """Return what a message is known again by: of an encrypted one, nothing that is plain."""
        if self._sealed is None:
            return data
        return self._sealed._stored_at(index) or b""  # noqa: SLF001

    def excerpt(self, index: int, data: bytes) -> Excerpt | QuickExcerpt:
        """Return a message as a tailer would."""
        found: Excerpt | QuickExcerpt = self._adapter.excerpt(self._queue, index, data)
        return found

    def close(self) -> None:
        """Close the tailers."""
        self._ahead.close()
        self._again.close()
