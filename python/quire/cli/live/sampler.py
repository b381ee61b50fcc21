"""Samples of many queues: rates, lags and changes since the previous sample."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from quire.cli.exit_codes import error_text
from quire.cli.live.counts import Point
from quire.cli.live.probes import Look, Probe, open_probe
from quire.cli.live.remote_probes import TIMEOUT_S, RemoteProbe, ServerCalls
from quire.cli.live.sample import (
    ERROR,
    GONE,
    OK,
    DiskSample,
    GroupSample,
    LockSample,
    ReplicationSample,
    Sample,
    TailerSample,
)
from quire.cli.output.stat_text import hex_text
from quire.cli.reading.sources import Source, sources_of
from quire.cli.remote_options import Place
from quire.errors import QuireError
from quire.formats.adapter import HeldLock
from quire.formats.journal import WRITE_LOCK
from quire.metrics.replication_state import ReplicationState
from quire.ranges.event_time import TimeField

if TYPE_CHECKING:
    from quire.remote.place import RemotePlace

_SECOND_NS: Final = 10**9
_RETRY_NS: Final = 10 * _SECOND_NS


class Sampler:
    """
    Samples the queues below some paths.

    A new queue directly in a path is found within ten seconds, as the directory changes; a queue
    further down is found by :meth:`rescan`.

    Args:
        paths: Queues, files of queues, directories of queues, or places on servers.
        time_field: The field with the event time: see :class:`quire.cli.live.sample.Sample`.
        now_ns: A monotonic clock.

    """

    def __init__(
        self,
        paths: Sequence[Place],
        *,
        time_field: str | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Find the queues."""
        self._paths = paths
        self._time_field = None if time_field is None else TimeField(time_field)
        self._now_ns = now_ns
        self._watches: dict[str, _Watch] = {}
        self._servers = _Servers()
        self.rescan()

    def sample(self) -> list[Sample]:
        """Return a sample of each queue, in the order of their names."""
        if self._now_ns() >= self._rescan_ns and self._changed() != self._seen:
            self.rescan()
        now_ns = self._now_ns()
        disks = _Disks()
        return [watch.sample(now_ns, disks) for watch in self._watches.values()]

    def rescan(self) -> None:
        """Look for queues again, and forget those that are gone."""
        self._seen = self._changed()
        self._rescan_ns = self._now_ns() + _RETRY_NS
        found = dict(self._named())
        for name in [it for it in self._watches if it not in found]:
            self._watches.pop(name).close()
        self._watches = {
            name: self._watches.get(name) or self._watch(name, source)
            for name, source in sorted(found.items())
        }

    def source(self, queue: str) -> Source:
        """Return the source of a queue."""
        return self._watches[queue].source

    def sources(self) -> dict[str, Source]:
        """Return the sources of the queues of the last sample, by name."""
        return {name: watch.source for name, watch in self._watches.items()}

    def close(self) -> None:
        """Close the queues."""
        for watch in self._watches.values():
            watch.close()
        self._servers.close()

    def _watch(self, name: str, source: Source) -> _Watch:
        place = source.path
        if isinstance(place, Path):
            return _Watch(name, source, lambda: open_probe(place, self._time_field))
        calls = self._servers.calls(place)
        topic, field = place.address.topic, self._time_field
        return _Watch(name, source, lambda: RemoteProbe(calls, topic, field))

    def _named(self) -> Iterator[tuple[str, Source]]:
        """Yield the queues with unique names."""
        taken = set[str]()
        for path in self._paths:
            for source in self._sources(path):
                own = own_name(path)
                is_alone = len(self._paths) == 1
                name = (source.name if is_alone else f"{own}/{source.name}".rstrip("/")) or own
                name = str(source.path) if name in taken else name
                taken.add(name)
                yield name, source

    def _sources(self, path: Place) -> list[Source]:
        return sources_of(path) if isinstance(path, Path) else self._servers.known(path)

    def _changed(self) -> list[object]:
        """Return the time of each path's last added or removed entry; of a server, its queues."""
        return [
            _identity(path)[2] if isinstance(path, Path) else self._servers.listed(path)
            for path in self._paths
        ]


def own_name(path: Place) -> str:
    """Return the name of a queue among several, or of a directory of queues."""
    if isinstance(path, Path):
        return path.absolute().name
    return path.address.topic or f"{path.address.host}:{path.address.port}"


class _Servers:
    """The servers of the watched places, each with one connection."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, int], ServerCalls] = {}
        self._known: dict[str, list[Source]] = {}

    def calls(self, place: RemotePlace) -> ServerCalls:
        """Return the connection to the server of a place."""
        key = place.address[:2]
        if key not in self._calls:
            options = {**place.options, "timeout_s": TIMEOUT_S}
            self._calls[key] = ServerCalls(replace(place, options=options))
        return self._calls[key]

    def known(self, place: RemotePlace) -> list[Source]:
        """Return the most recently listed queues of a place."""
        return self._known[str(place)]

    def listed(self, place: RemotePlace) -> list[Source]:
        """List the queues of a place; return the known ones if the server cannot be reached."""
        known = self._known.get(str(place))
        try:
            known = self._known[str(place)] = sources_of(place)
        except (QuireError, OSError):
            if known is None:
                raise
        return known

    def close(self) -> None:
        """Close the connections."""
        for calls in self._calls.values():
            calls.close()


class _Disks:
    """The file systems, each queried once per sample."""

    def __init__(self) -> None:
        self._known: dict[int, DiskSample] = {}

    def of(self, path: Place, device: int) -> DiskSample | None:
        if not isinstance(path, Path):
            return None
        if device not in self._known:
            try:
                found = os.statvfs(path)
            except OSError:
                return None
            unit = found.f_frsize
            self._known[device] = DiskSample(device, found.f_bavail * unit, found.f_blocks * unit)
        return self._known[device]


class _Watch:
    """One queue, from sample to sample."""

    def __init__(
        self, name: str, source: Source, open_probe: Callable[[], Probe | RemoteProbe]
    ) -> None:
        self.source = source
        self._name = name
        self._open_probe = open_probe
        self._probe: Probe | RemoteProbe | None = None
        self._error: str | None = None
        self._retry_ns = 0
        self._reset()

    def _reset(self) -> None:
        self._identity: tuple[int, int] | None = None
        self._before_ns: int | None = None
        self._grown_ns: int | None = None
        self._points: dict[str, Point] = {}
        self._held: dict[tuple[str, int], int] = {}  # when a process was first seen to hold a lock
        self._first_files: int | None = None

    def close(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None
        self._reset()

    def sample(self, now_ns: int, disks: _Disks) -> Sample:
        device, inode, _ = _identity(self.source.path)
        is_other = (device, inode) != self._identity  # gone, or replaced
        if is_other or (self._probe is not None and self._probe.has_shorter_files()):
            self.close()
        if not inode:
            self._error = None
            return self._plain(GONE)
        if self._probe is None and now_ns < self._retry_ns:
            return self._plain(ERROR)
        try:
            if self._probe is None:
                self._probe = self._open_probe()
                self._identity, self._error = (device, inode), None
            look = self._probe.look()
        except (QuireError, OSError) as error:
            self.close()
            self._retry_ns = now_ns + _RETRY_NS
            self._error = error_text(error)
            return self._plain(ERROR)
        return self._of(self._probe.format, look, now_ns, disks.of(self.source.path, device))

    def _plain(self, state: str) -> Sample:
        return Sample(self._name, str(self.source.path), _time(), state, self._error)

    def _of(self, format_: str, look: Look, now_ns: int, disk: DiskSample | None) -> Sample:
        seconds = None if self._before_ns is None else (now_ns - self._before_ns) / _SECOND_NS
        if look.messages or self._grown_ns is None:
            self._grown_ns = now_ns
        if self._first_files is None:
            self._first_files = look.files
        locks = self._locks(look, now_ns)
        tailers, groups = self._tailers(look, seconds), tuple(map(_group, look.groups))
        found = Sample(
            queue=self._name,
            path=str(self.source.path),
            time=_time(),
            state=OK,
            format=format_,
            messages_per_second=look.messages / seconds if seconds else None,
            bytes_per_second=look.payload_bytes / seconds if seconds else None,
            latencies_us=look.latencies_us,
            latency_us=median(look.latencies_us) if look.latencies_us else None,
            latency_of=look.latency_of,
            idle_s=(now_ns - self._grown_ns) / _SECOND_NS,
            end_index=hex_text(look.end_index),
            lag=max([*(it.lag for it in tailers), *(it.lag for it in groups)], default=None),
            tailers=tailers,
            groups=groups,
            replication=_replication(look.replication),
            locks=locks,
            lock_pid=next((it.pid for it in locks if it.name == WRITE_LOCK), None),
            files=look.files,
            rolls=None if look.files is None else max(0, look.files - (self._first_files or 0)),
            next_roll_s=look.next_roll_s,
            on_disk=look.on_disk,
            disk=disk,
        )
        self._before_ns = now_ns
        return found

    def _locks(self, look: Look, now_ns: int) -> tuple[LockSample, ...]:
        held = {(it.key, it.pid): it for it in look.locks}
        self._held = {key: self._held.get(key, now_ns) for key in held}
        return tuple(
            LockSample(it.key, it.pid, it.alive, _held_s(it, now_ns - self._held[key]))
            for key, it in held.items()
        )

    def _tailers(self, look: Look, seconds: float | None) -> tuple[TailerSample, ...]:
        before = self._points
        self._points = {it.name: it.point for it in look.tailers}
        return tuple(
            TailerSample(
                it.name,
                hex_text(it.next_index),
                it.lag,
                _read_rate(before.get(it.name), it.point, seconds),
            )
            for it in look.tailers
        )


def _group(facts: dict[str, Any]) -> GroupSample:
    members = len(facts["members"])
    return GroupSample(facts["name"], facts["lag"], facts["pending"], facts["oldest_s"], members)


def _held_s(lock: HeldLock, seen_ns: int) -> float:
    """Return how long a lock has been held, by its holder's record or by the samples."""
    if lock.since_ms is None:
        return seen_ns / _SECOND_NS
    return max(0.0, time.time() - lock.since_ms / 1000)


def _replication(state: ReplicationState | None) -> ReplicationSample | None:
    if state is None:
        return None
    index = state.acknowledged_index
    acknowledged = None if index is None else hex_text(index)
    in_sync = tuple(name for name, is_member in state.in_sync.items() if is_member)
    return ReplicationSample(state.role, state.epoch, acknowledged, state.lag, in_sync)


def _read_rate(before: Point | None, point: Point, seconds: float | None) -> float | None:
    """Return the read rate of a tailer; None if it moved backward or to another cycle."""
    if not seconds or before is None or before.cycle != point.cycle or before > point:
        return None
    return (point.sequence - before.sequence) / seconds


def _identity(path: Place) -> tuple[int, int, int]:
    """Return device, inode and modification time of a path; zeros if it does not exist."""
    if not isinstance(path, Path):
        return 0, 1, 0  # the server knows its identity
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino, found.st_mtime_ns
    return 0, 0, 0


def _time() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
