"""
Probes one open queue at a cost that does not depend on the length of the queue.

A look at a Chronicle Queue lists no directory and opens no file until the queue rolls. In the
formats without a listing, finding the end takes both: so a look continues reading where the
previous one stopped, and searches for the end only if there is too much to read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from quire._common import replication_file
from quire._common.replication_file import Standing
from quire._native import ReplicaStates
from quire.cli.live.counts import Counts, Point
from quire.cli.output.group_facts import facts_of_groups
from quire.cli.output.stat_text import sizes_of
from quire.cli.parameters import open_read_only
from quire.errors import EncryptionError, QuireError, WireError
from quire.formats.adapter import HeldLock
from quire.formats.adapters import (
    adapter_of,
    journal_of,
    journal_tailer_of,
    numbering_of,
    periods_of,
    tailer_of,
)
from quire.formats.columns import Columns
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.groups.states import side_files
from quire.metrics.replication_state import ReplicationState, state_of
from quire.opening.discovery import TABLE
from quire.ranges.event_time import TimeField
from quire.ranges.stored_positions import OUTPUT_POSITION, stored_position

NEWEST: Final = 16
"""The number of messages whose size and latency a look measures."""
_READ_ON: Final = 256  # messages that a look reads before it searches for the end
_READ_BYTES: Final = 1 << 20
_FILES_EVERY_S: Final = 10.0  # between listings of the files of a queue that grows


@dataclass(slots=True)
class Look:
    """
    The result of a look.

    Attributes:
        end_index: The index after the last message.
        messages: The number of new messages since the previous look.
        payload_bytes: Their total length, estimated from the newest ones.
        latencies_us: The latencies of the newest messages.
        latency_of: What they measure: see :class:`quire.cli.live.sample.Sample`.
        tailers: Name, next index, lag and point of each named tailer.
        groups: The facts of each consumer group that can be read.
        replication: The queue's part in a replication.
        locks: The locks that are held.
        files: The number of files, cycles or pages; None if unknown.
        next_roll_s: The seconds until the present cycle ends.
        on_disk: The bytes that the files occupy; None if they are on a server.

    """

    end_index: int
    messages: int
    payload_bytes: float
    latencies_us: tuple[float, ...]
    latency_of: str | None
    tailers: tuple[NamedTailer, ...]
    groups: tuple[dict[str, Any], ...]
    replication: ReplicationState | None
    locks: tuple[HeldLock, ...]
    files: int | None
    next_roll_s: float | None
    on_disk: int | None


class NamedTailer(NamedTuple):
    """A named tailer, as it is stored in the queue's table."""

    name: str
    next_index: int
    lag: int
    point: Point


class _Newest(NamedTuple):
    """The newest messages: their mean length and their latencies."""

    mean_bytes: float
    latencies_us: tuple[float, ...]
    latency_of: str | None


_NONE: Final = _Newest(0.0, (), None)


class Probe:
    """
    An open queue that is probed repeatedly.

    Args:
        queue: The queue, opened read-only. The probe closes it.
        time_field: The field with the event time of its messages, if any.

    """

    def __init__(self, queue: AnyQueue, time_field: TimeField | None) -> None:
        """Check the last cycle, which `to_end` skips if it is damaged, and move to the end."""
        self._adapter = adapter_of(queue)
        self.format = self._adapter.name
        for cycle in self._adapter.cycles(queue)[-1:]:
            self._adapter.count(queue, cycle)
        self._queue = queue
        self._time_field = time_field
        self._tailer: AnyTailer = tailer_of(queue)
        self._counts = Counts(queue)
        self._step = numbering_of(queue).step
        self._files = _Files(queue)
        self._tailer.to_end()
        self._end = self._tailer.index
        self._cycle: int | None = None
        self._changed_ns, self._listed_s = 0, 0.0
        self._has_groups = False
        self._standing: Standing | None = None
        self._states: ReplicaStates | None = None
        self._lengths: dict[Path, int] = {}

    def look(self) -> Look:
        """
        Return the state of the queue, and its changes since the previous look.

        Raises:
            QuireError: The queue is damaged or was closed.
            OSError: The queue cannot be read.

        """
        before, read = self._end, self._to_end()
        end = self._end = self._tailer.index
        point = self._counts.point_of(end)
        # A slow writer's message in an earlier cycle does not move the end.
        messages = max(read, self._counts.between(self._counts.point_of(before), point))
        newest = self._newest(end, min(messages, point.sequence, NEWEST))
        count, on_disk = self._files.now(point.cycle, has_grown=messages > 0)
        self._keep_lengths(point.cycle)
        self._look_beside()
        return Look(
            end,
            messages,
            messages * newest.mean_bytes,
            newest.latencies_us,
            newest.latency_of,
            tuple(self._tailers(point)),
            tuple(self._groups()),
            self._replication(),
            tuple(self._adapter.locks(self._queue)),
            count,
            self._next_roll_s(point.cycle) if count else None,
            on_disk,
        )

    def has_shorter_files(self) -> bool:
        """
        Return whether a file that a look reads was truncated since the previous look.

        Reading on in its mapping would kill this process (SIGBUS).
        """
        return any(_length(file) < length for file, length in self._lengths.items())

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()

    def _look_beside(self) -> None:
        """
        Look for groups and replication beside the roll files.

        The directory is listed when its time has changed, and at intervals, as two changes may
        have the same time.
        """
        changed_ns, now_s = Path(self._queue.path).stat().st_mtime_ns, time.monotonic()
        if changed_ns == self._changed_ns and now_s < self._listed_s + _FILES_EVERY_S:
            return
        self._changed_ns, self._listed_s = changed_ns, now_s
        self._has_groups = any(True for _ in side_files(self._queue.path))
        self._standing = self._states = None
        if Path(self._queue.path).is_dir():
            with suppress(QuireError, OSError):  # `quire stat` shows the error
                self._standing = replication_file.read(self._queue.path)
            with suppress(QuireError, OSError):
                self._states = ReplicaStates.open_existing(self._queue.path, read_only=True)

    def _groups(self) -> Iterator[dict[str, Any]]:
        """Yield the facts of each group."""
        if self._has_groups:
            yield from (it for it in facts_of_groups(self._queue) if it["wrong"] is None)

    def _replication(self) -> ReplicationState | None:
        journal = journal_of(self._queue)
        if journal is None or self._standing is None:
            return None
        state = state_of(journal, self._standing)
        if state is None or self._states is None or state.role != "source":
            return state
        rows = self._states.replicas()
        return replace(state, in_sync={name: int(it) for name, _, it, *_ in rows})

    def _keep_lengths(self, cycle: int) -> None:
        """Remember the lengths of the files that the next look reads."""
        files = [*self._lengths]
        if cycle != self._cycle:
            self._cycle, place = cycle, self._adapter.place(self._queue, cycle)
            inside = [*place.iterdir()] if place.is_dir() else [place]
            files = [*inside, Path(self._queue.path, TABLE)]
        self._lengths = {file: _length(file) for file in files}

    def _to_end(self) -> int:
        """Move to the end; return the number of messages that were read on the way."""
        if not self._adapter.has_listed_end:
            read = Columns.read(self._tailer, _READ_ON, max_bytes=_READ_BYTES)
            if len(read) < _READ_ON and len(read.data) < _READ_BYTES:
                return len(read)
        self._tailer.to_end()
        return 0

    def _newest(self, end: int, count: int) -> _Newest:
        if not count or not self._tailer.move_to_index(end - count * self._step):
            self._tailer.to_end()
            return _NONE
        sizes, latencies, last = 0, list[float](), b""
        with suppress(EncryptionError):  # messages cannot be read without a key
            for _ in range(count):
                payload = self._tailer.read_bytes()
                if payload is None:
                    break
                sizes, last = sizes + len(payload), payload
                latencies += self._latency()
        if self._time_field is not None:
            return _Newest(sizes / count, *since(self._time_field, last))
        return _Newest(sizes / count, tuple(latencies), "history" if latencies else None)

    def _latency(self) -> Iterator[float]:
        if (tailer := journal_tailer_of(self._tailer)) is None:
            return
        with suppress(WireError):
            history = tailer.history
            if history is not None and len(history.timings) > 1:
                yield (history.timings[-1] - history.timings[0]) / 1000

    def _tailers(self, end: Point) -> Iterator[NamedTailer]:
        for name, index in self._adapter.named_tailers(self._queue):
            if name != OUTPUT_POSITION:
                point = Point(*stored_position(self._queue, index))
                yield NamedTailer(name, index, self._counts.between(point, end), point)

    def _next_roll_s(self, cycle: int) -> float | None:
        if not self._adapter.has_cycles:
            return None
        return periods_of(self._queue).start_ms(cycle + 1) / 1000 - time.time()


class _Files:
    """
    The files of a queue; only those of the present cycle still grow.

    They are listed again when there is a new cycle, and at intervals in a queue that grows: in
    some formats, writers add files to a cycle.
    """

    def __init__(self, queue: AnyQueue) -> None:
        self._queue = queue
        self._due_s = 0.0
        self._cycle = -1
        self._count = 0
        self._others = 0
        self._present: Sequence[Path] = ()

    def now(self, cycle: int, *, has_grown: bool) -> tuple[int, int]:
        """Return the number of cycles or pages, and the bytes that their files occupy."""
        if cycle != self._cycle or (has_grown and time.monotonic() >= self._due_s):
            self._due_s = time.monotonic() + _FILES_EVERY_S
            self._cycle = cycle
            pieces = [*adapter_of(self._queue).pieces(self._queue)]
            present = [it for it in pieces if it.cycle == cycle]
            self._present = [file for it in present for file in it.files]
            self._count = sum(it.cycle is not None for it in pieces)
            others = (file for it in pieces if it.cycle != cycle for file in it.files)
            self._others = sum(map(_on_disk, others))
        return self._count, self._others + sum(map(_on_disk, self._present))


def _length(file: Path) -> int:
    """Return the length of a file; 0 if it does not exist."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def open_probe(path: Path, time_field: TimeField | None) -> Probe:
    """
    Open a queue read-only, at its end.

    Raises:
        QuireError: There is no queue at *path*, or the queue is damaged.
        OSError: The queue cannot be read.

    """
    queue = open_read_only(path)
    try:
        return Probe(queue, time_field)
    except (QuireError, OSError):
        queue.close()
        raise


def since(time_field: TimeField, message: bytes) -> tuple[tuple[float, ...], str | None]:
    """Return the latency from the event time in a message until now."""
    event_ns = time_field.of(message)
    if event_ns is None:
        return (), None
    return ((time.time_ns() - event_ns) / 1000,), "time field"


def _on_disk(file: str | Path) -> int:
    try:
        return sizes_of(Path(file))["on_disk"]
    except FileNotFoundError:  # just removed, or not yet created for the next cycle
        return 0
