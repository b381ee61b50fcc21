"""
The content of a stream's checkpoint: an offset for each topic, and what offsets cannot express.

Offsets alone cannot show that a cycle between two others was deleted while the stream was down: the
cycle might never have had a message. So the end of a batch also records the number of its messages
if it spans several cycles, which later cycles have messages, and a digest of the last messages
before the end: see `marks`. Offsets without these records, as earlier versions wrote them, can
still be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Offsets: TypeAlias = dict[str, Any]
"""The index of the next message by topic, and the other records under `EXPECTED`."""

EXPECTED: Final = "/expected"
"""The key of the other records. No topic has this name: topics have no leading slash."""

Cycles: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges of cycles, the first and the last of each."""


class Expected(NamedTuple):
    """
    The records of a topic when the batch that ends at an offset was planned.

    Attributes:
        messages: The number of messages in that batch; 0 if its two offsets determine it.
        later: The cycles after that of the offset that have messages.
        mark: The digest of the last messages before the offset; empty if unknown.

    """

    messages: int = 0
    later: Cycles = ()
    mark: str = ""


def split(offsets: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Expected]]:
    """Return the offsets of the topics, and the other records of some of them."""
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
