"""When a message was made: by a field that it holds, or by its history."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from quire._native import to_json
from quire.errors import WireError

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

# A number is a time in the unit in which it lies between 1973 and 5138.
_UNITS_NS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))


class TimeField:
    """
    A field that tells a message's time.

    Args:
        name: Its name, at the top of the message or within what stands there, as the arguments of
            a call do. ``trade.time`` is the field ``time`` of ``trade``.

    """

    def __init__(self, name: str) -> None:
        """Take the name apart."""
        self.name = name
        self._parts = name.split(".")

    def of(self, message: bytes | memoryview) -> int | None:
        """Return the time in nanoseconds of the epoch; None where the message tells none."""
        try:
            values = json.loads(to_json(message), object_hook=_without_type)
        except (WireError, ValueError):
            return None
        level = [values]
        while level:
            for value in level:
                found = self._within(value)
                if found is not None and (time_ns := _time_ns(found)) is not None:
                    return time_ns
            level = [inner for value in level for inner in _inside(value)]
        return None

    def _within(self, value: Any) -> Any:  # noqa: ANN401 - what JSON holds
        for part in self._parts:
            if not isinstance(value, dict):
                return None
            value = cast("dict[str, Any]", value).get(part)
        return value


def nanoseconds(time: datetime) -> int:
    """Return a time as nanoseconds of the epoch; one without a zone is in UTC."""
    zoned = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (zoned - _EPOCH) // _MICROSECOND * 1000


def _without_type(values: dict[str, Any]) -> Any:  # noqa: ANN401 - what JSON holds
    """Return what stands behind a type's name."""
    (name, *more) = values or ("",)
    return values[name] if name.startswith("@") and not more else values


def _inside(value: Any) -> Iterable[Any]:  # noqa: ANN401 - what JSON holds
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("Iterable[Any]", value) if isinstance(value, list) else ()


def _time_ns(value: Any) -> int | None:  # noqa: ANN401 - what JSON holds
    """Return what a value means as a time."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, int | float):
        for limit, unit_ns in _UNITS_NS:
            if abs(value) < limit:
                return round(value * unit_ns)
        return int(value)
    return None


def _of_text(text: str) -> int | None:
    if text.removeprefix("-").isdecimal():
        return _time_ns(int(text))
    try:
        time = datetime.fromisoformat(text.partition("[")[0])
    except ValueError:
        return None
    return nanoseconds(time)
