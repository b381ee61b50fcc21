"""Positions stored in a queue's table: of named tailers and of services."""

from __future__ import annotations

from quire._native import Queue
from quire.errors import IndexOutOfRangeError

OUTPUT_POSITION = "service-output"
"""The named tailer of a service's output: recovery reads from its cycle on."""


def stored_position(queue: Queue, index: int) -> tuple[int, int]:
    """
    Return cycle and sequence of an index that a tailer stored.

    (-1, 0), before all messages, if nothing was stored or no message can have the index: a tailer
    of that name starts at the first message.
    """
    roll = queue.roll_cycle
    if index > 0:
        try:
            roll.file_name(roll.to_cycle(index), queue.epoch_ms)
        except IndexOutOfRangeError:
            return -1, 0
        return roll.to_cycle(index), roll.to_sequence(index)
    return -1, 0
