"""Binary search for a message by a comparator, as Java's reader does with ``-b``."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from quire.ranges.cycles import count_of, cycles_of, end_index_of
from quire.ranges.numbering import AnyQueue, Numbering, tailer_of


def first_by(queue: AnyQueue, compare: Callable[[Any], int]) -> int:
    """
    Return the index of the first message that does not lie before what is sought.

    Args:
        queue: The queue, in the order of the comparator.
        compare: Called with an excerpt; negative where it lies before.

    """
    numbering = Numbering.of(queue)
    cycles = [cycle for cycle in cycles_of(queue) if count_of(queue, cycle)]
    with tailer_of(queue) as tailer:

        def is_reached(index: int) -> bool:
            tailer.move_to_index(index)
            excerpt = tailer.read()
            return excerpt is None or compare(excerpt) >= 0

        begun = bisect_left(
            cycles, x=True, key=lambda cycle: is_reached(numbering.to_index(cycle, 0))
        )
        if not begun:
            return numbering.to_index(cycles[0], 0) if cycles else 0
        cycle = cycles[begun - 1]
        places = range(count_of(queue, cycle))
        place = bisect_left(
            places, x=True, key=lambda place: is_reached(numbering.to_index(cycle, place))
        )
    if place < len(places):
        return numbering.to_index(cycle, place)
    return numbering.to_index(cycles[begun], 0) if begun < len(cycles) else end_index_of(queue)
