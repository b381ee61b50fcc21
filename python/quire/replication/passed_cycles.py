"""What comes to cycles before those that a sink has been sent."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Final

from quire.errors import QuireError
from quire.handles.journal.queue import JournalQueue

_MOST_OPEN: Final = 8
_QUIET_CHECKS: Final = 60
"""Each new connection puts later cycles aside and sends them again: not for every message."""


class PassedCycles:
    """
    The cycles of a source that one sink was sent, or compares when it connects.

    A process whose clock is late, as Java's may be, or somebody who restores a file, makes a cycle
    before those, or appends to one that has not ended. What reads for the sink does not go back; a
    new connection compares all cycles.

    Args:
        queue: The source's queue.

    """

    def __init__(self, queue: JournalQueue) -> None:
        self._queue = queue
        cycles = queue.cycles
        self._known = set(cycles)
        self._newest: int | None = None
        self._passed = {it: self._messages_in(it) for it in cycles[-_MOST_OPEN:]}
        self._grown: dict[int, tuple[int, int]] = {}

    def note(self, next_index: int) -> None:
        """Note that the sink has, or is sent, the messages before an index."""
        cycle = self._queue.roll_cycle.to_cycle(next_index)
        before, self._newest = self._newest, cycle
        if before == cycle:
            return
        self._known.add(cycle)
        if before is not None:
            passed = [it for it in self._queue.cycles if before <= it < cycle]
            self._passed.update((it, self._messages_in(it)) for it in passed[-_MOST_OPEN:])

    def missed(self, next_index: int) -> int | None:
        """
        Return the first cycle with messages that the sink was not sent before later ones, if any.

        Call it about once a second. Messages that are appended to a known cycle count once no
        others have come for a minute.

        Args:
            next_index: What follows the last message that it was sent.

        """
        newest = self._queue.roll_cycle.to_cycle(next_index)
        for cycle, following in pairwise(self._queue.cycles):
            if cycle >= newest:
                break
            if cycle not in self._known and self._has_messages(cycle, following):
                return cycle
        return self._grown_before(newest)

    def _grown_before(self, newest: int) -> int | None:
        """Return the first known cycle to which messages were appended, if no more are coming."""
        passed = sorted(it for it in list(self._passed) if it < newest)
        for cycle in passed[:-_MOST_OPEN]:
            del self._passed[cycle]
        for cycle in passed[-_MOST_OPEN:]:
            found = self._end_of(cycle)
            if found is None:
                continue
            _, messages, is_ended = found
            if messages > self._passed[cycle]:
                before, checks = self._grown.get(cycle, (0, 0))
                checks = checks + 1 if before == messages else 0
                self._grown[cycle] = messages, checks
                if is_ended or checks >= _QUIET_CHECKS:
                    return cycle
            elif is_ended:
                del self._passed[cycle]
        return None

    def _messages_in(self, cycle: int) -> int:
        found = self._end_of(cycle)
        return 0 if found is None else found[1]

    def _end_of(self, cycle: int) -> tuple[int, int, bool] | None:
        with suppress(QuireError, OSError):  # a file that is not ready, or is gone again
            return self._queue.end_of_cycle(cycle)
        return None

    def _has_messages(self, cycle: int, following: int) -> bool:
        first, after = (self._queue.roll_cycle.to_index(it, 0) for it in (cycle, following))
        with suppress(QuireError, OSError):
            return self._queue.count_excerpts(first, after) > 0
        return False
