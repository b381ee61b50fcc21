"""Ranges of indexes, cycle by cycle; of a Quick-Queue, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from quire.errors import CorruptError
from quire.formats.adapters import count_of, cycles_of, numbering_of
from quire.formats.protocols import AnyQueue


class CycleRange(NamedTuple):
    """
    Consecutive indexes of one cycle, each *step* after the one before.

    In the older formats some may have no message: see :attr:`Numbering.is_dense`.
    """

    first_index: int
    count: int  # type: ignore[assignment] # pyright: ignore[reportIncompatibleMethodOverride]
    step: int = 1

    @property
    def end_index(self) -> int:
        """The index after the last message."""
        return self.index_at(self.count)

    def index_at(self, number: int) -> int:
        """Return the index after the first *number* indexes of the range."""
        return self.first_index + number * self.step

    def split(self, count: int) -> tuple[CycleRange, CycleRange]:
        """Split the range after *count* indexes."""
        return (
            CycleRange(self.first_index, count, self.step),
            CycleRange(self.index_at(count), self.count - count, self.step),
        )

    def until(self, end: int) -> CycleRange:
        """Return the part of the range before an index."""
        before = -((self.first_index - end) // self.step)
        return self.split(max(0, min(self.count, before)))[0]


def cycle_ranges(
    queue: AnyQueue,
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
        CorruptError: A roll file is damaged.

    """
    if start >= end:
        return
    numbering = numbering_of(queue)
    first_cycle, last_cycle = numbering.to_cycle(start), numbering.to_cycle(end)
    for cycle in cycles_of(queue):
        if not first_cycle <= cycle <= last_cycle:
            continue
        low = numbering.to_sequence(start) if cycle == first_cycle else 0
        try:
            high = count_of(queue, cycle)
        except CorruptError as error:
            if skipped is None:
                raise
            skipped(error)
            continue
        if cycle == last_cycle:
            high = min(high, numbering.to_sequence(end))
        if low < high:
            yield CycleRange(numbering.to_index(cycle, low), high - low, numbering.step)
