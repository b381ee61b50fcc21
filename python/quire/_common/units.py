"""Durations and sizes as people write them: ``7d``, ``30 minutes``, ``10GB``."""

from __future__ import annotations

import re
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
