"""The messages of each cycle, as counted by the queue's index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quire._native import Queue
from quire.errors import CorruptError


@dataclass(frozen=True, slots=True)
class CycleRange:
    """Messages of one cycle: *count* of them from *first_index* on."""

    first_index: int
    count: int

    @property
    def end_index(self) -> int:
        """The index after the last message."""
        return self.first_index + self.count


def count_of(queue: Queue, cycle: int) -> int:
    """
    Return how many messages a cycle has; 0 where its file is missing or being made.

    Raises:
        CorruptError: The file is damaged, or not ready although a later one has messages.

    """
    ended = queue.end_of_cycle(cycle)
    return 0 if ended is None else ended[1]


def first_index_of(queue: Queue) -> int | None:
    """
    Return the index of the oldest message; None if there is none.

    Raises:
        CorruptError: A file that may hold it is damaged; ``Queue.first_index`` passes over it.

    """
    found = (cycle for cycle in queue.cycles if count_of(queue, cycle))
    return next((queue.roll_cycle.to_index(cycle, 0) for cycle in found), None)


def cycle_ranges(
    queue: Queue,
    start: int,
    end: int,
    skipped: Callable[[CorruptError], object] | None = None,
) -> Iterator[CycleRange]:
    """
    Yield the ranges from *start* to *end* (exclusive) cycle by cycle; no message is read.

    Args:
        queue: The queue.
        start: The first index.
        end: The index after the last.
        skipped: Called with the error of each damaged cycle, which is skipped; None: raise it.

    Raises:
        CorruptError: A file is damaged.

    """
    cycle_of, sequence_of = queue.roll_cycle.to_cycle, queue.roll_cycle.to_sequence
    if start >= end:
        return
    first_cycle, last_cycle = cycle_of(start), cycle_of(end)
    for cycle in queue.cycles:
        if not first_cycle <= cycle <= last_cycle:
            continue
        low = sequence_of(start) if cycle == first_cycle else 0
        try:
            high = count_of(queue, cycle)
        except CorruptError as error:
            if skipped is None:
                raise
            skipped(error)
            continue
        if cycle == last_cycle:
            high = min(high, sequence_of(end))
        if low < high:
            yield CycleRange(queue.roll_cycle.to_index(cycle, low), high - low)
