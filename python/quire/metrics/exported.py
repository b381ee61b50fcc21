"""The exported metrics: the single list of names, kinds and descriptions."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

from quire._common.file_identity import identity_at, identity_of
from quire.errors import NotAQueueError, QuireError
from quire.formats.adapters import adapter_at, is_queue, journal_of
from quire.formats.protocols import AnyQueue
from quire.metrics.queue_state import StateReader
from quire.metrics.snapshot import Histogram, Metrics, metrics_of
from quire.opening.discovery import TABLE
from quire.sealed.key_ring import structure_only

_log: Final = logging.getLogger("quire")

Watched: TypeAlias = "AnyQueue | str | PathLike[str]"
"""A queue of any format, or the path of one."""


class Exported(NamedTuple):
    """
    An exported number of a queue.

    Attributes:
        name: Its name, without the prefix ``quire``.
        unit: ``messages``, ``bytes``, ``files``, ``seconds``; empty for a place.
        help: A description of one sentence.
        attribute: The attribute of :class:`Metrics`.
        label: The label of several numbers, such as ``tailer`` or ``group``; empty for one number.

    """

    name: str
    unit: str
    help: str
    attribute: str
    label: str = ""

    def values(self, metrics: Metrics) -> Mapping[str, float]:
        """Return the numbers by the label's value; a single one has ``""``."""
        if self.attribute.startswith("ring.") and metrics.ring is None:
            return {}
        if self.attribute.startswith("replication.") and metrics.replication is None:
            return {}
        if self.attribute in _COUNTED and not metrics.recorded:
            return {}  # nobody counts: 0 would say that nothing happened
        found: float | Mapping[str, float] | None = attrgetter(self.attribute)(metrics)
        if found is None:
            return {}
        return found if isinstance(found, Mapping) else {"": found}


class ExportedLatency(NamedTuple):
    """A latency of a queue; its name is that in :class:`Metrics`, too."""

    name: str
    help: str

    def values(self, metrics: Metrics) -> Histogram:
        """Return the durations."""
        found: Histogram = getattr(metrics, self.name)
        return found


def _counter(name: str, unit: str, help: str) -> Exported:  # noqa: A002
    return Exported(name, unit, help, name)


COUNTERS: Final = (
    _counter("messages_appended", "messages", "Messages appended."),
    _counter("bytes_appended", "bytes", "Bytes of the payloads appended."),
    _counter("messages_read", "messages", "Messages read by all tailers."),
    _counter("bytes_read", "bytes", "Bytes of the payloads read."),
    _counter("rolls", "files", "Roll files made."),
    _counter("redeliveries", "messages", "Messages that consumer groups delivered again."),
    _counter("dead_letters", "messages", "Messages that consumer groups gave up."),
    _counter("refusals", "messages", "Messages that consumers refused."),
    _counter("extensions", "extensions", "Times that consumers asked for more time."),
    _counter("redeliveries_refused", "messages", "Messages delivered again that were refused."),
    _counter("redeliveries_timed_out", "messages", "Messages delivered again after a timeout."),
    _counter("redeliveries_died", "messages", "Messages delivered again whose consumer died."),
    _counter("redeliveries_closed", "messages", "Messages delivered again whose consumer closed."),
    _counter("redeliveries_released", "messages", "Messages delivered again that were released."),
    _counter("cycles_removed", "cycles", "Cycles that retention removed."),
    _counter("bytes_freed", "bytes", "Disk space of the cycles that retention removed."),
    Exported("ring_stalls", "stalls", "Appends that found no room in the ring.", "ring.stalls"),
)
GAUGES: Final = (
    Exported("end_index", "", "The index after the last message.", "state.end_index"),
    Exported("end_sequence", "", "The same within its cycle.", "state.end_sequence"),
    Exported(
        "last_message_age",
        "seconds",
        "Time since the last message came.",
        "state.last_message_age_s",
    ),
    Exported("locks_held", "locks", "Locks that are held.", "state.locks_held"),
    Exported("locks_dead", "locks", "Locks of processes that died.", "state.locks_dead"),
    Exported(
        "tailer_lag", "messages", "Messages that a named tailer has not read.", "lag", "tailer"
    ),
    Exported(
        "group_lag",
        "messages",
        "Messages of a group that are not acknowledged.",
        "group_lag",
        "group",
    ),
    Exported(
        "group_pending",
        "messages",
        "Messages that a group claimed and that are not acknowledged.",
        "group_pending",
        "group",
    ),
    Exported(
        "group_oldest_age",
        "seconds",
        "Time since the oldest unacknowledged delivery of a group.",
        "group_oldest_age_s",
        "group",
    ),
    Exported(
        "replication_role", "", "Whether this is the queue's role.", "replication.roles", "role"
    ),
    Exported("replication_epoch", "", "The epoch of the queue's source.", "replication.epoch"),
    Exported(
        "replication_acknowledged_index",
        "",
        "The index of the last message that a replica has acknowledged.",
        "replication.acknowledged_index",
    ),
    Exported(
        "replication_lag",
        "messages",
        "Messages of a source that no replica has acknowledged.",
        "replication.lag",
    ),
    Exported(
        "replication_in_sync",
        "",
        "Whether a replica is in the in-sync set of a source.",
        "replication.in_sync",
        "replica",
    ),
    Exported(
        "replication_replica_lag",
        "messages",
        "Messages of a source that a replica has not acknowledged.",
        "replication.replica_lag",
        "replica",
    ),
    Exported("last_prune", "ms", "When retention ran last, since 1970.", "last_prune_ms"),
    Exported("ring_used", "bytes", "Bytes of messages in the ring.", "ring.used"),
    Exported("ring_high_water", "bytes", "Most bytes that were in the ring.", "ring.high_water"),
    Exported("ring_capacity", "bytes", "Bytes of messages that the ring holds.", "ring.capacity"),
    Exported("ring_pending", "messages", "Messages in the ring.", "ring.pending"),
    Exported("disk_used", "bytes", "Bytes that the files of the queue take.", "disk.used"),
    Exported("disk_free", "bytes", "Bytes left on its file system.", "disk.free"),
    Exported("disk_size", "bytes", "Bytes of its file system.", "disk.total"),
)
_COUNTED: Final = {*(it.attribute for it in COUNTERS), "last_prune_ms"} - {"ring.stalls"}
LATENCIES: Final = (
    ExportedLatency("append_latency", "Duration of a call that appends."),
    ExportedLatency("read_latency", "Duration of a call that reads something."),
    ExportedLatency("lock_wait", "Wait of an append for a write lock that was taken."),
)


class Watch:
    """
    The queues that an exporter reads, of any format; paths are opened read-only.

    A path without a queue, or whose queue was replaced, is checked again each time.
    """

    def __init__(self, queues: Iterable[Watched] | Mapping[str, Watched]) -> None:
        """Name the queues: by the keys of a mapping, or by their paths."""
        self._queues: dict[str, _Source] = {}
        self._failed: dict[tuple[str, str], str] = {}
        if isinstance(queues, Mapping):
            self.set(cast("Mapping[str, Watched]", queues))
        else:
            self.set({_path_of(queue): queue for queue in queues})

    def set(self, queues: Mapping[str, Watched]) -> None:
        """Watch only these queues; those already watched stay open."""
        known = self._queues
        self._queues = {
            name: known[name] if name in known and known[name].is_of(it) else _Source(it)
            for name, it in queues.items()
        }
        for name, source in known.items():
            if self._queues.get(name) is not source:
                source.close()

    def metrics(self) -> dict[str, Metrics]:
        """
        Return the metrics of each queue by its name.

        A queue that does not exist yet, was closed, or cannot be read is left out.
        """
        found: dict[str, Metrics] = {}
        for name, source in self._queues.items():
            try:
                metrics = source.metrics()
            except (QuireError, OSError) as error:
                self._say(name, "all", error)
                continue
            self._failed.pop((name, "all"), None)
            if metrics is not None:
                found[name] = metrics
        return found

    def values(self, one: Exported, queue: str, metrics: Metrics) -> Mapping[str, float]:
        """
        Return the numbers of one of the queues.

        Numbers that cannot be read, because a file is damaged, are left out and logged once, so
        that the others are still exported.
        """
        source = one.attribute.partition(".")[0]
        try:
            found = one.values(metrics)
        except (QuireError, OSError) as error:
            self._say(queue, source, error)
            return {}
        self._failed.pop((queue, source), None)
        return found

    def up(self, found: Mapping[str, Metrics]) -> dict[str, bool]:
        """Return, for each queue, whether it exists and its end can be read."""
        return {
            name: name in found and (name, "state") not in self._failed for name in self._queues
        }

    def _say(self, queue: str, source: str, error: Exception) -> None:
        """Log an error once while it lasts."""
        text = str(error)
        if self._failed.get((queue, source)) == text:
            return
        self._failed[queue, source] = text
        _log.warning(
            "metrics of a queue cannot be read: queue=%s metric=%s error=%s", queue, source, text
        )


class _Source:
    """A queue that was given, or that is opened by its path."""

    def __init__(self, given: Watched) -> None:
        self._given = given
        self._path = None if is_queue(given) else _absolute(given)
        self._queue: AnyQueue | None = given if is_queue(given) else None
        self._reader = None if self._queue is None else StateReader(self._queue)
        self._opened_as: tuple[int, int] | None = None
        self._pid = os.getpid()

    def is_of(self, given: Watched) -> bool:
        """Return whether this is the source of a queue, or of a path."""
        if is_queue(given) or self._path is None:
            return given is self._given
        return _absolute(given) == self._path

    def metrics(self) -> Metrics | None:
        """Return the metrics; None if there is no queue."""
        if self._path is not None and not self._is_open(self._path):
            return None
        queue = cast("AnyQueue", self._queue)
        return metrics_of(queue, self._reader)

    def close(self) -> None:
        """Close the queue if it was opened here."""
        if self._path is not None and self._queue is not None:
            self._queue.close()
            self._queue = None

    def _has_its_table(self, path: Path) -> bool:
        """Return whether the open queue's table is at its place: that of a restored one is not."""
        journal = journal_of(self._queue)
        if journal is None or not path.is_dir():
            return True
        return journal._table_identity() == identity_at(path / TABLE)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def _is_open(self, path: Path) -> bool:
        """Open the queue at the path unless it is already open; return whether there is one."""
        try:
            found = path.stat()
        except FileNotFoundError:
            self.close()
            return False
        identity = identity_of(found)
        if self._pid != os.getpid():
            self._queue, self._pid = None, os.getpid()  # a forked child has handles of its own
        if self._queue is not None and identity == self._opened_as and self._has_its_table(path):
            return True
        self.close()
        try:
            adapter = adapter_at(path)
            if adapter is None:
                return False
            with structure_only():
                opened: AnyQueue = adapter.open(str(path))
        except (NotAQueueError, FileNotFoundError):
            return False
        self._queue, self._opened_as, self._reader = opened, identity, StateReader(opened)
        return True


def label_of(name: str) -> str:
    """Return a name as the value of a label, which is UTF-8: other bytes of a path as escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def _path_of(queue: Watched) -> str:
    """Return the name of a queue that was given without one."""
    return queue.path if is_queue(queue) else str(_absolute(queue))


def _absolute(path: object) -> Path:
    """Return a path that stays the same when the process changes its working directory."""
    return Path(cast("str | PathLike[str]", path)).absolute()
