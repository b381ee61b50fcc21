"""The state of a queue at one moment, and its changes since the previous sample."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

OK: Final = "ok"
GONE: Final = "gone"
ERROR: Final = "error"

TABLE_COLUMNS: Final = (
    "queue",
    "state",
    "messages_per_second",
    "bytes_per_second",
    "latency_us",
    "lag",
    "lock_pid",
    "files",
    "on_disk",
    "idle_s",
)
"""The columns of a table: plain values, for CSV and Arrow."""


@dataclass(frozen=True, slots=True)
class TailerSample:
    """
    A named tailer.

    Attributes:
        name: Its name.
        index: The index that it reads next.
        lag: The messages that it has not read.
        messages_per_second: The messages it read since the previous sample; None in the first
            sample, and if it moved backward.

    """

    name: str
    index: str
    lag: int
    messages_per_second: float | None


@dataclass(frozen=True, slots=True)
class GroupSample:
    """
    A consumer group.

    Attributes:
        name: Its name.
        lag: The messages that are not acknowledged.
        pending: Those of them that the group has claimed.
        oldest_s: The seconds since the oldest delivery of a pending message; None if there is none.
        members: The number of live consumers.

    """

    name: str
    lag: int
    pending: int
    oldest_s: float | None
    members: int


@dataclass(frozen=True, slots=True)
class ReplicationSample:
    """
    The queue's part in a replication.

    Attributes:
        role: ``source`` or ``sink``.
        epoch: The number of its source's epoch.
        acknowledged_index: The index of the last message that a replica has acknowledged.
        lag: For a source, the number of messages that no replica has acknowledged.
        in_sync: For a source, the members of its in-sync set.

    """

    role: str
    epoch: int
    acknowledged_index: str | None
    lag: int | None
    in_sync: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockSample:
    """
    A lock that is held.

    Attributes:
        name: Its key in the queue's table.
        pid: The process that holds it.
        alive: Whether that process is running.
        held_s: How long it has been held, by the holder's own record; without a record, how long
            all samples have found it held by this process.

    """

    name: str
    pid: int
    alive: bool
    held_s: float


@dataclass(frozen=True, slots=True)
class DiskSample:
    """The file system of a queue, in bytes."""

    device: int
    free: int
    size: int


@dataclass(frozen=True, slots=True)
class Sample:
    """
    A queue.

    Attributes:
        queue: Its name among the watched queues.
        path: Its path.
        time: When the sample was taken, in ISO 8601.
        state: ``ok``, ``gone`` or ``error``.
        error: The error, if *state* is ``error``.
        format: Its format.
        messages_per_second: The messages appended since the previous sample.
        bytes_per_second: The bytes of their payloads; extrapolated from the newest messages if
            there are more of them than a sample reads.
        latencies_us: The latencies of the newest messages; *latency_of* says what they measure.
        latency_us: Their median.
        latency_of: ``history``: from the append to the first queue to the append to this one.
            ``time field``: from the time in the field to this sample, so the wait for the sample
            is included.
        idle_s: How long no sample has found a new message.
        end_index: The index after the last message.
        lag: The largest lag of a named tailer or consumer group.
        tailers: The named tailers.
        groups: The consumer groups that can be read.
        replication: Its part in a replication; None if it has none, or it cannot be read.
        locks: The locks that are held.
        lock_pid: The process that holds the write lock.
        files: The number of roll files; of a Vanilla Chronicle, cycles; of a Quick-Queue, pages.
        rolls: The number of new ones since the first sample.
        next_roll_s: The seconds until the present cycle ends.
        on_disk: The bytes that the files occupy on disk.
        disk: The file system.

    """

    queue: str
    path: str
    time: str
    state: str
    error: str | None = None
    format: str | None = None
    messages_per_second: float | None = None
    bytes_per_second: float | None = None
    latencies_us: tuple[float, ...] = ()
    latency_us: float | None = None
    latency_of: str | None = None
    idle_s: float | None = None
    end_index: str | None = None
    lag: int | None = None
    tailers: tuple[TailerSample, ...] = ()
    groups: tuple[GroupSample, ...] = ()
    replication: ReplicationSample | None = None
    locks: tuple[LockSample, ...] = ()
    lock_pid: int | None = None
    files: int | None = None
    rolls: int | None = None
    next_roll_s: float | None = None
    on_disk: int | None = None
    disk: DiskSample | None = None

    def row(self) -> dict[str, Any]:
        """Return the sample as a row of JSON."""
        return asdict(self)
