"""Durations, sizes and counts as people write them, ``30 minutes``, and read them, ``1.5 GiB``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from quire._common import arguments

_UNITS_US: Final = {
    "ms": 1_000,
    "s": 1_000_000,
    "second": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "minute": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "w": 604_800_000_000,
    "week": 604_800_000_000,
}
_UNITS_BYTES: Final = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "pb": 10**15,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "pib": 2**50,
}
_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_THOUSAND: Final = 1000
_KIBI: Final = 1024
_TEN: Final = 10
_HUNDRED: Final = 100
_TIMES: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "m"))

NOTHING: Final = "-"
"""Stands for a number that is not known."""

_QUANTITY: Final = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([a-z]*)\s*", re.IGNORECASE)


def duration_us(text: str) -> int:
    """
    Return the microseconds of a duration such as ``30s``, ``10 minutes``, ``1.5 h`` or ``7d``.

    Raises:
        ValueError: The text is not a duration, or the duration is not above zero.

    """
    match = _QUANTITY.fullmatch(text)
    word = match[2].lower() if match else ""
    unit = _UNITS_US.get(word) or _UNITS_US.get(word.removesuffix("s"), 0)
    duration = round(float(match[1]) * unit) if match else 0
    if duration <= 0:
        raise ValueError(f"not a duration: found={text!r} expected: 500 ms, 30s, 10 minutes, 1 h")
    return duration


def relative_time(text: str, now: datetime) -> datetime | None:
    """
    Return the time that ``now``, or a duration before it such as ``-15m``, names; else None.

    Args:
        text: Any text: other forms of times have their own parsers.
        now: The present, with a zone.

    """
    if text == "now":
        return now
    if not text.startswith("-"):
        return None
    try:
        return now - timedelta(microseconds=duration_us(text[1:]))
    except (ValueError, OverflowError):  # no duration, or before the year 1
        return None


def size_bytes(text: str) -> int:
    """
    Return the bytes of a size such as ``500MB``, ``1.5 GiB`` or ``4096``.

    Raises:
        ValueError: The text is not a size.

    """
    match = _QUANTITY.fullmatch(text)
    unit = _UNITS_BYTES.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"not a size: found={text!r} expected: 500MB, 1.5 GiB, 4096")
    return round(float(match[1]) * unit)


def size(name: str, found: object) -> object:
    """
    Return the bytes of an argument that is text, such as ``10GB``; anything else as it is.

    Raises:
        ValueError: The text is not a size.

    """
    if not isinstance(found, str):
        return found
    try:
        return size_bytes(found)
    except ValueError:
        raise arguments.out_of_range(name, "a size such as 10GB", found) from None


def milliseconds(name: str, found: object) -> int:
    """
    Return the milliseconds of an argument that is text, such as ``7d``, seconds, or a timedelta.

    Raises:
        ValueError: The text is no duration, or the number is negative.

    """
    if isinstance(found, timedelta):
        return found // timedelta(milliseconds=1)
    if not isinstance(found, str):
        return arguments.milliseconds(name, found)
    try:
        return duration_us(found) // 1000
    except ValueError:
        raise arguments.out_of_range(name, "a duration such as 7d or 12h", found) from None


def size_text(count: int) -> str:
    """Return a number of bytes in the largest unit that leaves digits before the point."""
    power = max(0, min(len(_BINARY) - 1, (count.bit_length() - 1) // 10))
    return f"{count} B" if power == 0 else f"{count / 2 ** (10 * power):.1f} {_BINARY[power]}"


def count_text(count: float | None) -> str:
    """Return a number in at most five characters: ``7``, ``0.5``, ``12.3k``, ``4.0M``."""
    return NOTHING if count is None else _scaled(count, _THOUSAND, ("", "k", "M", "G", "T", "P"))


def short_size_text(count: float | None) -> str:
    """Return a number of bytes in at most five characters, in powers of 1,024: ``1.5M``."""
    return NOTHING if count is None else _scaled(count, _KIBI, ("B", "K", "M", "G", "T", "P"))


def _scaled(count: float, step: int, units: Sequence[str]) -> str:
    unit = 0
    while count >= _THOUSAND - 0.5 and unit < len(units) - 1:
        count, unit = count / step, unit + 1
    has_point = 0 < count < _HUNDRED - 0.05 and not float(count).is_integer()
    digits = f"{count:.1f}" if has_point or (unit and count < _TEN) else f"{count:.0f}"
    return digits + units[unit]


def duration_text(seconds: float | None) -> str:
    """Return a time in one unit: ``12s``, ``5m``, ``3h``, ``9d``."""
    if seconds is None:
        return NOTHING
    for length, unit in _TIMES:
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def latency_text(microseconds: float | None) -> str:
    """Return a latency in at most five characters: ``12us``, ``3.4ms``, ``1.2s``."""
    if microseconds is None:
        return NOTHING
    value = microseconds
    for unit in ("us", "ms"):
        if abs(value) < _THOUSAND - 0.5:
            return f"{value:.1f}{unit}" if abs(value) < _TEN else f"{value:.0f}{unit}"
        value /= _THOUSAND
    return f"{value:.1f}s" if abs(value) < _HUNDRED else f"{value:.0f}s"
