"""The schedule of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quire._common.units import duration_us


@dataclass(frozen=True, slots=True)
class Schedule:
    """When batches run: `once`, `available-now`, or `every` *every_us*."""

    kind: Literal["once", "available-now", "every"]
    every_us: int | None = None
    text: str = ""

    def __str__(self) -> str:
        """Return the schedule as it was written."""
        return self.text or self.kind


def schedule_of(text: str) -> Schedule:
    """
    Return the schedule of a text.

    Raises:
        ValueError: The text is not a schedule.

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
