"""
What a stream's checkpoint holds: an offset for each topic, and what they do not say themselves.

Offsets alone cannot show that a cycle between two others was deleted while the stream was down: it
might never have had a message. Therefore a batch's end also says how many messages a batch of
several cycles has, which cycles beyond it have messages, and a digest of the last messages before
it: see `marks`. An offset of topics alone, as earlier
versions wrote it, is understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Offsets: TypeAlias = dict[str, Any]
"""The index of the next message by topic, and under `EXPECTED` what else was seen."""

EXPECTED: Final = "/expected"
"""No topic has this name: a topic is a path without a leading slash."""

Cycles: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges of cycles, the first and the last of each."""


class Expected(NamedTuple):
    """
    What was seen of a topic when the batch before an offset was planned.

    Attributes:
        messages: How many messages that batch has; 0 where its two offsets say it.
        later: The cycles beyond the offset's with messages.
        mark: What the last messages before the offset were; empty if that is not known.

    """

    messages: int = 0
    later: Cycles = ()
    mark: str = ""


def split(offsets: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Expected]]:
    """Return the offsets of the topics, and what is expected of some of them."""
    expected = {
        topic: Expected(
            it.get("messages", 0),
            tuple((low, high) for low, high in it["later"]),
            it.get("mark", ""),
        )
        for topic, it in offsets.get(EXPECTED, {}).items()
    }
    return {topic: it for topic, it in offsets.items() if topic != EXPECTED}, expected


def joined(offsets: Mapping[str, int], expected: Mapping[str, Expected]) -> Offsets:
    """Return both as one offset; equal ones are equal texts."""
    found = {
        topic: {
            "messages": it.messages,
            "later": [[*each] for each in it.later],
            **({"mark": it.mark} if it.mark else {}),
        }
        for topic, it in sorted(expected.items())
        if it != Expected()
    }
    both: Offsets = {**offsets}
    if found:
        both[EXPECTED] = found
    return dict(sorted(both.items()))


def ranges_of(cycles: Iterable[int]) -> Cycles:
    """Return ascending cycles as ranges: a year of hours is one."""
    found: list[tuple[int, int]] = []
    for cycle in cycles:
        if found and found[-1][1] == cycle - 1:
            found[-1] = found[-1][0], cycle
        else:
            found.append((cycle, cycle))
    return tuple(found)
