"""Delivered messages: the columns that hold them, and the claims that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from quire._native import split_payloads

if TYPE_CHECKING:
    from quire._native import Claim
    from quire.formats.columns import Columns


class Chunk:
    """
    Messages that were read together, split into payloads once.

    Args:
        columns: The messages.

    Attributes:
        columns: The messages.
        indexes: The index of each.

    """

    __slots__ = ("_payloads", "_rows", "_words", "columns", "indexes")

    def __init__(self, columns: Columns) -> None:
        """Split nothing yet."""
        self.columns, self._words = columns, columns.indexes.cast("B")
        self.indexes: list[int] = columns.indexes.tolist()
        self._payloads: list[bytes] | None = None
        self._rows: dict[int, int] | None = None

    def part_of(self, first: int, pending: int, step: int) -> Part:
        """Return the pending messages of a claim by its first index, as far as they are here."""
        if pending == 1:  # as of all claims with a key
            row = self.row_of(first)
            return Part(self, (), (), 0) if row is None else Part(self, (row,), (0,), 1)
        wanted = [place for place in range(pending.bit_length()) if pending >> place & 1]
        found = [(self.row_of(first + place * step), place) for place in wanted]
        places = [place for row, place in found if row is not None]
        return Part.at(self, [row for row, _ in found if row is not None], places)

    def row_of(self, index: int) -> int | None:
        """Return the row of a message; None if it is not among them."""
        if self._rows is None:
            self._rows = {index: row for row, index in enumerate(self.indexes)}
        return self._rows.get(index)

    def indexes_from(self, row: int, count: int | None = None) -> memoryview:
        """Return the indexes of *count* messages from a row on, or of all, as the kernel does."""
        return self._words[8 * row : None if count is None else 8 * (row + count)]

    def payload(self, row: int) -> bytes | memoryview:
        """Return the bytes of one message."""
        return self.columns.payload(row) if self._payloads is None else self._payloads[row]

    @property
    def payloads(self) -> list[bytes]:
        """The bytes of each message."""
        if self._payloads is None:
            self._payloads = split_payloads(self.columns.offsets, self.columns.data)
        return self._payloads


class Part:
    """
    Messages of a claim.

    Attributes:
        chunk: Messages, these and others.
        rows: Which of them they are.
        places: The place of each in the claim.
        bits: A bit for each message, at its place in the claim.

    """

    __slots__ = ("bits", "chunk", "places", "rows")

    def __init__(self, chunk: Chunk, rows: Sequence[int], places: Sequence[int], bits: int) -> None:
        """Keep the messages and their places."""
        self.chunk, self.rows, self.places, self.bits = chunk, rows, places, bits

    @classmethod
    def at(cls, chunk: Chunk, rows: Sequence[int], places: Sequence[int]) -> Part:
        """Return the messages at these places."""
        return cls(chunk, rows, places, sum(1 << place for place in places))

    def split(self) -> tuple[Part, Part]:
        """Return the first message, and all but the first."""
        chunk, rows, places = self.chunk, self.rows, self.places
        return Part.at(chunk, rows[:1], places[:1]), Part.at(chunk, rows[1:], places[1:])

    def without(self, bits: int) -> Part:
        """Return the messages that have none of these bits."""
        if not bits & self.bits:
            return self
        kept = [at for at, place in enumerate(self.places) if not bits >> place & 1]
        rows, places = self.rows, self.places
        return Part.at(self.chunk, [rows[at] for at in kept], [places[at] for at in kept])

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self.rows)

    def __getitem__(self, number: int) -> tuple[int, int, bytes]:
        """Return the bit of a message in its claim, its index and its bytes."""
        row = self.rows[number]
        return 1 << self.places[number], self.chunk.indexes[row], self.chunk.payloads[row]

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the same of all messages."""
        indexes, payloads = self.chunk.indexes, self.chunk.payloads
        for row, place in zip(self.rows, self.places, strict=True):
            yield 1 << place, indexes[row], payloads[row]


Row: TypeAlias = "tuple[Claim, int, int, bytes]"
"""A claim, the bit of a message in it, its index and its bytes."""

Parts: TypeAlias = "list[tuple[Claim, Part]]"
"""Messages of claims, in the order in which they are delivered."""


class Delivered:
    """
    Messages of claims, in the order in which they were delivered.

    Args:
        parts: The messages.

    """

    def __init__(self, parts: Parts) -> None:
        """Keep the messages."""
        self._parts = parts
        self._count = sum(part.bits.bit_count() for _, part in parts)

    def claims(self) -> list[tuple[Claim, int]]:
        """Return each claim, and the bits of its messages."""
        return [(claim, part.bits) for claim, part in self._parts]

    def payloads(self) -> list[bytes]:
        """Return the bytes of all messages."""
        found: list[bytes] = []
        for _, part in self._parts:
            payloads, rows = part.chunk.payloads, part.rows
            if isinstance(rows, range):  # as of all new claims without a key
                found += payloads[rows.start : rows.stop]
            else:
                found += [payloads[row] for row in rows]
        return found

    def at(self, place: int) -> Row:
        """Return the message at a place."""
        for claim, part in self._parts:
            if place < len(part):
                return (claim, *part[place])
            place -= len(part)
        raise IndexError(place)

    def __len__(self) -> int:
        """Return how many messages there are."""
        return self._count

    def __iter__(self) -> Iterator[Row]:
        """Yield the messages."""
        for claim, part in self._parts:
            indexes, payloads = part.chunk.indexes, part.chunk.payloads
            if part.bits == 1:  # as of all claims with a key
                row = part.rows[0]
                yield claim, 1, indexes[row], payloads[row]
                continue
            for row, place in zip(part.rows, part.places, strict=True):
                yield claim, 1 << place, indexes[row], payloads[row]
