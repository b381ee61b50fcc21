r"""Redis's patterns of names: ``*``, ``?``, ``[a-c]``, ``[^a]`` and ``\x``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

_STAR, _ANY, _OPENS, _CLOSES, _ESCAPE, _NOT, _TO = b"*?[]\\^-"
_BYTES: Final = 256


class _One(NamedTuple):
    """The values that one byte of a name may have: some bytes, or all others."""

    some: frozenset[int]
    is_not: bool = False


def matcher(pattern: bytes) -> Callable[[bytes], bool]:
    """
    Return a function that tests whether a whole name matches a pattern.

    Its time grows with the length of the name, whatever the pattern.
    """
    ones, stars = _parsed(pattern)
    takes = _takes(ones)
    whole = 1 << len(ones)

    def fits(name: bytes) -> bool:
        reached = 1  # a bit for each number of parts that what was read so far fits
        for byte in name:
            reached = (reached & takes[byte]) << 1 | reached & stars
            if not reached:
                return False
        return bool(reached & whole)

    return fits


def _parsed(pattern: bytes) -> tuple[list[_One], int]:
    """Return the parts that stand for one byte each, and which of them follow a star."""
    ones: list[_One] = []
    stars = at = 0
    while at < len(pattern):
        byte = pattern[at]
        at += 1
        if byte == _STAR:
            stars |= 1 << len(ones)
        elif byte == _ANY:
            ones.append(_One(frozenset(), is_not=True))
        elif byte == _OPENS:
            one, at = _bracket(pattern, at)
            ones.append(one)
        else:
            if byte == _ESCAPE and at < len(pattern):
                byte = pattern[at]
                at += 1
            ones.append(_One(frozenset([byte])))
    return ones, stars


def _bracket(pattern: bytes, at: int) -> tuple[_One, int]:
    """Return the content of brackets, and the place after them; the end closes them, too."""
    is_not = pattern[at : at + 1] == bytes([_NOT])
    at += is_not
    some: set[int] = set()
    while at < len(pattern):
        left = len(pattern) - at
        if pattern[at] == _ESCAPE and left > 1:
            some.add(pattern[at + 1])
            at += 2
        elif pattern[at] == _CLOSES:
            return _One(frozenset(some), is_not), at + 1
        elif left > 2 and pattern[at + 1] == _TO:  # noqa: PLR2004 - a-c
            low, high = sorted((pattern[at], pattern[at + 2]))
            some.update(range(low, high + 1))
            at += 3
        else:
            some.add(pattern[at])
            at += 1
    return _One(frozenset(some), is_not), at


def _takes(ones: list[_One]) -> list[int]:
    """Return for each byte which parts it fits, as bits."""
    others = sum(1 << place for place, one in enumerate(ones) if one.is_not)
    takes = [others] * _BYTES
    for place, one in enumerate(ones):
        for byte in one.some:
            takes[byte] ^= 1 << place
    return takes
