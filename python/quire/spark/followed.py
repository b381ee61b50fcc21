"""
A topic that a stream follows: which messages come next, and whether some of them are gone.

An offset is the index of the next message: one more than that of the last that was read, which
need not be the index of any message once a cycle is over; 0 stands for the first there is.

Whether a cycle that was deleted had been read to its end is known as long as the stream runs, from
the counts of finished cycles; a stream that starts anew has to take it for unread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import quire
from quire.errors import QuireError
from quire.runs import Run
from quire.spark.options import ReadOptions
from quire.spark.topics import TABLE, open_queue


class DataLossError(QuireError):
    """Messages that a stream was to read are gone; says which topic, and what is there."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """
    The messages from an offset on.

    Attributes:
        offset: Where the stream is if none of them are taken.
        runs: The messages, cycle by cycle.
        is_lossy: Whether others in front of them, or between, are gone.

    """

    offset: int
    runs: tuple[Run, ...]
    is_lossy: bool = False

    @property
    def count(self) -> int:
        """How many messages there are."""
        return sum(run.count for run in self.runs)

    def until(self, end: int) -> Ahead:
        """Return those in front of the offset *end*."""
        return Ahead(self.offset, tuple(_cut(self.runs, end)), self.is_lossy)

    def after(self, count: int) -> int:
        """Return the offset behind *count* of the messages."""
        left = count
        for run in self.runs:
            if 0 < left <= run.count:
                return run.first_index + left
            left -= run.count
        return self.offset

    @property
    def end(self) -> int:
        """The offset behind all of the messages."""
        return self.after(self.count)


class Followed:
    """
    A topic, its queue kept open.

    Args:
        path: The queue's directory.
        options: Those of the read.

    """

    def __init__(self, path: str, options: ReadOptions) -> None:
        """Open nothing yet."""
        self._path = path
        self._options = options
        self._queue: quire.Queue | None = None
        self._opened: tuple[int, int] | None = None
        self._finished: dict[int, int] = {}

    def queue(self) -> quire.Queue:
        """Return the queue, opened again if another one took its place in the directory."""
        table = self._table()
        if self._queue is None or table != self._opened:
            self.close()
            if table != self._opened:
                self._finished.clear()
            self._queue = open_queue(self._path, self._options)
            self._opened = table
        return self._queue

    @property
    def is_open(self) -> bool:
        """Whether the queue is open."""
        return self._queue is not None

    def end(self) -> int:
        """Return the offset behind the newest message."""
        queue = self.queue()
        queue.refresh()
        last = queue.last_index
        return 0 if last is None else last + 1

    def ahead(self, offset: int) -> Ahead:
        """Return the messages from *offset* on."""
        queue = self.queue()
        queue.refresh()
        cycle, sequence = queue.roll_cycle.to_cycle(offset), queue.roll_cycle.to_sequence(offset)
        # Listed before they are counted: then all but the last are finished.
        counts = {each: self._count(queue, each) for each in queue.cycles if each >= cycle}
        is_shorter = sequence > counts.get(cycle, sequence)
        if is_shorter:  # another file took its place
            sequence, offset = 0, offset - sequence
        runs = tuple(
            Run(queue.roll_cycle.to_index(each, low), count - low)
            for each, count in counts.items()
            if count > (low := sequence if each == cycle else 0)
        )
        is_lossy = is_shorter or (bool(runs) and self._is_missing(counts, cycle, sequence, offset))
        self._forget(counts, cycle)
        return Ahead(offset, runs, is_lossy)

    def between(self, offset: int, end: int) -> Ahead:
        """Return the messages from *offset* to *end*, which a batch was said to have."""
        found = self.ahead(offset).until(end)
        is_whole = bool(found.runs) and found.end == end
        return Ahead(found.offset, found.runs, found.is_lossy or not is_whole)

    def close(self) -> None:
        """Close the queue; it is opened again when needed."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _count(self, queue: quire.Queue, cycle: int) -> int:
        if (known := self._finished.get(cycle)) is not None:
            return known
        ended = queue.end_of_cycle(cycle)
        if ended is None:
            return 0
        _, count, is_finished = ended
        if is_finished:
            self._finished[cycle] = count
        return count

    def _is_missing(self, counts: dict[int, int], cycle: int, sequence: int, offset: int) -> bool:
        """Return whether a cycle from the offset's on is gone with messages that were not read."""
        if offset and cycle not in counts and self._finished.get(cycle) != sequence:
            return True
        return any(
            count and each > cycle and each not in counts for each, count in self._finished.items()
        )

    def _forget(self, counts: dict[int, int], cycle: int) -> None:
        """Keep the counts of the files that are there, and of the cycle that was read last."""
        kept = {each: n for each, n in self._finished.items() if each in counts or each == cycle}
        self._finished = kept

    def _table(self) -> tuple[int, int] | None:
        try:
            found = Path(self._path, TABLE).stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def _cut(runs: Iterable[Run], end: int) -> Iterable[Run]:
    for run in runs:
        count = min(run.count, end - run.first_index)
        if count > 0:
            yield Run(run.first_index, count)
