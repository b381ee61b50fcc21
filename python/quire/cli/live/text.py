"""Numbers, times and curves, each in a few characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NOTHING: Final = "-"
_BARS: Final = "▁▂▃▄▅▆▇█"
_THOUSAND: Final = 1000
_KIBI: Final = 1024
_TEN: Final = 10
_HUNDRED: Final = 100
_TIMES: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "m"))


def count_text(count: float | None) -> str:
    """Return a number in at most five characters: ``7``, ``0.5``, ``12.3k``, ``4.0M``."""
    return NOTHING if count is None else _scaled(count, _THOUSAND, ("", "k", "M", "G", "T", "P"))


def bytes_text(count: float | None) -> str:
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


def sparkline(values: Sequence[float | None], width: int) -> str:
    """
    Return the last *width* values as bars from 0 to the largest; a blank where there is none.

    0 is the lowest bar, anything more at least the second.
    """
    shown = [*values][-width:]
    largest = max((it for it in shown if it is not None), default=0)
    return "".join(_bar(it, largest) for it in shown).rjust(width)


def _bar(value: float | None, largest: float) -> str:
    if value is None:
        return " "
    if value <= 0 or largest <= 0:
        return _BARS[0]
    return _BARS[max(1, min(len(_BARS) - 1, round(value / largest * (len(_BARS) - 1))))]


def cut(text: str, width: int) -> str:
    """Return a text in at most *width* characters: its end, which differs among paths."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"
