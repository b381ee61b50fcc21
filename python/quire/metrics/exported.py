"""What is exported: the one list of names, kinds and descriptions."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

from quire._native import Queue
from quire.errors import NotAQueueError, QuireError
from quire.metrics.snapshot import Histogram, Metrics, metrics_of

_log: Final = logging.getLogger("quire")

Watched: TypeAlias = "Queue | str | PathLike[str]"
"""A queue, or the path of one."""


class Exported(NamedTuple):
    """
    A number of a queue.

    Attributes:
        name: Its name, without the prefix ``quire``.
        unit: ``messages``, ``bytes``, ``files``.
        help: What it is, in a sentence.
        attribute: Where it is in :class:`Metrics`.
        label: What the numbers are by, ``tailer`` or ``group``; empty for a single one.

    """

    name: str
    unit: str
    help: str
    attribute: str
    label: str = ""

    def values(self, metrics: Metrics) -> Mapping[str, int]:
        """Return the numbers by the name of a tailer or group; a single one has ``""``."""
        if self.attribute.startswith("ring.") and metrics.ring is None:
            return {}
        found: int | Mapping[str, int] = attrgetter(self.attribute)(metrics)
        return {"": found} if isinstance(found, int) else found


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
    _counter("cycles_removed", "cycles", "Cycles that retention removed."),
    _counter("bytes_freed", "bytes", "Disk space of the cycles that retention removed."),
    Exported("ring_stalls", "stalls", "Appends that found no room in the ring.", "ring.stalls"),
)
GAUGES: Final = (
    Exported(
        "tailer_lag", "messages", "Messages that a named tailer has not read.", "lag", "tailer"
    ),
    Exported(
        "group_lag",
        "messages",
        "Messages that nobody in a group acknowledged.",
        "group_lag",
        "group",
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
LATENCIES: Final = (
    ExportedLatency("append_latency", "Duration of a call that appends."),
    ExportedLatency("read_latency", "Duration of a call that reads something."),
    ExportedLatency("lock_wait", "Wait of an append for a write lock that was taken."),
)


class Watch:
    """The queues that an exporter reads; those given by path are opened when they exist."""

    def __init__(self, queues: Iterable[Watched] | Mapping[str, Watched]) -> None:
        """Name the queues: by the keys of a mapping, or by their paths."""
        if isinstance(queues, Mapping):
            self._queues = dict(cast("Mapping[str, Watched]", queues))
        else:
            self._queues = {_path_of(queue): queue for queue in queues}
        self._failed: dict[tuple[str, str], str] = {}

    def metrics(self) -> dict[str, Metrics]:
        """
        Return the metrics of each queue by its name.

        Those of a queue that is not there yet, was closed, or cannot be read are left out.
        """
        found: dict[str, Metrics] = {}
        for name, queue in self._queues.items():
            try:
                opened = queue if isinstance(queue, Queue) else self._open(name, queue)
                if opened is not None:
                    found[name] = metrics_of(opened)
            except (QuireError, OSError) as error:
                self._say(name, "all", error)
            else:
                self._failed.pop((name, "all"), None)
        return found

    def values(self, one: Exported, queue: str, metrics: Metrics) -> Mapping[str, int]:
        """
        Return the numbers of one of the queues.

        Those that cannot be read, as a file is damaged, are left out, so that the others are still
        exported; a log line says so once.
        """
        source = one.attribute.partition(".")[0]
        try:
            found = one.values(metrics)
        except (QuireError, OSError) as error:
            self._say(queue, source, error)
            return {}
        self._failed.pop((queue, source), None)
        return found

    def _say(self, queue: str, source: str, error: Exception) -> None:
        """Log an error once, as long as it stays."""
        text = str(error)
        if self._failed.get((queue, source)) == text:
            return
        self._failed[queue, source] = text
        _log.warning(
            "metrics of a queue cannot be read: queue=%s metric=%s error=%s", queue, source, text
        )

    def _open(self, name: str, path: str | PathLike[str]) -> Queue | None:
        try:
            opened = Queue(Path(path), read_only=True, create=False)
        except (NotAQueueError, FileNotFoundError):
            return None
        self._queues[name] = opened
        return opened


def _path_of(queue: Watched) -> str:
    return queue.path if isinstance(queue, Queue) else str(Path(queue).absolute())
