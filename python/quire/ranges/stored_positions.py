"""Positions that a queue stores: of named tailers and of services."""

from __future__ import annotations

from quire.errors import IndexOutOfRangeError
from quire.formats.adapters import journal_of, numbering_of
from quire.formats.protocols import AnyQueue

OUTPUT_POSITION = "service-output"
"""The named tailer of a service's output: recovery reads from its cycle on."""


def stored_position(queue: AnyQueue, index: int) -> tuple[int, int]:
    """
    Return cycle and sequence of an index that a tailer stored.

    (-1, 0), before all messages, if nothing was stored or no message can have the index: a tailer
    of that name starts at the first message.
    """
    if index <= 0:
        return -1, 0
    numbering = numbering_of(queue)
    cycle = numbering.to_cycle(index)
    if (journal := journal_of(queue)) is not None:
        try:
            journal.roll_cycle.file_name(cycle, journal.epoch_ms)
        except IndexOutOfRangeError:
            return -1, 0
    return cycle, numbering.to_sequence(index)
