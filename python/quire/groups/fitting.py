"""Whether the position of a group fits its queue, which may have lost messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from quire._native import tail_hash
from quire.errors import CorruptError
from quire.formats.adapters import adapter_of, count_of, cycles_of, end_index_of, numbering_of
from quire.groups.reader import Reader

if TYPE_CHECKING:
    from quire.formats.protocols import AnyQueue

Tails: TypeAlias = Iterable[tuple[int, int]]
"""Tail records: indexes and hashes of messages, newest first."""


def place_in(queue: AnyQueue, reader: Reader, position: int, tails: Tails) -> int | None:
    """
    Return where a group continues if its position no longer fits the queue; None if it fits.

    That is the first message after a gap, or the first one that took the index of a lost one. If
    the extent of the loss is unknown, it is an earlier one, and messages are delivered again.

    Args:
        queue: The queue.
        reader: What reads its messages.
        position: The index of the next message, 0 for the first.
        tails: The tail records of earlier messages.

    """
    if not position:
        return None
    adapter_of(queue).refresh(queue)
    numbering, cycles = numbering_of(queue), cycles_of(queue)
    cycle = numbering.to_cycle(position)
    # By the listing: a tailer may still have a removed file open.
    before = [it for it in tails if it[0] < position and numbering.to_cycle(it[0]) in cycles]
    try:
        if cycle not in cycles:
            later = [it for it in cycles if it > cycle]
            if later or not cycles:
                return numbering.to_index(later[0], 0) if later else None
            end = end_index_of(queue)
        else:
            end = numbering.to_index(cycle, count_of(queue, cycle))
            known = before[:1] if before and before[0][0] + reader.step == position else []
            if position <= end and all(_is_there(reader, *it) for it in known):
                return None
        found = _back(reader, before, numbering.to_index(cycles[0], 0), min(end, position))
    except CorruptError:
        return None  # the next read reports it
    return None if found == position else found


def _back(reader: Reader, before: list[tuple[int, int]], first: int, end: int) -> int:
    """Return the index after the newest message that is still the recorded one."""
    if not before:
        return end
    there = (index for index, hashed in before if _is_there(reader, index, hashed))
    last = next(there, None)
    return first if last is None else last + reader.step


def _is_there(reader: Reader, index: int, hashed: int) -> bool:
    found = reader.between(index, index + reader.step)
    return len(found) == 1 and tail_hash(reader.stored(index, found.payload(0))) == hashed
