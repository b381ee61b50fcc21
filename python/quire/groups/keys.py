"""Keys: messages with the same key are delivered in order, to one member at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quire.ranges.event_time import Field

if TYPE_CHECKING:
    from quire._native import Excerpt, QuickExcerpt

_log: Final = logging.getLogger("quire")

Key: TypeAlias = "str | Callable[[Any], Any] | None"


class Keys:
    """
    The hash of each message's key, the same in every process.

    Args:
        key: The field that holds it, or a function of an excerpt that returns it.

    """

    def __init__(self, key: str | Callable[[Any], Any]) -> None:
        """Keep how a key is found."""
        self._field = Field(key) if isinstance(key, str) else None
        self._function = key if callable(key) else None

    def hash_of(self, excerpt: Excerpt | QuickExcerpt) -> int:
        """Return the hash of a message's key; one of its own if it has none, or an error."""
        try:
            return self._of(excerpt)
        except Exception as error:  # noqa: BLE001 - of any function
            _log.debug("a message has no key: index=%#x error=%r", excerpt.index, error)
            return self.unknown(excerpt.index)

    def unknown(self, index: int) -> int:
        """Return the hash of a message whose key cannot be found."""
        return hash_of(("unknown", index))

    def error_of(self, excerpt: Excerpt | QuickExcerpt) -> str:
        """Return why the key of a message cannot be found; an empty text if it can."""
        try:
            self._of(excerpt)
        except Exception as error:  # noqa: BLE001 - of any function
            return f"key= raised {type(error).__name__}: {error}"
        return ""

    def _of(self, excerpt: Excerpt | QuickExcerpt) -> int:
        if self._function is not None:
            key = self._function(excerpt)
        else:
            key = self._field and self._field.of(excerpt.data)
        return hash_of(("index", excerpt.index) if key is None else ("key", key))


def hash_of(value: object) -> int:
    """Return 64 bits of a hash of how a value is shown."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest(), "little")
