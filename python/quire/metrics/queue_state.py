"""The state of a queue of any format and writer, according to its files."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quire.formats.adapters import adapter_of, numbering_of
from quire.formats.protocols import AnyQueue


@dataclass(frozen=True, slots=True)
class QueueState:
    """
    The state of a queue at one moment, according to its files, without counters of writers.

    Attributes:
        end_index: The index after the last message; 0 without one.
        end_sequence: The same within its cycle: how many messages the cycle has, unless the format
            leaves gaps.
        last_message_age_s: The seconds since the last message was appended; None without one. The
            first read takes them from the time of a file, later ones from when they find a new end.
        locks_held: How many locks of the queue are held.
        locks_dead: How many of them by processes that died.

    Examples:
        >>> state = queue.metrics().state
        >>> state.end_index, state.end_sequence, state.last_message_age_s, state.locks_held
        (0, 0, None, 0)

    """

    end_index: int
    end_sequence: int
    last_message_age_s: float | None
    locks_held: int
    locks_dead: int


class StateReader:
    """
    Reads the state of an open queue repeatedly.

    Args:
        queue: A queue of any format.

    """

    def __init__(self, queue: AnyQueue) -> None:
        """Start without an earlier state."""
        self._queue = queue
        self._end: int | None = None
        self._came_s = 0.0

    def read(self) -> QueueState:
        """
        Return the present state.

        Raises:
            QuireError: The queue is damaged or was closed.
            OSError: The queue cannot be read.

        """
        adapter, numbering = adapter_of(self._queue), numbering_of(self._queue)
        last, now_s = self._queue.last_index, time.time()
        if last is not None and last != self._end:
            self._came_s = now_s if self._end is not None else self._written_s(last, now_s)
        self._end = last if last is not None else -1
        locks = adapter.locks(self._queue)
        return QueueState(
            0 if last is None else last + numbering.step,
            0 if last is None else numbering.to_sequence(last) + 1,
            None if last is None else max(0.0, now_s - self._came_s),
            len(locks),
            sum(not lock.alive for lock in locks),
        )

    def _written_s(self, last: int, now_s: float) -> float:
        """Return when the file or directory of the last message's cycle was last written to."""
        cycle = numbering_of(self._queue).to_cycle(last)
        place = adapter_of(self._queue).place(self._queue, cycle)
        with suppress(FileNotFoundError):
            found = [*place.iterdir()] if place.is_dir() else [place]
            return max(file.lstat().st_mtime for file in found)
        return now_s


def disk_used(queue: AnyQueue) -> int:
    """Return the disk space of a queue's files, in bytes."""
    used = 0
    for file in adapter_of(queue).files(queue):
        with suppress(FileNotFoundError):
            used += Path(file).lstat().st_blocks * 512
    return used
