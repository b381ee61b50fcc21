"""How a member reads its messages: by index, through its own tailers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quire._native import Excerpt, Queue, QuickExcerpt, QuickQueue, QuickTailer, Tailer
from quire.errors import IndexOutOfRangeError
from quire.ranges.numbering import Numbering

if TYPE_CHECKING:
    from quire.groups.eligible import GroupedQueue

Columns: TypeAlias = tuple[memoryview, memoryview, memoryview]
"""Indexes, offsets and bytes of messages."""

_NOTHING: Final[Columns] = (memoryview(b"").cast("Q"), memoryview(b"").cast("i"), memoryview(b""))
_BATCH_BYTES: Final = 8 * 2**20
_FIELDLESS: Final = "FIELDLESS_BINARY"


class Reader:
    """Two tailers: one goes ahead, one back to messages that are delivered again."""

    def __init__(self, queue: GroupedQueue) -> None:
        """Open them at the first message."""
        self._queue = queue
        self._ahead, self._again = _tailer(queue), _tailer(queue)
        self._is_fieldless = isinstance(queue, Queue) and queue.wire_type == _FIELDLESS
        self.step = Numbering.of(queue).step

    def ahead(self, index: int, count: int) -> tuple[Any, Columns]:
        """Return messages from an index on, 0 for the first; their indexes as a buffer, too."""
        if not index:
            self._ahead.to_start()
        elif self._ahead.index != index:
            # False at the end of a cycle, too: the messages that follow are read next.
            self._ahead.move_to_index(index)
        _, indexes, offsets, data = self._ahead._read_columns(count, max_bytes=_BATCH_BYTES)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        columns = _columns(indexes, offsets, data)
        if len(columns[0]) and columns[0][0] < index:
            return b"", _NOTHING  # the index is in a lost cycle
        return indexes, columns

    def between(self, first: int, end: int) -> Columns:
        """Return the remaining messages from one index up to another, exclusive."""
        try:
            self._again.move_to_index(first)
        except IndexOutOfRangeError:
            return _NOTHING
        count = (end - first) // self.step
        _, *columns = self._again._read_columns(count, end=end)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return _columns(*columns)

    def excerpt(self, index: int, data: bytes) -> Excerpt | QuickExcerpt:
        """Return a message as a tailer would."""
        if isinstance(self._queue, QuickQueue):
            return QuickExcerpt(index, data)
        return Excerpt(index, data, self._is_fieldless)

    def close(self) -> None:
        """Close the tailers."""
        self._ahead.close()
        self._again.close()


def _tailer(queue: GroupedQueue) -> Tailer | QuickTailer:
    return QuickTailer(queue) if isinstance(queue, QuickQueue) else Tailer(queue)


def _columns(indexes: Any, offsets: Any, data: Any) -> Columns:  # noqa: ANN401 - of the kernel
    return memoryview(indexes).cast("Q"), memoryview(offsets).cast("i"), memoryview(data)
