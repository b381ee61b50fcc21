"""Times in a queue: the index at which a moment begins."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple, cast

import quire

UNITS_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TimeField(NamedTuple):
    """
    The field of messages that tells their time.

    Attributes:
        name: Its name; in method calls of the argument's fields.
        unit: What a whole number there counts since 1970: ``s``, ``ms``, ``us`` or ``ns``.

    """

    name: str
    unit: str = "ms"

    def time_us(self, message: dict[Any, Any]) -> int | None:
        """Return the time of a message in microseconds since 1970; None if it tells none."""
        value = _found(message, self.name)
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return value * 1_000_000 // UNITS_PER_SECOND[self.unit]
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return None
        return _since_1970(value)


def index_at(queue: quire.Queue, time_us: int, field: TimeField | None = None) -> int:
    """
    Return the index at which a moment begins; the next one to come, if it lies ahead.

    Without a field that is the start of the moment's cycle. With one it is the first message of the
    cycle whose time is not before the moment, found by halving: in a cycle whose times go back
    here and there it is one near it.

    Args:
        queue: The queue.
        time_us: The moment, in microseconds since 1970.
        field: What tells the messages' times.

    """
    last = queue.last_index
    if last is None:
        return 0
    to_index = queue.roll_cycle.to_index
    wanted = max(queue.roll_cycle.cycle_at(time_us // 1_000, queue.epoch_ms), 0)
    cycle = next((cycle for cycle in queue.cycles if cycle >= wanted), None)
    if cycle is None:
        return last + 1
    if field is None or cycle != wanted:
        return min(to_index(cycle, 0), last + 1)
    ended = queue.end_of_cycle(cycle)
    low, high = 0, 0 if ended is None else ended[1]
    with queue.tailer() as tailer:
        while low < high:
            middle = (low + high) // 2
            found = _time_from(tailer, to_index(cycle, middle), to_index(cycle, high), field)
            if found is None or found[1] >= time_us:
                high = middle
            else:
                low = queue.roll_cycle.to_sequence(found[0]) + 1
    return to_index(cycle, low)


def _time_from(
    tailer: quire.Tailer, index: int, end: int, field: TimeField
) -> tuple[int, int] | None:
    """Return index and time of the first message from *index* on that tells one."""
    if not tailer.move_to_index(index):
        return None
    for excerpt in tailer:
        if excerpt.index >= end:
            return None
        try:
            time_us = field.time_us(excerpt.to_dict())
        except quire.WireError:
            continue
        if time_us is not None:
            return excerpt.index, time_us
    return None


def _found(message: dict[Any, Any], name: str) -> Any:  # noqa: ANN401 - a value of a message
    if name in message:
        return message[name]
    for value in message.values():
        inside: Any = getattr(value, "value", value)
        if isinstance(inside, dict) and name in inside:
            return cast("dict[str, Any]", inside)[name]
    return None


def _since_1970(value: object) -> int | None:
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    else:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1)
