"""Counts the messages between two points of a queue without opening files each time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from quire.formats.adapters import adapter_of, count_of, cycles_of, numbering_of
from quire.formats.protocols import AnyQueue


class Point(NamedTuple):
    """The place of a message or of the next one; cycle 0 if the format has no cycles."""

    cycle: int
    sequence: int


class Counts:
    """
    The messages of finished cycles, each counted once.

    Args:
        queue: The queue.

    """

    def __init__(self, queue: AnyQueue) -> None:
        """Start without counting."""
        self._queue = queue
        self._numbering = numbering_of(queue)
        self._is_flat = not adapter_of(queue).has_cycles
        self._known: dict[int, int] = {}
        self._cycles: list[int] = []  # finished ones, from the oldest requested one
        self._before: list[int] = [0]  # messages before each of them, and before the present cycle
        self._oldest = self._present = 1 << 63

    def point_of(self, index: int) -> Point:
        """Return the point of an index."""
        if self._is_flat:
            return Point(0, index // self._numbering.step)
        return Point(self._numbering.to_cycle(index), self._numbering.to_sequence(index))

    def between(self, start: Point, end: Point) -> int:
        """
        Return the number of messages from *start* to *end*, which is in the last cycle.

        Raises:
            CorruptError: A roll file between the two positions is damaged.

        """
        if start >= end:
            return 0
        if start.cycle == end.cycle:
            return end.sequence - start.sequence
        if end.cycle != self._present or start.cycle < self._oldest:
            self._count(min(start.cycle, self._oldest), end.cycle)
        at = bisect_right(self._cycles, start.cycle)
        own = bisect_left(self._cycles, start.cycle)
        unread = 0 if own == at else max(0, self._known[start.cycle] - start.sequence)
        return unread + self._before[-1] - self._before[at] + end.sequence

    def _count(self, oldest: int, present: int) -> None:
        """Count the cycles that finished since, or are older than those counted so far."""
        self._cycles = [it for it in cycles_of(self._queue) if oldest <= it < present]
        self._before = [0]
        for cycle in self._cycles:
            if cycle not in self._known:
                self._known[cycle] = count_of(self._queue, cycle)
            self._before.append(self._before[-1] + self._known[cycle])
        self._oldest, self._present = oldest, present
