"""Messages as three columns: their indexes, where each starts, and their bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quire._native import Excerpt

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from quire.formats.protocols import AnyTailer


@dataclass(frozen=True, slots=True)
class Columns:
    """
    Consecutive messages, as an Arrow binary column has them.

    Attributes:
        indexes: The index of each message (64 bits).
        offsets: Where each starts in *data*, and where the last ends (32 bits).
        data: The concatenated payloads.

    """

    indexes: memoryview
    offsets: memoryview
    data: memoryview

    @classmethod
    def of(cls, indexes: Buffer, offsets: Buffer, data: Buffer) -> Columns:
        """Return columns of the buffers that a tailer fills."""
        return cls(
            memoryview(indexes).cast("B").cast("Q"),
            memoryview(offsets).cast("B").cast("i"),
            memoryview(data),
        )

    @classmethod
    def of_one(cls, index: int, payload: bytes) -> Columns:
        """Return columns of one message."""
        return cls.of(array("Q", [index]), array("i", [0, len(payload)]), payload)

    @classmethod
    def empty(cls) -> Columns:
        """Return columns of no message."""
        return cls.of(b"", bytes(4), b"")

    @classmethod
    def read(
        cls,
        tailer: AnyTailer,
        count: int,
        *,
        max_bytes: int | None = None,
        end: int = 2**63 - 1,
    ) -> Columns:
        """
        Return the next messages of a tailer, of whatever format; none where nothing is there yet.

        Args:
            tailer: The tailer.
            count: How many at most.
            max_bytes: End before the messages have more bytes than this in all, but for one.
            end: Only messages before this index.

        """
        _, *buffers = tailer._read_columns(count, max_bytes=max_bytes, end=end)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return cls.of(*buffers)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.indexes)

    def payload(self, number: int) -> memoryview:
        """Return the bytes of one message."""
        return self.data[self.offsets[number] : self.offsets[number + 1]]

    def excerpt(self, number: int) -> Excerpt:
        """Return one message with its index."""
        return Excerpt(self.indexes[number], bytes(self.payload(number)))

    def excerpts(self) -> Iterator[Excerpt]:
        """Yield each message with its index."""
        return map(self.excerpt, range(len(self)))

    def until(self, past: int) -> Columns:
        """Return the messages with lower indexes."""
        return self.part(0, bisect_left(self.indexes, past))

    def part(self, first: int, past: int) -> Columns:
        """Return the messages from one place to another (exclusive), with offsets from 0."""
        offsets = self.offsets[first : past + 1]
        start, end = offsets[0], offsets[-1]
        if start:
            offsets = memoryview(array("i", [offset - start for offset in offsets]))
        return Columns(self.indexes[first:past], offsets, self.data[start:end])
