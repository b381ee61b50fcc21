"""The counts of a queue's processes at one moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from quire._native import ring_stats
from quire.formats.adapters import adapter_of, journal_of, numbering_of
from quire.formats.numbering import Numbering
from quire.formats.protocols import AnyQueue
from quire.groups.states import GroupState, states_of
from quire.metrics.queue_state import QueueState, StateReader, disk_used
from quire.metrics.replication_state import ReplicationState, replication_of


@dataclass(frozen=True, slots=True)
class Histogram:
    """
    Durations, as in an HDR histogram: 64 buckets for each power of two nanoseconds.

    Attributes:
        sum_ns: The sum of all durations.
        max_ns: The longest.
        buckets: The non-empty buckets in ascending order: the lowest duration of each, the lowest
            of the next bucket, and the count.

    Examples:
        >>> from quire.metrics import Histogram
        >>> latency = Histogram(700, 400, [(100, 101, 3), (400, 404, 1)])
        >>> latency.count, latency.mean_ns, latency.percentile(50), latency.percentile(99)
        (4, 175.0, 101, 400)

    """

    sum_ns: int = 0
    max_ns: int = 0
    buckets: Sequence[tuple[int, int, int]] = ()

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(count for *_, count in self.buckets)

    @property
    def mean_ns(self) -> float | None:
        """The mean; None without any duration."""
        return self.sum_ns / self.count if self.count else None

    def percentile(self, percent: float) -> int | None:
        """
        Return the duration that *percent* of all do not exceed; None without any.

        Raises:
            ValueError: *percent* is not in 0..100.

        """
        if not 0 <= percent <= 100:  # noqa: PLR2004
            raise ValueError(f"invalid percent: expected 0 to 100, found {percent}")
        wanted = self.count * percent / 100
        for _, high, count in self.buckets:
            wanted -= count
            if wanted <= 0:
                return min(high, self.max_ns)
        return self.max_ns if self.buckets else None

    def at_most(self, limit_ns: int) -> int:
        """
        Return how many durations are below *limit_ns*: exact for powers of two.

        Examples:
            >>> quire.metrics.Histogram(0, 0, [(100, 101, 3), (400, 404, 1)]).at_most(256)
            3

        """
        return sum(count for _, high, count in self.buckets if high <= limit_ns)


class Disk(NamedTuple):
    """
    The space that a queue uses and has.

    Attributes:
        used: The disk space of the queue's files, in bytes.
        free: The free bytes of the file system.
        total: The size of the file system in bytes.

    Examples:
        >>> disk = queue.metrics().disk
        >>> 0 <= disk.free <= disk.total
        True

    """

    used: int
    free: int
    total: int


class RingState(NamedTuple):
    """
    The ring of asynchronous appends.

    Attributes:
        capacity: How many bytes of messages it holds.
        used: How many bytes of messages are in it.
        high_water: The most bytes that were in it at once.
        pending: How many messages are in it.
        stalls: How often the ring had no room for a message.

    Examples:
        >>> with quire.open("busy", buffer_mode="async") as busy:
        ...     ring = busy.metrics().ring
        >>> ring.pending, ring.used <= ring.high_water <= ring.capacity
        (0, True)

    """

    capacity: int
    used: int
    high_water: int
    pending: int
    stalls: int


@dataclass(frozen=True)
class Metrics:
    """
    The counts of all processes of a queue since its side file was created.

    Counters and latencies are those of the call; ``state``, ``lag``, ``group_lag``, ``ring`` and
    ``disk`` are computed at their first use.

    Attributes:
        recorded: Whether any process counts, because it opened the queue with ``metrics=True``.
        since_ms: When counting began, in epoch milliseconds; 0 if no process counts.
        messages_appended: Messages appended.
        bytes_appended: The bytes of their payloads, as they are stored.
        messages_read: Messages read, by all tailers together.
        bytes_read: The bytes of their payloads, as they are stored.
        rolls: Roll files created.
        redeliveries: Messages that consumer groups delivered again.
        dead_letters: Messages that consumer groups wrote to their queue of dead letters.
        refusals: Calls of :meth:`GroupMessage.nack` that refused a message.
        extensions: Calls of :meth:`GroupMessage.extend` that gave a message more time.
        redeliveries_refused: Of the redeliveries, those of messages that were refused.
        redeliveries_timed_out: Those of messages that were not acknowledged in time.
        redeliveries_died: Those of messages whose consumer died.
        redeliveries_closed: Those of messages whose consumer was closed.
        redeliveries_released: Those of messages that :meth:`Group.release` took from a consumer.
        cycles_removed: Cycles that retention removed.
        bytes_freed: The disk space of these cycles.
        last_prune_ms: When retention ran last, in epoch milliseconds; 0 if it did not.
        append_latency: The duration of calls that appended: a batch is one call.
        read_latency: The duration of calls that read something.
        lock_wait: The waits of appends that found the write lock taken.

    Examples:
        >>> queue.metrics().recorded
        False
        >>> queue.metrics().lag
        {}

    """

    recorded: bool = False
    since_ms: int = 0
    messages_appended: int = 0
    bytes_appended: int = 0
    messages_read: int = 0
    bytes_read: int = 0
    rolls: int = 0
    redeliveries: int = 0
    dead_letters: int = 0
    refusals: int = 0
    extensions: int = 0
    redeliveries_refused: int = 0
    redeliveries_timed_out: int = 0
    redeliveries_died: int = 0
    redeliveries_closed: int = 0
    redeliveries_released: int = 0
    cycles_removed: int = 0
    bytes_freed: int = 0
    last_prune_ms: int = 0
    append_latency: Histogram = field(default_factory=Histogram)
    read_latency: Histogram = field(default_factory=Histogram)
    lock_wait: Histogram = field(default_factory=Histogram)
    _queue: AnyQueue | None = field(default=None, repr=False, compare=False)
    _reader: StateReader | None = field(default=None, repr=False, compare=False)

    @cached_property
    def state(self) -> QueueState:
        """The end of the queue, the time of its last message, and whether it is locked."""
        return QueueState(0, 0, None, 0, 0) if self._reader is None else self._reader.read()

    @cached_property
    def lag(self) -> Mapping[str, int]:
        """For each named tailer, the number of messages that it has not read."""
        return {} if self._queue is None else _lags(self._queue)

    @cached_property
    def group_lag(self) -> Mapping[str, int]:
        """For each consumer group, the number of messages that are not acknowledged."""
        return {group.name: group.lag for group in self._groups}

    @cached_property
    def group_pending(self) -> Mapping[str, int]:
        """For each consumer group, the number of claimed messages that are not acknowledged."""
        return {group.name: group.pending for group in self._groups}

    @cached_property
    def group_oldest_age_s(self) -> Mapping[str, float]:
        """For each consumer group that waits for one, the seconds since its oldest delivery."""
        ages = {group.name: group.oldest_age_s for group in self._groups}
        return {name: age_s for name, age_s in ages.items() if age_s is not None}

    @cached_property
    def _groups(self) -> list[GroupState]:
        return [] if self._queue is None else states_of(self._queue)

    @cached_property
    def ring(self) -> RingState | None:
        """The ring of asynchronous appends; None if the queue has none."""
        found = None if self._queue is None else ring_stats(self._queue.path)
        return None if found is None else RingState(*found)

    @cached_property
    def replication(self) -> ReplicationState | None:
        """The queue's role in a replication; None if it is not replicated."""
        return None if self._queue is None else replication_of(self._queue)

    @cached_property
    def disk(self) -> Disk:
        """The space that the queue uses and has."""
        return Disk(0, 0, 0) if self._queue is None else _disk(self._queue)

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the queue: attributes that were not used before are empty in the copy."""
        return {**self.__dict__, "_queue": None, "_reader": None}


def metrics_of(queue: AnyQueue, reader: StateReader | None = None) -> Metrics:
    """
    Return the counts of a queue's processes, and the state of its files.

    Args:
        queue: A queue of any format; only those of Chronicle Queue 5 have counts.
        reader: The reader of its earlier states, which knows when its last message came.

    """
    reader = reader or StateReader(queue)
    journal = journal_of(queue)
    found = None if journal is None else journal._metrics()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    if found is None:
        return Metrics(_queue=queue, _reader=reader)
    (since_ms, last_prune_ms), counters, latencies = found
    values: dict[str, Any] = dict(counters)
    values |= {name: Histogram(*latency) for name, latency in latencies}
    return Metrics(
        recorded=True,
        since_ms=since_ms,
        last_prune_ms=last_prune_ms,
        **values,
        _queue=queue,
        _reader=reader,
    )


def _lags(queue: AnyQueue) -> dict[str, int]:
    adapter, numbering = adapter_of(queue), numbering_of(queue)
    positions = adapter.named_tailers(queue)
    if not positions:
        return {}
    counts = {cycle: adapter.count(queue, cycle) for cycle in adapter.cycles(queue)}
    return {name: _lag(numbering, counts, index) for name, index in positions}


def _lag(numbering: Numbering, counts: Mapping[int, int], index: int) -> int:
    """Return the number of messages from *index* on; 0 stands for the first message."""
    cycle, sequence = numbering.to_cycle(index), numbering.to_sequence(index)
    own = max(0, counts.get(cycle, 0) - sequence)
    return own + sum(count for other, count in counts.items() if other > cycle)


def _disk(queue: AnyQueue) -> Disk:
    left = os.statvfs(queue.path)
    return Disk(disk_used(queue), left.f_bavail * left.f_frsize, left.f_blocks * left.f_frsize)
