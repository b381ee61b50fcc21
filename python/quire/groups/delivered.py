"""Delivered messages: claims, and the parts of columns that hold their messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from quire.formats.columns import Columns

ClaimRow: TypeAlias = tuple[tuple[int, int, int], int, bool, bool, list[int], int]
"""A claim as the kernel returns it."""


class Claim:
    """
    A range of at most 32 messages that a consumer works on.

    Attributes:
        key: The claim's slot, its generation (which changes with its owner) and the index of its
            first message. Slots and generations are reused; all three together are unique.
        first: The index of the first message.
        pending: A bit for each message that is neither acknowledged nor lost.
        refused: A bit for each message that is to be delivered again.
        is_new: Whether its timeout has just started.
        is_single: Whether its messages are delivered one at a time.
        counted: A bit for each message whose delivery has been counted.
        counts: How often each message was delivered.
        hash: The hash of the key of its only message.

    """

    __slots__ = (
        "counted",
        "counts",
        "first",
        "hash",
        "is_new",
        "is_single",
        "key",
        "pending",
        "refused",
    )

    def __init__(self, row: ClaimRow) -> None:
        """Take what the kernel returned."""
        self.key, self.pending, self.is_single, is_counted, self.counts, self.hash = row
        self.first = self.key[2]
        self.counted = self.pending if is_counted else 0
        self.refused, self.is_new = 0, False

    def count(self, bits: int) -> None:
        """Count messages as delivered, as the kernel does, unless they already are."""
        for place in range(bits.bit_length()):
            if (bits & ~self.counted) >> place & 1:
                self.counts[place] = min(self.counts[place] + 1, 255)
        self.counted |= bits

    def count_of(self, bit: int) -> int:
        """Return how often a message was delivered."""
        return self.counts[bit.bit_length() - 1]


class Part:
    """
    Messages of a claim.

    Args:
        columns: Indexes, offsets and bytes of messages, these and others.
        rows: Which of them they are.
        places: The place of each in the claim.

    """

    __slots__ = ("_columns", "_places", "_rows")

    def __init__(self, columns: Columns, rows: Sequence[int], places: Sequence[int]) -> None:
        """Keep the columns and the places."""
        self._columns, self._rows, self._places = columns, rows, places

    @property
    def bits(self) -> int:
        """A bit for each message, at its place in the claim."""
        return sum(1 << place for place in self._places)

    def split(self) -> tuple[Part, Part]:
        """Return the first message, and all but the first."""
        columns, rows, places = self._columns, self._rows, self._places
        return Part(columns, rows[:1], places[:1]), Part(columns, rows[1:], places[1:])

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self._rows)

    def __getitem__(self, number: int) -> tuple[int, int, bytes]:
        """Return the bit of a message in its claim, its index and its bytes."""
        columns, row = self._columns, self._rows[number]
        return 1 << self._places[number], columns.indexes[row], bytes(columns.payload(row))

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the same of all messages."""
        return (self[number] for number in range(len(self)))


Row: TypeAlias = tuple[Claim, int, int, bytes]
"""A claim, the bit of a message in it, its index and its bytes."""

Parts: TypeAlias = list[tuple[Claim, Part]]
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
        self._count = sum(len(part) for _, part in parts)

    def claims(self) -> Iterator[tuple[Claim, int]]:
        """Yield each claim, and the bits of its messages."""
        return ((claim, part.bits) for claim, part in self._parts)

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
        return ((claim, *row) for claim, part in self._parts for row in part)
