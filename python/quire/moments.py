"""Times in a queue: the index at which a moment begins."""

from __future__ import annotations

from bisect import bisect_left

from quire.queue import Queue
from quire.tailing import Tailer
from quire.times import TimeField


def index_at(queue: Queue, time_ns: int, field: TimeField | None = None) -> int:
    """
    Return the index at which a moment begins; the next one to come, if it lies ahead.

    Without a field that is the start of the moment's cycle. With one it is the first message whose
    time is not before the moment, found by halving, in a few dozen reads: where times go back here
    and there it is one near it.

    Args:
        queue: The queue.
        time_ns: The moment, in nanoseconds since 1970.
        field: What tells the messages' times.

    """
    last = queue.last_index
    if last is None:
        return 0
    cycles, to_index = queue.cycles, queue.roll_cycle.to_index
    if field is None:
        wanted = max(queue.roll_cycle.cycle_at(time_ns // 1_000_000, queue.epoch_ms), 0)
        cycle = next((cycle for cycle in cycles if cycle >= wanted), None)
        return last + 1 if cycle is None else min(to_index(cycle, 0), last + 1)
    with queue.tailer() as tailer:
        times = _Times(queue, tailer, field)
        begun = bisect_left(cycles, time_ns, key=times.of_cycle)
        if not begun:
            return to_index(cycles[0], 0)
        cycle = cycles[begun - 1]
        ended = queue.end_of_cycle(cycle)
        places = range(0 if ended is None else ended[1])
        place = bisect_left(places, time_ns, key=lambda place: times.of(cycle, place))
    if place < len(places) or begun == len(cycles):
        return to_index(cycle, place)
    return min(to_index(cycles[begun], 0), last + 1)


class _Times:
    """The times of messages; one that tells none has that of the next that does."""

    def __init__(self, queue: Queue, tailer: Tailer, field: TimeField) -> None:
        self._to_index = queue.roll_cycle.to_index
        self._tailer = tailer
        self._field = field

    def of_cycle(self, cycle: int) -> int:
        """Return the time at which a cycle begins."""
        return self.of(cycle, 0)

    def of(self, cycle: int, sequence: int) -> int:
        """Return the time of a message; one behind all others if none tells any more."""
        if self._tailer.move_to_index(self._to_index(cycle, sequence)):
            for payload in self._tailer.payloads():
                time_ns = self._field.of(payload)
                if time_ns is not None:
                    return time_ns
        return 2**63
