"""Cycles that appear among those that a sink has been sent."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from quire.errors import QuireError
from quire.handles.journal.queue import JournalQueue


class PassedCycles:
    """
    The cycles of a source that one sink was sent, or compares when it connects.

    A process whose clock is late, as Java's may be, or somebody who restores a file, makes a cycle
    before those. What reads for the sink does not go back; a new connection compares all cycles.

    Args:
        queue: The source's queue.

    """

    def __init__(self, queue: JournalQueue) -> None:
        self._queue = queue
        self._known = set(queue.cycles)

    def note(self, next_index: int) -> None:
        """Note that the sink is sent documents of a cycle."""
        self._known.add(self._queue.roll_cycle.to_cycle(next_index))

    def missed(self, next_index: int) -> int | None:
        """
        Return the first cycle that the sink was not sent although it was sent later ones, if any.

        Args:
            next_index: What follows the last message that it was sent.

        """
        newest = self._queue.roll_cycle.to_cycle(next_index)
        for cycle, following in pairwise(self._queue.cycles):
            if cycle >= newest:
                break
            if cycle not in self._known and self._has_messages(cycle, following):
                return cycle
        return None

    def _has_messages(self, cycle: int, following: int) -> bool:
        first, after = (self._queue.roll_cycle.to_index(it, 0) for it in (cycle, following))
        with suppress(QuireError, OSError):  # a file that is not ready, or is gone again
            return self._queue.count_excerpts(first, after) > 0
        return False
