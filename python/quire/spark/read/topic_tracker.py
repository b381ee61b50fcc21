"""
A topic that a stream follows: which messages come next, and whether some of them are gone.

An offset is the index of the next message: one more than the index of the last message read, so at
the end of a cycle it is not the index of any message; 0 stands for the first message.

While a stream runs, it knows from the counts of finished cycles whether a deleted cycle had been
read to its end; a restarted stream has to assume that it had not. The checkpoint records that a
cycle with messages existed: see `quire.spark.read.checkpoints`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import quire
from quire._common.file_identity import Identity, identity_at
from quire.errors import CorruptError
from quire.formats.adapters import (
    adapter_of,
    count_of,
    cycles_of,
    end_index_of,
    journal_of,
    numbering_of,
    periods_of,
)
from quire.formats.remote import AnyRemoteQueue
from quire.ranges.cycles import CycleRange
from quire.remote.address import is_remote
from quire.spark.read.checkpoints import Cycles, Expected, ranges_of
from quire.spark.read.marks import NONE, differs, mark_of
from quire.spark.read.partitions import TopicRange
from quire.spark.source_options import ReadOptions
from quire.spark.topics import TABLE, open_queue

LINGER_MS: Final = 10_000
"""How long a tailer of a Vanilla Chronicle still looks at the cycle that it has left."""

_log = logging.getLogger("quire.spark")


@dataclass(frozen=True, slots=True)
class Backlog:
    """
    The messages from an offset onwards.

    Attributes:
        offset: The offset at which the backlog begins.
        runs: The messages, cycle by cycle.
        is_lossy: Whether messages before or among them are gone.
        cycles: The cycle of each run.
        is_replaced: Whether other messages have replaced some that were read.

    """

    offset: int
    runs: tuple[CycleRange, ...]
    is_lossy: bool = False
    cycles: tuple[int, ...] = ()
    is_replaced: bool = False

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(run.count for run in self.runs)

    def until(self, end: int) -> Backlog:
        """Return the messages before the offset *end*."""
        return replace(self, runs=tuple(_cut(self.runs, end)), cycles=())

    def after(self, count: int) -> int:
        """Return the offset after *count* of the messages."""
        left = count
        for run in self.runs:
            if 0 < left <= run.count:
                return run.index_at(left)
            left -= run.count
        return self.offset

    @property
    def end(self) -> int:
        """The offset after all of the messages."""
        return self.after(self.count)

    def expected(self, count: int) -> Expected:
        """Return what a checkpoint records besides the offset after *count* of the messages."""
        end = self.after(count)
        taken = sum(run.first_index < end for run in self.runs)
        return Expected(count if taken > 1 else 0, ranges_of(self.cycles[taken:]))


class TopicTracker:
    """
    A topic whose queue is kept open.

    Args:
        topic: The name of the topic.
        path: The queue's directory, or its address.
        options: The options of the read.

    """

    def __init__(self, topic: str, path: str, options: ReadOptions) -> None:
        """Open nothing yet."""
        self._topic = topic
        self._path = path
        self._options = options
        self._queue: quire.Queue | None = None
        self._opened: tuple[int, int] | None = None
        self._finished: dict[int, int] = {}
        self._damaged: set[int] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the object without its queue, which tasks do not need."""
        return TopicTracker, (self._topic, self._path, self._options)

    def queue(self) -> quire.Queue:
        """Return the queue; open it again if another queue has replaced it."""
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
        """Return the offset after the newest message."""
        queue = self.queue()
        adapter_of(queue).refresh(queue)
        if adapter_of(queue).appends_late(queue):
            return self.ahead(0).end
        try:
            return end_index_of(queue)
        except CorruptError:
            if self._options.fail_on_data_loss:
                raise
            return self.ahead(0).end

    def ahead(self, offset: int, later: Cycles = (), mark: str = NONE) -> Backlog:
        """
        Return the messages from *offset* on.

        Args:
            offset: The offset.
            later: Later cycles that are known to have had messages.
            mark: The digest of the messages before the offset.

        """
        queue = self.queue()
        adapter_of(queue).refresh(queue)
        numbering = numbering_of(queue)
        cycle, sequence = numbering.to_cycle(offset), numbering.to_sequence(offset)
        # Listed before they are counted, so that all but the last are finished.
        counts = {
            # No more messages of a damaged cycle are read.
            each: self._count(queue, each, damaged=sequence if each == cycle else 0)
            for each in self._settled(queue)
            if each >= cycle
        }
        is_replaced = sequence > counts.get(cycle, sequence) or (
            cycle in counts and differs(queue, offset, mark)
        )
        if is_replaced:  # another file, or other messages, took the place of those that were read
            sequence, offset = 0, numbering.to_index(cycle, 0)
        runs = tuple(
            CycleRange(numbering.to_index(each, low), count - low, numbering.step)
            for each, count in counts.items()
            if count > (low := sequence if each == cycle else 0)
        )
        is_missing = bool(runs) and (
            self._is_missing(counts, cycle, sequence, offset) or _lacks(counts, cycle, later)
        )
        is_read_to_end = mark == NONE or self._finished.get(cycle) == sequence
        if not counts and not is_read_to_end:
            is_replaced = self._has_earlier(queue, cycle)
        if isinstance(queue, AnyRemoteQueue) and counts:  # a server does not report finished cycles
            self._finished |= {each: n for each, n in counts.items() if each != max(counts)}
        self._forget(counts, cycle)
        cycles = tuple(numbering.to_cycle(run.first_index) for run in runs)
        return Backlog(offset, runs, is_replaced or is_missing, cycles, is_replaced)

    def between(self, offset: int, end: int, before: Expected, planned: Expected) -> Backlog:
        """
        Return the messages from *offset* to *end*.

        Args:
            offset: The index of the first message.
            end: The index after the last message.
            before: The records made when *offset* was planned.
            planned: The records made when *end* was planned.

        """
        found = self.ahead(offset, before.later, before.mark).until(end)
        is_whole = (
            bool(found.runs)
            and found.end == end
            and found.count >= planned.messages
            and not differs(self.queue(), end, planned.mark)
        )
        return replace(found, is_lossy=found.is_lossy or not is_whole)

    def mark(self, offset: int) -> str:
        """Return the digest of the last messages before an offset."""
        return mark_of(self.queue(), offset)

    def range_of(self, runs: tuple[CycleRange, ...]) -> TopicRange:
        """Return messages in the form that tasks read."""
        return TopicRange(self._topic, self._path, runs, numbering_of(self.queue()).is_dense)

    def close(self) -> None:
        """Close the queue; it is opened again when needed."""
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _count(self, queue: quire.Queue, cycle: int, damaged: int) -> int:
        if (known := self._finished.get(cycle)) is not None:
            return known
        try:
            journal = journal_of(queue)
            if journal is None:
                return count_of(queue, cycle)
            ended = journal.end_of_cycle(cycle)
        except CorruptError as error:
            if self._options.fail_on_data_loss:
                raise
            if cycle not in self._damaged:
                self._damaged.add(cycle)
                _log.warning("a damaged cycle is skipped: %s topic=%s", error, self._topic)
            return damaged
        if ended is None:
            return 0
        _, count, is_finished = ended
        if is_finished:
            self._finished[cycle] = count
        return count

    def _settled(self, queue: quire.Queue) -> list[int]:
        """
        Return the cycles to read.

        When a cycle of a Vanilla Chronicle has just begun, a slow writer may still append to the
        previous one. An offset cannot go back, so the new cycle is read only later.
        """
        cycles = cycles_of(queue)
        if not adapter_of(queue).appends_late(queue) or len(cycles) <= 1:
            return cycles
        age_ms = now_ms() - periods_of(queue).start_ms(cycles[-1])
        return cycles[:-1] if 0 <= age_ms < LINGER_MS else cycles

    def _is_missing(self, counts: dict[int, int], cycle: int, sequence: int, offset: int) -> bool:
        """Return whether the offset's cycle, or a later one, is gone with unread messages."""
        if offset and cycle not in counts and self._finished.get(cycle) != sequence:
            return True
        return any(
            count and each > cycle and each not in counts for each, count in self._finished.items()
        )

    def _has_earlier(self, queue: quire.Queue, cycle: int) -> bool:
        """Return whether a queue has messages before a cycle."""
        earlier = [it for it in cycles_of(queue) if it < cycle]
        return any(self._count(queue, it, damaged=0) for it in reversed(earlier))

    def _forget(self, counts: dict[int, int], cycle: int) -> None:
        """Drop all counts but those of existing files and of the cycle that was read last."""
        kept = {each: n for each, n in self._finished.items() if each in counts or each == cycle}
        self._finished = kept

    def _table(self) -> Identity | None:
        if is_remote(self._path):
            return None  # a replaced queue of a server is noticed by its marks
        return identity_at(Path(self._path, TABLE)) or identity_at(self._path)


def now_ms() -> float:
    """Return the time in epoch milliseconds."""
    return time.time() * 1_000


def _lacks(counts: dict[int, int], cycle: int, later: Cycles) -> bool:
    """Return whether a cycle after *cycle* that had messages is gone."""
    return any(
        each not in counts for low, high in later for each in range(max(low, cycle + 1), high + 1)
    )


def _cut(runs: Iterable[CycleRange], end: int) -> Iterable[CycleRange]:
    for run in runs:
        if (before := run.until(end)).count:
            yield before
