"""Seeking by event time: the index of the first message that is not earlier."""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import Final

from quire.ranges.cycles import count_of, cycles_of, end_index_of
from quire.ranges.event_time import TimeField, datetime_of
from quire.ranges.numbering import AnyQueue, AnyTailer, Numbering, Periods, tailer_of

# Messages without an event time are skipped, up to a limit: the name may be mistyped.
_LOOK_MAX: Final = 10_000
_NEVER: Final = 2**63
NO_INDEX: Final = 2**63 - 1
"""An index that no message has."""


def index_at_time(queue: AnyQueue, time_ns: int, field: TimeField | None = None) -> int:
    """
    Return the index of the first message not earlier than a time; the next index if none is.

    Without a field, that is the start of the cycle of the time. With one, the message is found by
    binary search: where event times are slightly out of order, the result is a message near it. A
    message without an event time counts as one with that of the next message that has one.

    Args:
        queue: The queue.
        time_ns: The time, in nanoseconds of the epoch.
        field: The field that holds the event time.

    Raises:
        ValueError: No message has the field, or none in a long range.

    """
    end = end_index_of(queue)
    if not end:
        return 0
    cycles, to_index = cycles_of(queue), Numbering.of(queue).to_index
    if field is None:
        wanted = max(Periods.of(queue).cycle_at(time_ns // 1_000_000), 0)
        cycle = next((cycle for cycle in cycles if cycle >= wanted), None)
        return end if cycle is None else min(to_index(cycle, 0), end)
    with tailer_of(queue) as tailer:
        times = _Times(queue, tailer, field, cycles)
        if times.of_cycle(cycles[0]) == _NEVER:
            raise times.missing(cycles[0])
        begun = bisect_left(cycles, time_ns, key=times.of_cycle)
        if not begun:
            return to_index(cycles[0], 0)
        cycle = cycles[begun - 1]
        places = range(count_of(queue, cycle))
        place = bisect_left(places, time_ns, key=lambda place: times.of(cycle, place))
    if place < len(places) or begun == len(cycles):
        return to_index(cycle, place)
    return min(to_index(cycles[begun], 0), end)


def check_cycle_start(queue: AnyQueue, time_ns: int) -> None:
    """
    Check that a time is the start of a cycle.

    Raises:
        ValueError: It is not: its cycle's messages cannot be ordered relative to it.

    """
    periods = Periods.of(queue)
    time_ms, rest = divmod(time_ns, 1_000_000)
    start_ms = periods.start_ms(periods.cycle_at(time_ms))
    if rest or time_ms != start_ms:
        time, start = datetime_of(time_ns), datetime_of(start_ms * 1_000_000)
        raise ValueError(
            f"nothing tells which messages of a cycle came before a time: time={time.isoformat()}"
            f" roll_cycle={periods.name} cycle_start={start.isoformat()};"
            " give the start of a cycle, an index, or the field of the messages that holds a time"
        )


def first_at(queue: AnyQueue, time_ns: int, time_field: str | None = None) -> int | None:
    """
    Return the index of the first message that is not earlier than a time; None if there is none.

    Args:
        queue: The queue.
        time_ns: The time, in nanoseconds since 1970.
        time_field: The field that holds a message's time. Without it, the time of a message is
            that of its cycle, so the time must be the start of a cycle that has messages.

    Raises:
        ValueError: The time lies within a cycle that has messages, or no message has the field.

    """
    if queue.last_index is None:
        return None
    field = None if time_field is None else TimeField(time_field)
    if field is None:
        time_ms = time_ns // 1_000_000
        periods = Periods.of(queue)
        if time_ms < periods.epoch_ms:
            return queue.first_index
        if count_of(queue, periods.cycle_at(time_ms)):
            check_cycle_start(queue, time_ns)
    index = first_from(queue, index_at_time(queue, time_ns, field))
    return None if index == NO_INDEX else index


def first_from(queue: AnyQueue, index: int) -> int:
    """Return the index of the first message that does not lie before *index*."""
    numbering = Numbering.of(queue)
    cycle, sequence = numbering.to_cycle(index), numbering.to_sequence(index)
    for one in cycles_of(queue):
        low = sequence if one == cycle else 0
        if one >= cycle and count_of(queue, one) > low:
            return numbering.to_index(one, low)
    return NO_INDEX


class _Times:
    """Event times; a message without one has that of the next that has one."""

    def __init__(
        self, queue: AnyQueue, tailer: AnyTailer, field: TimeField, cycles: list[int]
    ) -> None:
        self._queue = queue
        self._tailer = tailer
        self._field = field
        self._cycles = cycles
        self._to_index = Numbering.of(queue).to_index

    def of_cycle(self, cycle: int) -> int:
        """Return the event time of a cycle's first message; of an empty one, that of the next."""
        for one in self._cycles[bisect_left(self._cycles, cycle) :]:
            if self._tailer.move_to_index(self._to_index(one, 0)):
                return self._next(one)
        return _NEVER

    def of(self, cycle: int, sequence: int) -> int:
        """Return the event time of a message; `_NEVER` if none follows."""
        if self._tailer.move_to_index(self._to_index(cycle, sequence)):
            return self._next(cycle)
        return _NEVER

    def missing(self, cycle: int, looked: str = "all") -> ValueError:
        """Return the error for a field that no message has."""
        return ValueError(
            f"no message tells a time: field={self._field.name} path={self._queue.path}"
            f" from={self._to_index(cycle, 0):#x} looked_at={looked}"
        )

    def _next(self, cycle: int) -> int:
        looked = 0
        for payload in islice(self._tailer.payloads(), _LOOK_MAX):
            time_ns = self._field.of(payload)
            if time_ns is not None:
                return time_ns
            looked += 1
        if looked == _LOOK_MAX:
            raise self.missing(cycle, str(looked))
        return _NEVER
