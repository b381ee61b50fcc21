"""Keys: messages with the same key are delivered in order, to one member at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quire._native import field_json
from quire.formats.adapters import journal_of
from quire.ranges.event_time import Field, value_of

if TYPE_CHECKING:
    from quire._native import Claim, Excerpt, QuickExcerpt
    from quire.formats.protocols import AnyQueue
    from quire.groups.delivered import Chunk

_GOLDEN: Final = 0x9E37_79B9_7F4A_7C15
_UNKNOWN: Final = 0x756E_6B6E_6F77_6E21
_KNOWN_MAX: Final = 65_536
"""How many hashes of keys are remembered."""
_WORD: Final = 2**64 - 1
_log: Final = logging.getLogger("quire")

Key: TypeAlias = "str | Callable[[Any], Any] | None"


def plain_hash(content: bytes) -> int:
    """Return 64 bits of a hash."""
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def hashing_of(queue: AnyQueue) -> Callable[[bytes], int]:
    """Return what hashes keys of a queue's messages: by its own key, if it is encrypted."""
    journal = journal_of(queue)
    if journal is None or journal._keyed_hash(b"") is None:  # noqa: SLF001
        return plain_hash
    return lambda content: journal._keyed_hash(content) or 0  # noqa: SLF001


class Keys:
    """
    The hash of each message's key, the same in every process.

    Args:
        key: The field that holds it, or a function of an excerpt that returns it.
        hashing: Returns 64 bits of a hash.

    """

    def __init__(
        self, key: str | Callable[[Any], Any], hashing: Callable[[bytes], int] = plain_hash
    ) -> None:
        """Keep how a key is found."""
        self._hashing = hashing
        self._field = Field(key) if isinstance(key, str) else None
        # Such a name is of a field in a field, or of a type.
        is_plain = isinstance(key, str) and "." not in key and not key.startswith("@")
        self._name = key if isinstance(key, str) and is_plain else None
        self._known: dict[str | bytes, int] = {}
        self._hashes: set[int] = set()
        self._function = key if callable(key) else None

    def hashes_of(
        self, chunk: Chunk, excerpt: Callable[[int, bytes], Excerpt | QuickExcerpt]
    ) -> list[int]:
        """Return the hash of each message's key."""
        columns = chunk.columns
        texts: list[str | None] = [None] * len(columns)
        if self._name is not None:
            texts = field_json(self._name, columns.offsets.cast("B"), columns.data)
        hashes = [None if text is None else self._hash_of_json(text) for text in texts]
        return [
            found or self.hash_of(excerpt(chunk.indexes[at], chunk.payloads[at]))
            for at, found in enumerate(hashes)
        ]

    def _hash_of_json(self, text: str) -> int | None:
        """Return the hash of a key as JSON; None if it may be elsewhere in the message, too."""
        found = self._known.get(text)
        if found is None:
            key = value_of(text)
            return None if key is None else self._remembered(text, key)
        return found

    def hash_of(self, excerpt: Excerpt | QuickExcerpt) -> int:
        """Return the hash of a message's key; one of its own if it has none, or an error."""
        try:
            return self._of(excerpt)
        except Exception as error:  # noqa: BLE001 - of any function
            _log.debug("a message has no key: index=%#x error=%r", excerpt.index, error)
            return (excerpt.index * _GOLDEN ^ _UNKNOWN) & _WORD

    def is_unknown(self, claim: Claim) -> bool:
        """Whether the key of a claim's message could not be found."""
        found = claim.hash
        return found not in self._hashes and found == (claim.first * _GOLDEN ^ _UNKNOWN) & _WORD

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
        if key is None:
            return self._hash_of(("index", excerpt.index))
        if type(key) is not bytes:  # others may be equal and shown differently, as 1 and True
            return self._hash_of(("key", key))
        return self._remembered(key, key)

    def _remembered(self, shown: str | bytes, key: object) -> int:
        """Return the hash of a key, which is computed once for what shows it."""
        found = self._known.get(shown)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
                self._hashes.clear()
            found = self._known[shown] = self._hash_of(("key", key))
            self._hashes.add(found)
        return found

    def _hash_of(self, value: object) -> int:
        """Return 64 bits of a hash of how a value is shown."""
        return self._hashing(repr(value).encode())
