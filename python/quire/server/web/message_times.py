"""When messages were written: from a field, the index of append times, or the cycle."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from quire._common.terminal import escape_controls
from quire.formats.adapters import adapter_of, periods_of
from quire.ranges.event_time import TimeField, datetime_of
from quire.server.served_queue import ServedQueue
from quire.server.web.message_views import DECODED

_NS_PER_MS: Final = 1_000_000
_APPENDED: Final = "when it was appended, UTC"
_CYCLE: Final = "start of its cycle, UTC; the time of the message is not stored"


class MessageTime(NamedTuple):
    """
    When a message was written, as far as that is known.

    Attributes:
        moment: The time, in UTC.
        said: What kind of time this is.
        zone: The time zone of the queue; None for UTC.

    """

    moment: datetime
    said: str
    zone: tzinfo | None

    @property
    def iso(self) -> str:
        """The time in UTC, in ISO 8601 format."""
        return self.moment.isoformat().replace("+00:00", "Z")

    @property
    def text(self) -> str:
        """The time, as shown to people."""
        moment = self.moment.replace(tzinfo=None)
        if self.said == _CYCLE:
            return f"cycle of {moment.isoformat(' ', 'minutes')}"
        return moment.isoformat(" ", "milliseconds" if self._is_whole_ms else "microseconds")

    @property
    def _is_whole_ms(self) -> bool:
        return self.moment.microsecond % 1000 == 0

    @property
    def title(self) -> str:
        """The kind of the time, and the time in the zone of the queue."""
        if self.zone is not None:
            with suppress(OverflowError, ValueError):
                local = self.moment.astimezone(self.zone)
                return f"{self.said}; {local.isoformat(' ')} {self.zone}"
        return self.said


class Times:
    """
    The times of a queue's messages.

    Args:
        queue: The queue.
        field: The field, possibly nested, that contains a message's time; empty if there is none.

    """

    def __init__(self, queue: ServedQueue, field: str = "") -> None:
        self._queue, self._field = queue, TimeField(field) if field else None
        self._said = f"in its field {escape_controls(field)}, UTC"
        self._zone = _zone_of(queue)

    def of(self, messages: Sequence[tuple[int, bytes]]) -> list[MessageTime | None]:
        """
        Return when each message was written.

        That is the time in the field; if that is missing, the time of the append, if known;
        otherwise the start of the message's cycle; None in a queue whose cycles are not periods.

        Args:
            messages: Their indexes, ascending, and bytes.

        """
        cycles = [self._queue.numbering.to_cycle(index) for index, _ in messages]
        begins = {cycle: self._begins(cycle) for cycle in {*cycles}}
        appended = self._appended([index for index, _ in messages])
        return [
            self._time(self._field_ns(data), self._said)
            or self._time(append_ns, _APPENDED)
            or self._time(begins[cycle], _CYCLE)
            for (_, data), append_ns, cycle in zip(messages, appended, cycles, strict=True)
        ]

    def _field_ns(self, data: bytes) -> int | None:
        return None if self._field is None or len(data) > DECODED else self._field.of(data)

    def _time(self, time_ns: int | None, said: str) -> MessageTime | None:
        if time_ns is None:
            return None
        try:
            return MessageTime(datetime_of(time_ns), said, self._zone)
        except OverflowError:
            return None

    def _appended(self, indexes: list[int]) -> list[int | None]:
        """Return the times of appends in nanoseconds; None if the cycle has no index of them."""
        journal = self._queue.journal
        if journal is None:
            return [None] * len(indexes)
        found = journal._append_times_ms(indexes)  # noqa: SLF001 - the package's own
        return [None if it is None else it * _NS_PER_MS for it in found]

    def _begins(self, cycle: int) -> int | None:
        queue = self._queue.queue
        if not adapter_of(queue).has_cycles:
            return None
        with suppress(ValueError, OverflowError):
            return periods_of(queue).start_ms(cycle) * _NS_PER_MS
        return None


def _zone_of(queue: ServedQueue) -> tzinfo | None:
    """Return the zone in which a queue's cycles start; None if it is UTC or unknown here."""
    name = "UTC" if queue.journal is None else queue.journal.roll_time_zone
    if name == "UTC":
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
