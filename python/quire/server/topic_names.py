"""Names of queues: topics, written with ``/``, and patterns of them."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from quire.errors import RefusedError

_DEEPEST: Final = 16
_LONGEST: Final = 200
_PART: Final = re.compile(r"[^/\x00-\x1f\x7f\\]+")


@lru_cache(1024)
def topic_of(name: bytes) -> str:
    """
    Return the name of a queue, checked: it cannot leave the server's directory.

    Raises:
        RefusedError: The name is empty, too long or not UTF-8, or a part of it is empty, begins
            with a dot, or has a backslash or control character.

    """
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise RefusedError("invalid name of a queue: not UTF-8") from None
    parts = text.split("/")
    if len(parts) > _DEEPEST or not all(_is_part(it) for it in parts):
        raise RefusedError(
            f"invalid name of a queue: name={text!r:.80} (up to {_DEEPEST} parts divided by '/',"
            f" of up to {_LONGEST} bytes, none of which begins with a dot)"
        )
    return text


def _is_part(text: str) -> bool:
    is_plain = _PART.fullmatch(text) is not None and not text.startswith(".")
    return is_plain and len(text.encode()) <= _LONGEST and text.isprintable()


def matches(topic: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a topic matches one of the patterns, as ``prices/*``."""
    return any(fnmatchcase(topic, pattern) for pattern in patterns)
