"""Seeking by event time or by key: the index of the first message that is not before it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from quire._common.arguments import shown
from quire._native import Queue
from quire.errors import CorruptError
from quire.formats.adapters import (
    count_of,
    cycles_of,
    end_index_of,
    journal_of,
    numbering_of,
    periods_of,
    tailer_of,
)
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.ranges.event_time import Field, TimeField, datetime_of

# Messages without an event time or key are skipped, up to a limit: the name may be mistyped.
_LOOK_MAX: Final = 10_000
_NEVER_MS: Final = 2**47
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
        ValueError: No message has the field, or none of 10,000 consecutive ones.

    """
    end = end_index_of(queue)
    if not end:
        return 0
    cycles, to_index = cycles_of(queue), numbering_of(queue).to_index
    if field is None:
        wanted = max(periods_of(queue).cycle_at(time_ns // 1_000_000), 0)
        cycle = next((cycle for cycle in cycles if cycle >= wanted), None)
        return end if cycle is None else min(to_index(cycle, 0), end)
    return _search(queue, _from_time(field, time_ns), _missing_time(field))


def first_by_key(queue: AnyQueue, key: Any, by: str | Callable[[Any], Any]) -> int:  # noqa: ANN401
    """
    Return the index of the first message whose key is not less; the next index if there is none.

    Args:
        queue: The queue, in the order of the key.
        key: What to look for.
        by: The field that holds the key, or a function of an excerpt that returns it, or None.

    Raises:
        TypeError: The key of a message cannot be compared with *key*.
        ValueError: No message has a key, or none of 10,000 consecutive ones.

    """
    field = Field(by) if isinstance(by, str) else None

    def is_reached(excerpt: Any) -> bool | None:  # noqa: ANN401 - of any format
        found = by(excerpt) if callable(by) else field and field.of(excerpt.data)
        if found is None:
            return None
        try:
            return not found < key
        except TypeError as error:
            raise TypeError(
                f"the key of a message cannot be compared: index={excerpt.index:#x}"
                f" found={shown(found)} wanted={shown(key)} path={queue.path}"
            ) from error

    name = by if isinstance(by, str) else getattr(by, "__qualname__", type(by).__name__)
    return _search(queue, is_reached, f"no message has the key: by={name}", is_exact=True)


def first_by(queue: AnyQueue, is_reached: Callable[[Any], bool | None]) -> int:
    """
    Return the index of the first message for which a function of an excerpt is true.

    Once it is true it stays so for all later messages; None counts as the answer for the next one.
    """
    return _search(queue, is_reached, "no message can be compared:")


def move(tailer: AnyTailer, queue: AnyQueue, search: Callable[[], int]) -> bool:
    """
    Move a tailer to the index that a search finds; True if a message was there at the start.

    Otherwise the tailer is after the last message of that time: one appended meanwhile may lie
    before what is sought or after it, and is read next.
    """
    end = end_index_of(queue)
    index = first_from(queue, search())
    if end and index < end:
        return tailer.move_to_index(index)
    if end and getattr(tailer, "direction", None) != "backward":
        tailer.move_to_index(end)
    elif end:
        tailer.to_end()
    else:
        tailer.to_start()
    return False


def check_cycle_start(queue: AnyQueue, time_ns: int) -> None:
    """
    Check that a time is the start of a cycle.

    Raises:
        ValueError: The time is not the start of a cycle, whose messages have no order relative to
            the time.

    """
    periods = periods_of(queue)
    time_ms, rest = divmod(time_ns, 1_000_000)
    start_ms = periods.start_ms(periods.cycle_at(time_ms))
    if rest or time_ms != start_ms:
        time, start = datetime_of(time_ns), datetime_of(start_ms * 1_000_000)
        raise ValueError(
            f"cannot seek inside a cycle without a time index: time={time.isoformat()}"
            f" roll_cycle={periods.name} cycle_start={start.isoformat()};"
            " give the start of a cycle, an index, or the field of the messages that holds a time"
            " (--time-field NAME on the command line), or index it: quire time-index QUEUE"
            " --time-field NAME"
        )


def first_at(queue: AnyQueue, time_ns: int, time_field: str | None = None) -> int:
    """
    Return the index of the first message that is not earlier than a time, or one past the last.

    Args:
        queue: The queue.
        time_ns: The time, in nanoseconds since 1970.
        time_field: The field that holds a message's time. Without it, that is the time of its
            append where the cycle has an index of them, and else that of its cycle: then the time
            must be the start of a cycle that has messages.

    Raises:
        ValueError: The time lies within a cycle that has messages and no index, or no message has
            the field.

    """
    if time_field is not None:
        field = TimeField(time_field)
        return _search(queue, _from_time(field, time_ns), _missing_time(field), is_exact=True)
    if (found := by_append_time(queue, time_ns)) is not None:
        return found
    cycle = _cycle_at(queue, time_ns)
    if cycle is not None and count_of(queue, cycle):
        check_cycle_start(queue, time_ns)
    return index_at_time(queue, time_ns)


def by_append_time(queue: AnyQueue, time_ns: int) -> int | None:
    """
    Return the index of the first message appended at or after a time, or one past the last.

    None at the start of a cycle, and where the cycle has no messages or no index of append times,
    unless messages of the cycle before were appended then.
    """
    journal = journal_of(queue)
    if journal is None:
        return None
    time_ms = time_ns // 1_000_000
    if (late := _appended_late(journal, time_ms)) is not None:
        return late
    cycle = _cycle_at(queue, time_ns)
    if cycle is None or not count_of(queue, cycle):
        return None
    if time_ns <= periods_of(queue).start_ms(cycle) * 1_000_000:
        return None
    before = journal._messages_before(cycle, time_ms)  # noqa: SLF001 - the package's own
    if before is None:
        return None
    index = first_from(queue, journal.roll_cycle.to_index(cycle, 0) + before)
    return end_index_of(queue) if index == NO_INDEX else index


def _appended_late(queue: Queue, time_ms: int) -> int | None:
    """
    Return the first message appended at a time or later to the cycle before that time's, if any.

    A writer chooses the cycle by a clock that is a few milliseconds slow, and may wait then.
    """
    cycle = periods_of(queue).cycle_at(time_ms)
    earlier = [it for it in cycles_of(queue) if it < cycle]
    if not earlier:
        return None
    before = queue._messages_before(earlier[-1], time_ms)  # noqa: SLF001 - the package's own
    if before is None or before >= count_of(queue, earlier[-1]):
        return None
    known = queue._messages_before(earlier[-1], _NEVER_MS)  # noqa: SLF001 - the package's own
    if known is None or known <= before:
        return None
    return queue.roll_cycle.to_index(earlier[-1], 0) + before


def _cycle_at(queue: AnyQueue, time_ns: int) -> int | None:
    """Return the cycle of a time; None if that is negative, or after the last message's."""
    cycle, end = periods_of(queue).cycle_at(time_ns // 1_000_000), end_index_of(queue)
    return cycle if end and 0 <= cycle <= numbering_of(queue).to_cycle(end - 1) else None


def first_from(queue: AnyQueue, index: int, *, skips: bool = False) -> int:
    """
    Return the index of the first message that does not lie before *index*.

    Args:
        queue: The queue.
        index: The index.
        skips: A damaged file counts as one with messages; else it is an error.

    Raises:
        CorruptError: A file that may hold the message is damaged.

    """
    numbering = numbering_of(queue)
    cycle, sequence = numbering.to_cycle(index), numbering.to_sequence(index)
    for one in cycles_of(queue):
        low = sequence if one == cycle else 0
        if one < cycle:
            continue
        try:
            has_one = count_of(queue, one) > low
        except CorruptError:
            if not skips:
                raise
            has_one = True
        if has_one:
            return numbering.to_index(one, low)
    return NO_INDEX


def _from_time(field: TimeField, time_ns: int) -> Callable[[Any], bool | None]:
    def is_reached(excerpt: Any) -> bool | None:  # noqa: ANN401 - of any format
        found = field.of(excerpt.data)
        return None if found is None else found >= time_ns

    return is_reached


def _missing_time(field: TimeField) -> str:
    return f"no message has the field: field={field.name}"


def _search(
    queue: AnyQueue,
    is_reached: Callable[[Any], bool | None],
    missing: str,
    *,
    is_exact: bool = False,
) -> int:
    """
    Return the first index where *is_reached* is true; the next index if it is nowhere.

    A message for which it is None counts as the next one that has an answer, unless *is_exact*.
    """
    end = end_index_of(queue)
    cycles = cycles_of(queue)
    if not end or not cycles:
        return end
    with tailer_of(queue) as tailer:
        probe = _Probe(queue, tailer, is_reached, cycles, missing)
        if probe.cycle(cycles[0]) is None:
            raise probe.missing(numbering_of(queue).to_index(cycles[0], 0))
        index = min(_bisect(queue, probe, cycles), end)
        if not is_exact:
            return index
        index = first_from(queue, index)
        return probe.index if index < end and probe.at(index) else end


def _bisect(queue: AnyQueue, probe: _Probe, cycles: list[int]) -> int:
    # A message that no answer follows counts as reached.
    to_index = numbering_of(queue).to_index
    begun = bisect_left(cycles, x=True, key=lambda cycle: probe.cycle(cycle) is not False)
    if not begun:
        return to_index(cycles[0], 0)
    cycle = cycles[begun - 1]
    places = range(count_of(queue, cycle))
    place = bisect_left(
        places, x=True, key=lambda place: probe.at(to_index(cycle, place)) is not False
    )
    if place < len(places) or begun == len(cycles):
        return to_index(cycle, place)
    return to_index(cycles[begun], 0)


class _Probe:
    """Whether messages are reached; None where no message from there on has an answer."""

    def __init__(
        self,
        queue: AnyQueue,
        tailer: AnyTailer,
        is_reached: Callable[[Any], bool | None],
        cycles: list[int],
        missing: str,
    ) -> None:
        self._queue = queue
        self._tailer = tailer
        self._is_reached = is_reached
        self._cycles = cycles
        self._missing = missing
        self._to_index = numbering_of(queue).to_index
        self.index = 0  # of the message that answered

    def cycle(self, cycle: int) -> bool | None:
        """Return the answer of a cycle's first message; of an empty one, that of the next."""
        for one in self._cycles[bisect_left(self._cycles, cycle) :]:
            index = self._to_index(one, 0)
            if self._tailer.move_to_index(index):
                return self._next(index)
        return None

    def at(self, index: int) -> bool | None:
        """Return the answer of a message, or of the next one that has one."""
        return self._next(index) if self._tailer.move_to_index(index) else None

    def missing(self, index: int, looked: str = "all") -> ValueError:
        """Return the error for messages that have no answer."""
        return ValueError(
            f"{self._missing} path={self._queue.path} from={index:#x} looked_at={looked}"
        )

    def _next(self, index: int) -> bool | None:
        looked = 0
        for excerpt in islice(self._tailer, _LOOK_MAX):
            answer = self._is_reached(excerpt)
            if answer is not None:
                self.index = excerpt.index
                return answer
            looked += 1
        if looked == _LOOK_MAX:
            raise self.missing(index, str(looked))
        return None
