"""What is known of a queue at one moment, and since the moment before."""

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
"""The columns of a table: plain values, as CSV and Arrow have them."""


@dataclass(frozen=True, slots=True)
class TailerSample:
    """
    A named tailer.

    Attributes:
        name: Its name.
        index: The index that it reads next.
        lag: The messages that it has not read.
        messages_per_second: What it read since the sample before; None at first, and if it went
            back.

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
        pending: Of these, those that the group has claimed.
        oldest_s: The seconds since the oldest delivery of these; None if there is none.
        members: How many consumers are alive.

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
        acknowledged_index: The last message that a replica has acknowledged.
        lag: Of a source, the messages that no replica has acknowledged.
        in_sync: Of a source, the replicas of its in-sync set.

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
        alive: Whether that process runs.
        held_s: For how long, by the holder's own record; without one, for how long each sample has
            found it held by this process.

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
        queue: Its name among the queues that are watched.
        path: Where it is.
        time: When the sample was taken, in ISO 8601.
        state: ``ok``, ``gone`` or ``error``.
        error: What is wrong.
        format: Its format.
        messages_per_second: Appended since the sample before.
        bytes_per_second: Likewise, of payloads; extrapolated from the newest messages if there
            were more of them than a sample reads.
        latencies_us: Of the newest messages; what they measure says *latency_of*.
        latency_us: The median of them.
        latency_of: ``history``: from the first queue's append to this one's. ``time field``: from
            the field to this sample, so it includes the wait for the sample.
        idle_s: For how long no sample has found a new message.
        end_index: The index after the last message.
        lag: The largest lag of a named tailer or consumer group.
        tailers: The named tailers.
        groups: The consumer groups that can be read.
        replication: Its part in a replication; None if it has none, or that cannot be read.
        locks: The locks that are held.
        lock_pid: Who holds the write lock.
        files: Roll files; cycles of a Vanilla Chronicle; pages of a Quick-Queue.
        rolls: How many of them came since the first sample.
        next_roll_s: When the present cycle ends.
        on_disk: The bytes that the files occupy.
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
        """Return it as a row of JSON."""
        return asdict(self)
