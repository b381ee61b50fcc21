"""What was delivered: claims, and the parts of columns that hold their messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from quire.groups.reader import Columns


class Claim:
    """
    A range of at most 32 messages that a consumer works on.

    Attributes:
        key: The slot of the claim, its generation, which changes with its owner, and the index of
            its first message: a slot is used again, and a generation comes again.
        first: The index of the first message.
        deliveries: How often its messages were delivered.
        pending: A bit for each message that is neither acknowledged nor lost.
        refused: A bit for each message that is to be delivered again.

    """

    __slots__ = ("deliveries", "first", "key", "pending", "refused")

    def __init__(self, row: tuple[tuple[int, int, int], int, int]) -> None:
        """Take what the kernel returned."""
        self.key, self.deliveries, self.pending = row
        self.first = self.key[2]
        self.refused = 0


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
        """Keep what the messages are made of."""
        self._columns, self._rows, self._places = columns, rows, places

    @property
    def bits(self) -> int:
        """A bit for each message, at its place in the claim."""
        return sum(1 << place for place in self._places)

    def after_first(self) -> Part:
        """Return all messages but the first."""
        return Part(self._columns, self._rows[1:], self._places[1:])

    def __len__(self) -> int:
        """Return how many messages there are."""
        return len(self._rows)

    def __getitem__(self, number: int) -> tuple[int, int, bytes]:
        """Return the bit of a message in its claim, its index and its bytes."""
        indexes, offsets, data = self._columns
        row = self._rows[number]
        return 1 << self._places[number], indexes[row], bytes(data[offsets[row] : offsets[row + 1]])

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the same of all messages."""
        return (self[number] for number in range(len(self)))


Row: TypeAlias = tuple[Claim, int, int, bytes]
"""A claim, the bit of a message in it, its index and its bytes."""


class Delivered:
    """Messages of claims, in the order in which they were delivered."""

    def __init__(self) -> None:
        """Begin without messages."""
        self._parts: list[tuple[Claim, Part]] = []
        self._count = 0

    def add(self, claim: Claim, part: Part) -> None:
        """Add messages of a claim."""
        self._parts.append((claim, part))
        self._count += len(part)

    def split(self) -> tuple[Row | None, Delivered]:
        """Return the first message, and the others."""
        rest = Delivered()
        if not self._count:
            return None, rest
        (claim, part), *others = self._parts
        if len(part) > 1:
            rest.add(claim, part.after_first())
        for other in others:
            rest.add(*other)
        return (claim, *part[0]), rest

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
