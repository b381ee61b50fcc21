"""
Planning: which messages each task reads.

Planning only counts messages, and reads none. A task's share may span many cycles and topics,
because a task costs about as much as reading a few hundred thousand messages, and many queues have
small cycles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from pyspark.sql.datasource import InputPartition

import quire
from quire.errors import CorruptError, IndexOutOfRangeError
from quire.formats.adapters import adapter_of, numbering_of
from quire.ranges.cycles import CycleRange, cycle_ranges

# Below this a further task costs more than it saves.
RECORDS_PER_PARTITION_MIN: Final = 10_000


@dataclass(frozen=True, slots=True)
class TopicRange:
    """
    Messages of one topic, in the order of their indexes.

    Attributes:
        topic: The topic.
        path: The queue's directory, or its address.
        runs: The ranges of indexes, cycle by cycle.
        is_dense: Whether each index in *runs* is that of a message.

    """

    topic: str
    path: str
    runs: tuple[CycleRange, ...]
    is_dense: bool = True

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(run.count for run in self.runs)


class Partition(InputPartition):
    """The messages that one task reads."""

    def __init__(self, spans: Sequence[TopicRange]) -> None:
        """Keep the spans; Spark sends them to the task."""
        super().__init__(tuple(spans))
        self.spans = tuple(spans)


def topic_range(
    queue: quire.Queue,
    topic: str,
    start: int,
    end: int,
    skipped: Callable[[CorruptError], object] | None = None,
) -> TopicRange:
    """Return the messages of *queue* from *start* to *end*, which is exclusive."""
    runs = tuple(cycle_ranges(queue, start, end, skipped))
    return TopicRange(topic, queue.path, runs, numbering_of(queue).is_dense)


def check_start(queue: quire.Queue, topic: str, start: int) -> None:
    """
    Check that no messages from *start* on were deleted.

    Raises:
        IndexOutOfRangeError: Messages from *start* on were deleted.
        CorruptError: A file at or before *start* is damaged, so that the messages cannot be
            checked.

    """
    first = queue.first_index
    if not start or (first is not None and start >= first):
        return
    first = adapter_of(queue).first_index(queue)  # damaged files are not gone
    if first is not None and start >= first:
        return
    raise IndexOutOfRangeError(
        f"messages are gone (were cycles deleted?): topic={topic} wanted={start:#x}"
        f" first={'none' if first is None else hex(first)}"
        " (start at the first, or set failOnDataLoss=false)"
    )


def partitions_of(
    spans: Iterable[TopicRange],
    records_per_partition: int,
    min_partitions: int = 1,
    parallelism: int | None = None,
) -> list[Partition]:
    """
    Divide spans into shares of about equal size, smaller than requested if cores would be idle.

    Args:
        spans: The messages.
        records_per_partition: The largest number of messages in a share.
        min_partitions: The smallest number of shares, if there are enough messages.
        parallelism: How many tasks run at once; None: as many as this machine has processors.

    """
    spans = [span for span in spans if span.runs]
    total = sum(span.count for span in spans)
    busy = max(ceil(total / (parallelism or os.cpu_count() or 1)), RECORDS_PER_PARTITION_MIN)
    sizes = _share_sizes(total, min(records_per_partition, busy), min_partitions)
    partitions: list[Partition] = []
    taken: list[TopicRange] = []
    room = next(sizes, 0)
    for span in spans:
        left: TopicRange | None = span
        while left is not None:
            piece, left = _cut(left, room)
            taken.append(piece)
            room -= piece.count
            if not room:
                partitions.append(Partition(taken))
                taken, room = [], next(sizes, 0)
    return partitions


def _share_sizes(total: int, most: int, min_partitions: int) -> Iterator[int]:
    """Yield the number of messages in each share; these differ by at most one."""
    if not total:
        return
    partitions = max(ceil(total / most), min(min_partitions, total))
    size, larger = divmod(total, partitions)
    yield from (size + (number < larger) for number in range(partitions))


def _cut(span: TopicRange, count: int) -> tuple[TopicRange, TopicRange | None]:
    """Return the first *count* messages of a span, and the rest if there are more."""
    runs: list[CycleRange] = []
    for number, run in enumerate(span.runs):
        if run.count > count:
            taken, rest = run.split(count)
            if count:
                runs.append(taken)
            return (
                replace(span, runs=tuple(runs)),
                replace(span, runs=(rest, *span.runs[number + 1 :])),
            )
        runs.append(run)
        count -= run.count
    return span, None
