"""The event time of a message: from a field that it holds, or from its history."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, SupportsFloat, cast

from quire._common.arguments import shown
from quire._native import to_json
from quire.errors import WireError

EPOCH: Final = datetime.fromtimestamp(0, UTC)
_FINER: Final = re.compile(r"[^.,]*[.,][0-9]{6}([0-9]{1,3})")
_MICROSECOND: Final = timedelta(microseconds=1)

# Years 1 to 9999, as datetime has them.
_MIN_S: Final = -62_135_596_800
_PAST_S: Final = 253_402_300_800

UNITS_NS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

# Upper limit of a number, and the nanoseconds of its unit.
UNIT_LIMITS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))


class Field:
    """
    A field of messages, at their top level or below, as in the arguments of a call.

    Args:
        name: Its name. ``trade.time`` is the field ``time`` of ``trade``.

    """

    def __init__(self, name: str) -> None:
        """Take the name apart."""
        self.name = name
        self._parts = name.split(".")

    def of(self, message: bytes | memoryview) -> Any:  # noqa: ANN401 - what JSON holds
        """Return the value nearest to the top level; None if the message has none."""
        return next(self.values(message), None)

    def values(self, message: bytes | memoryview) -> Iterator[Any]:
        """Yield the values that a message has for the field, those of outer levels first."""
        try:
            level = [value_of(to_json(message))]
        except (WireError, ValueError, RecursionError):
            return
        while level:
            for value in level:
                found = self._within(value)
                if found is not None:
                    yield found
            level = [inner for value in level for inner in _inside(value)]

    def _within(self, value: Any) -> Any:  # noqa: ANN401 - what JSON holds
        for part in self._parts:
            if not isinstance(value, dict):
                return None
            value = cast("dict[str, Any]", value).get(part)
        return value


class TimeField(Field):
    """
    The field that holds the event time of messages.

    Args:
        name: Its name: see :class:`Field`.
        unit: The unit of a number: one of :data:`UNITS_NS`. None: the one that puts it between
            1973 and 5138.

    """

    def __init__(self, name: str, unit: str | None = None) -> None:
        """Keep the unit."""
        super().__init__(name)
        self.unit = unit
        self._unit_ns = None if unit is None else UNITS_NS[unit]

    def of(self, message: bytes | memoryview) -> int | None:
        """Return the event time in nanoseconds of the epoch; None if the message has none."""
        times = map(self._time_ns, self.values(message))
        return next((time_ns for time_ns in times if time_ns is not None), None)

    def _time_ns(self, value: Any) -> int | None:  # noqa: ANN401 - what JSON holds
        """Return what a value means as a time."""
        if isinstance(value, bool):
            return None
        if isinstance(value, str):
            return self._of_text(value)
        if isinstance(value, int | float):
            try:
                return round(value * (self._unit_ns or _unit_ns(value)))
            except (ValueError, OverflowError):  # not finite
                return None
        return None

    def _of_text(self, text: str) -> int | None:
        try:
            if text.removeprefix("-").isdecimal():
                return self._time_ns(int(text))
            return _text_ns(text.partition("[")[0])
        except ValueError:
            return None


def epoch_ns_of(time: object) -> int:
    """
    Return a time as nanoseconds of the epoch.

    Args:
        time: A datetime, a date, or ISO 8601 text (one without a zone is in UTC), or seconds since
            1970.

    Raises:
        TypeError: *time* is not a time, text or number.
        ValueError: The text is not a time, or the number is not finite.

    """
    expected = "expected=datetime, ISO 8601 text, seconds since 1970"
    if isinstance(time, datetime):
        return epoch_ns(time)
    if isinstance(time, str):
        try:
            return _text_ns(time)
        except ValueError:
            raise ValueError(f"not a time: time={time!r} {expected}") from None
    if isinstance(time, date):
        return epoch_ns(datetime.combine(time, datetime.min.time()))
    unknown = f"not a time: type={type(time).__name__} {expected}"
    if isinstance(time, bool) or not isinstance(time, SupportsFloat):
        raise TypeError(unknown)
    if not isinstance(time, int):
        try:
            time = float(time)
        except TypeError:  # numpy.datetime64 has __float__, and it fails
            raise TypeError(unknown) from None
    if not _MIN_S <= time < _PAST_S:
        raise ValueError(f"not a time: time={shown(time)} {expected}")
    return time * UNITS_NS["s"] if isinstance(time, int) else round(time * UNITS_NS["s"])


def epoch_ns(time: datetime) -> int:
    """Return a time as nanoseconds of the epoch; one without a zone is in UTC."""
    zoned = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (zoned - EPOCH) // _MICROSECOND * 1000


def _text_ns(text: str) -> int:
    """Return a time in ISO 8601 as nanoseconds; datetimes drop what is less than a microsecond."""
    finer = _FINER.match(text)
    return epoch_ns(datetime.fromisoformat(text)) + (int(finer[1].ljust(3, "0")) if finer else 0)


def datetime_of(time_ns: int) -> datetime:
    """Return nanoseconds of the epoch as a datetime in UTC, cut to microseconds."""
    return EPOCH + timedelta(microseconds=time_ns // 1_000)


def value_of(text: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return the value of a message, or of a part of it, as JSON; values have no type names."""
    return json.loads(text, object_hook=_without_type)


def _without_type(values: dict[str, Any]) -> Any:  # noqa: ANN401 - what JSON holds
    """Return the value without its type name."""
    (name, *more) = values or ("",)
    return values[name] if name.startswith("@") and not more else values


def _inside(value: Any) -> Iterable[Any]:  # noqa: ANN401 - what JSON holds
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("Iterable[Any]", value) if isinstance(value, list) else ()


def _unit_ns(number: float) -> int:
    """Return the unit that puts a number between 1973 and 5138; else nanoseconds."""
    return next((unit_ns for limit, unit_ns in UNIT_LIMITS if abs(number) < limit), 1)
