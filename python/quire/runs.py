"""Messages by the cycle: which there are, told by the queue's index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quire.queue import Queue


@dataclass(frozen=True, slots=True)
class Run:
    """Messages of one cycle: *count* of them from *first_index* on."""

    first_index: int
    count: int

    @property
    def end_index(self) -> int:
        """The index behind the last."""
        return self.first_index + self.count


def count_of(queue: Queue, cycle: int) -> int:
    """Return how many messages a cycle has; 0 where its file is missing or not ready."""
    ended = queue.end_of_cycle(cycle)
    return 0 if ended is None else ended[1]


def runs_between(queue: Queue, start: int, end: int) -> Iterator[Run]:
    """Yield the messages from *start* to *end*, which is excluded; none of them is read."""
    cycle_of, sequence_of = queue.roll_cycle.to_cycle, queue.roll_cycle.to_sequence
    if start >= end:
        return
    first_cycle, last_cycle = cycle_of(start), cycle_of(end)
    for cycle in queue.cycles:
        if not first_cycle <= cycle <= last_cycle:
            continue
        low = sequence_of(start) if cycle == first_cycle else 0
        high = count_of(queue, cycle)
        if cycle == last_cycle:
            high = min(high, sequence_of(end))
        if low < high:
            yield Run(queue.roll_cycle.to_index(cycle, low), high - low)
