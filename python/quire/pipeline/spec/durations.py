"""When batches are made, and how long delays and windows are."""

from __future__ import annotations

import re
from typing import Final

from quire.pipeline.spec.model import Schedule

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
}
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def duration_us(text: str) -> int:
    """
    Return the microseconds of a text such as ``30s``, ``10 minutes`` or ``1.5 h``.

    Raises:
        ValueError: It is none, or not above zero.

    """
    found = _DURATION.fullmatch(text)
    word = found[2].lower() if found else ""
    unit = _UNITS_US.get(word) or _UNITS_US.get(word.removesuffix("s"), 0)
    duration = round(float(found[1]) * unit) if found else 0
    if duration <= 0:
        raise ValueError(f"not a duration: found={text!r} allowed: 500 ms, 30s, 10 minutes, 1 h")
    return duration


def schedule_of(text: str) -> Schedule:
    """
    Return the schedule that a text names.

    Raises:
        ValueError: It names none.

    """
    words = text.strip().lower()
    if words == "once":
        return Schedule("once", text=words)
    if words == "available-now":
        return Schedule("available-now", text=words)
    kind, _, every = words.partition(" ")
    if kind != "every":
        raise ValueError(
            f"no such schedule: found={text!r} allowed: once, available-now, every 30s"
        )
    return Schedule("every", duration_us(every), words)
