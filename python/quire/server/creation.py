"""The options of a new queue, as clients give them."""

from __future__ import annotations

import re
from typing import Final

from quire.errors import RefusedError

TEXTS: Final = ("format", "roll_cycle", "time_zone", "wire_type")
NUMBERS: Final = ("epoch_ms", "source_id", "block_bytes")
_NUMBER: Final = re.compile(r"[0-9]{1,19}")
_PAST: Final = 2**63


def creation_option(name: str, text: str) -> str | int:
    """
    Return the value of an option of a new queue.

    Args:
        name: One of :data:`TEXTS` or :data:`NUMBERS`.
        text: The client's value.

    Raises:
        RefusedError: There is no such option, or the text is not a number.

    """
    if name in TEXTS:
        return text
    if name not in NUMBERS:
        raise RefusedError(f"UNSUPPORTED not an option of a new queue: option={name!r:.80}")
    if not _NUMBER.fullmatch(text) or int(text) >= _PAST:
        raise RefusedError(f"{name} is not an integer or out of range")
    return int(text)
