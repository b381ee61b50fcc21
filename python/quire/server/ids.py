"""Ids of entries: the index of a message, and ``-0``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from quire.errors import RefusedError

LAST: Final = 2**63 - 1
_ID: Final = re.compile(rb"(\d{1,20})(?:-(\d{1,20}))?")
_INVALID: Final = "Invalid stream ID specified as stream command argument"


def id_of(index: int) -> bytes:
    """Return the id of a message."""
    return b"%d-0" % index


def index_of(text: bytes) -> int:
    """
    Return the index that an id stands for.

    Raises:
        RefusedError: The text is not an id, or not the id of a message.

    """
    index, is_exact = _parts(text)
    if not is_exact:
        raise RefusedError(f"{_INVALID}: the id of a message is its index and -0")
    return index


def messages_of(texts: Iterable[bytes]) -> Iterator[int]:
    """
    Yield the indexes of the ids that can be those of messages.

    Raises:
        RefusedError: A text is not the id of an entry.

    """
    for index, is_exact in map(_parts, texts):
        if is_exact:
            yield index


def after(text: bytes) -> int:
    """Return the first index after an id; 0 stands for all messages, index 0 included."""
    index, is_exact = _parts(text)
    return 0 if not index and is_exact else min(index + 1, LAST)


def first_of(text: bytes) -> int:
    """Return the first index of a range that begins with an id, ``-`` or ``(id``."""
    if text == b"-":
        return 0
    if text == b"+":
        return LAST
    index, is_exact = _parts(text.removeprefix(b"("))
    return min(index + 1, LAST) if text.startswith(b"(") or not is_exact else index


def past_of(text: bytes) -> int:
    """Return the index after a range that ends with an id, ``+`` or ``(id``."""
    if text == b"-":
        return 0
    if text == b"+":
        return LAST
    index, is_exact = _parts(text.removeprefix(b"("))
    return index if text.startswith(b"(") and is_exact else min(index + 1, LAST)


def _parts(text: bytes) -> tuple[int, bool]:
    """Return the index of an id, and whether a message's 0 follows the ``-``."""
    found = _ID.fullmatch(text)
    if found is None:
        raise RefusedError(_INVALID)
    index, rest = int(found[1]), int(found[2] or 0)
    if index > 2**64 - 1 or rest > 2**64 - 1:
        raise RefusedError(_INVALID)
    return min(index, LAST), rest == 0
