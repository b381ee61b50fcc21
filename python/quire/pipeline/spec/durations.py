"""Schedules and durations as a pipeline file writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

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


@dataclass(frozen=True, slots=True)
class Schedule:
    """When batches are made: `once`, `available-now`, or `every` *every_us*."""

    kind: Literal["once", "available-now", "every"]
    every_us: int | None = None
    text: str = ""

    def __str__(self) -> str:
        """Return it as it was written."""
        return self.text or self.kind


def duration_us(text: str) -> int:
    """
    Return the microseconds of a duration such as ``30s``, ``10 minutes`` or ``1.5 h``.

    Raises:
        ValueError: The text is no duration, or it is not above zero.

    """
    match = _DURATION.fullmatch(text)
    word = match[2].lower() if match else ""
    unit = _UNITS_US.get(word) or _UNITS_US.get(word.removesuffix("s"), 0)
    duration = round(float(match[1]) * unit) if match else 0
    if duration <= 0:
        raise ValueError(f"not a duration: found={text!r} expected: 500 ms, 30s, 10 minutes, 1 h")
    return duration


def schedule_of(text: str) -> Schedule:
    """
    Return the schedule of a text.

    Raises:
        ValueError: There is no such schedule.

    """
    words = text.strip().lower()
    if words == "once":
        return Schedule("once", text=words)
    if words == "available-now":
        return Schedule("available-now", text=words)
    kind, _, every = words.partition(" ")
    if kind != "every":
        raise ValueError(
            f"unknown schedule: found={text!r} expected: once, available-now, every 30s"
        )
    return Schedule("every", duration_us(every), words)
