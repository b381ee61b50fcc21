"""What a cycle of a queue is still needed for: readers that have not left it, and writers."""

from __future__ import annotations

from typing import NamedTuple

from quire._positions import stored_position
from quire.errors import CorruptError
from quire.queue import Queue


class Holder(NamedTuple):
    """
    A named reader that resumes where it stopped.

    Attributes:
        kind: What it is, in words.
        name: Its name.
        next: The index it reads next.
        cycle: The cycle of that index, which it needs with all later ones; -1: all cycles.

    """

    kind: str
    name: str
    next: int
    cycle: int

    @property
    def reason(self) -> str:
        """Why a cycle from its own on is kept."""
        return f"kept for a named tailer: tailer={self.name} next={self.next:#x}"


def holders_of(queue: Queue) -> list[Holder]:
    """
    Return the named readers of a queue.

    The cycle that a tailer is in is needed even if it was read to its end, as the tailer could not
    know that when it is opened again.
    """
    return [
        Holder("named tailer", name, index, stored_position(queue, index)[0])
        for name, index in queue.named_tailers()
    ]


def growth_of(queue: Queue, cycle: int) -> str | None:
    """Return why a cycle could still get messages, or cannot be judged; None if it is finished."""
    try:
        end = queue.end_of_cycle(cycle)
    except CorruptError as error:
        return f"kept as it is damaged: {error} (see `quire verify`)"
    if end is None:
        return "kept as it was never completed: Java could append (see `quire verify`)"
    if not end[2]:
        return "kept as it has no end-of-file marker: Java could append (see normalise_eofs)"
    return None


def reader_in(holders: list[Holder], cycle: int) -> str | None:
    """Return which reader still needs a cycle; None if all are in later ones."""
    return next((holder.reason for holder in holders if holder.cycle <= cycle), None)
