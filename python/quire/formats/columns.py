"""Messages as three columns: their indexes, their offsets, and their bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from quire._native import Excerpt

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from quire.formats.protocols import AnyTailer


@dataclass(frozen=True, slots=True)
class Columns:
    """
    Consecutive messages in the layout of an Arrow binary column.

    Attributes:
        indexes: The index of each message (64 bits).
        offsets: The start of each message in *data*, and the end of the last (32 bits).
        data: The concatenated payloads.
        is_wire: Whether the payloads are BinaryWire; otherwise they are arbitrary bytes.
        is_metadata: Whether they are metadata instead of messages.

    """

    indexes: memoryview
    offsets: memoryview
    data: memoryview
    is_wire: bool = True
    is_metadata: bool = False

    @classmethod
    def of(
        cls,
        indexes: Buffer,
        offsets: Buffer,
        data: Buffer,
        *,
        is_wire: bool = True,
        is_metadata: bool = False,
    ) -> Columns:
        """Return columns from the buffers that a tailer fills."""
        return cls(
            memoryview(indexes).cast("B").cast("Q"),
            memoryview(offsets).cast("B").cast("i"),
            memoryview(data),
            is_wire,
            is_metadata,
        )

    @classmethod
    def of_payloads(
        cls, indexes: Iterable[int], payloads: Sequence[bytes], **kind: bool
    ) -> Columns:
        """Return columns of messages and their indexes; *kind* has the other attributes."""
        offsets = array("i", accumulate(map(len, payloads), initial=0))
        return cls.of(array("Q", indexes), offsets, b"".join(payloads), **kind)

    @classmethod
    def of_one(cls, index: int, payload: bytes, **kind: bool) -> Columns:
        """Return columns of one message."""
        return cls.of_payloads([index], [payload], **kind)

    @classmethod
    def empty(cls) -> Columns:
        """Return columns without messages."""
        return cls.of(b"", bytes(4), b"")

    @classmethod
    def read(
        cls,
        tailer: AnyTailer,
        count: int,
        *,
        max_bytes: int | None = None,
        end: int = 2**63 - 1,
        is_wire: bool = True,
    ) -> Columns:
        """
        Return the next messages of a tailer of any format; none if there are none yet.

        Args:
            tailer: The tailer.
            count: The most messages.
            max_bytes: The most bytes of all messages together, except that one is always returned.
            end: Only messages before this index.
            is_wire: Whether its messages are BinaryWire.

        """
        _, *buffers = tailer._read_columns(count, max_bytes=max_bytes, end=end)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return cls.of(*buffers, is_wire=is_wire)

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """Return the messages of several parts, in order."""
        if len(parts) == 1:
            return parts[0]
        payloads = [bytes(part.payload(it)) for part in parts for it in range(len(part))]
        return cls.of_payloads([it for part in parts for it in part.indexes], payloads)

    @property
    def buffers(self) -> tuple[memoryview, memoryview, memoryview]:
        """The three columns, in the form that the kernel expects."""
        return self.indexes, self.offsets, self.data

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

    def reversed(self) -> Columns:
        """Return the messages in the opposite order."""
        payloads = [bytes(self.payload(it)) for it in range(len(self) - 1, -1, -1)]
        kind = {"is_wire": self.is_wire, "is_metadata": self.is_metadata}
        return self.of_payloads([*self.indexes[::-1]], payloads, **kind)

    def part(self, first: int, past: int) -> Columns:
        """Return the messages from one place to another (exclusive), with offsets from 0."""
        offsets = self.offsets[first : past + 1]
        start, end = offsets[0], offsets[-1]
        if start:
            offsets = memoryview(array("i", [offset - start for offset in offsets]))
        return replace(
            self, indexes=self.indexes[first:past], offsets=offsets, data=self.data[start:end]
        )
