"""
Looking at one open queue: each look takes the same few steps, however long the queue is.

A look at a Chronicle Queue lists no directory and opens no file until the queue rolls. In the
older formats only the end of the queue can be asked for, which does both: so a look reads on from
the look before, and asks for the end where that is too much to read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import quire
from quire._native import Tailer
from quire.cli.live.counts import Counts, Point
from quire.cli.output.stat_text import sizes_of
from quire.cli.parameters import open_read_only
from quire.errors import QuireError
from quire.formats.adapters import adapter_of, numbering_of, periods_of, tailer_of
from quire.formats.protocols import AnyTailer
from quire.ranges.event_time import TimeField
from quire.ranges.stored_positions import OUTPUT_POSITION, stored_position

_NEWEST: Final = 16  # messages whose size and latency a look takes
_READ_ON: Final = 256  # messages that a look at an older format reads
_READ_BYTES: Final = 1 << 20
_FILES_EVERY_S: Final = 10.0  # between listings of an older format's files
_LOCKS: Final = ("chronicle.write.lock", "chronicle.append.lock")


@dataclass(slots=True)
class Look:
    """
    What a look found.

    Attributes:
        end_index: The index after the last message.
        messages: How many there are since the look before.
        payload_bytes: How long they are together, if need be by the newest.
        latencies_us: Of the newest ones.
        latency_of: What that is: see :class:`quire.cli.live.sample.Sample`.
        tailers: Name, next index, lag and point of each named tailer.
        locks: Key, pid and whether it runs of each lock that is held.
        files: How many there are.
        next_roll_s: When the present cycle ends.
        on_disk: What the files occupy.

    """

    end_index: int
    messages: int
    payload_bytes: float
    latencies_us: tuple[float, ...]
    latency_of: str | None
    tailers: tuple[NamedTailer, ...]
    locks: tuple[tuple[str, int, bool], ...]
    files: int
    next_roll_s: float | None
    on_disk: int


class NamedTailer(NamedTuple):
    """A named tailer, as its queue's table has it."""

    name: str
    next_index: int
    lag: int
    point: Point


class _Newest(NamedTuple):
    """The newest messages: their mean length, and what their histories say."""

    mean_bytes: float
    latencies_us: tuple[float, ...]
    latency_of: str | None


_NONE: Final = _Newest(0.0, (), None)


class JournalProbe:
    """
    A Chronicle Queue.

    Args:
        queue: The queue, opened read-only. The probe closes it.
        time_field: The event time of its messages, if they have one.

    """

    format = "chronicle"

    def __init__(self, queue: quire.JournalQueue, time_field: TimeField | None) -> None:
        """Check the last file, which `to_end` skips if it is damaged, and go to the end."""
        for cycle in queue.cycles[-1:]:
            queue.end_of_cycle(cycle)
        self._queue = queue
        self._time_field = time_field
        self._tailer = Tailer(queue)
        self._counts = Counts(queue)
        self._files = _RollFiles(queue)
        self._end = self._to_end()

    def look(self) -> Look:
        """
        Return what has become of the queue since the look before.

        Raises:
            QuireError: The queue is damaged or was closed.
            OSError: The queue cannot be read.

        """
        end = self._to_end()
        point = self._counts.point_of(end)
        messages = self._counts.between(self._counts.point_of(self._end), point)
        self._end = end
        newest = self._newest(end, min(messages, point.sequence, _NEWEST))
        count, on_disk = self._files.now(point.cycle)
        return Look(
            end,
            messages,
            messages * newest.mean_bytes,
            newest.latencies_us,
            newest.latency_of,
            tuple(self._tailers(point)),
            tuple(self._locks()),
            count,
            self._next_roll_s(point.cycle) if count else None,
            on_disk,
        )

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()

    def _to_end(self) -> int:
        self._tailer.to_end()
        return self._tailer.index

    def _newest(self, end: int, count: int) -> _Newest:
        if not count or not self._tailer.move_to_index(end - count):
            return _NONE
        sizes, latencies, last = 0, list[float](), b""
        for _ in range(count):
            payload = self._tailer.read_bytes()
            if payload is None:
                break
            sizes, last = sizes + len(payload), payload
            latencies += self._latency()
        if self._time_field is not None:
            return _Newest(sizes / count, *_since(self._time_field, last))
        return _Newest(sizes / count, tuple(latencies), "history" if latencies else None)

    def _latency(self) -> Iterator[float]:
        with suppress(quire.errors.WireError):
            history = self._tailer.history
            if history is not None and len(history.timings) > 1:
                yield (history.timings[-1] - history.timings[0]) / 1000

    def _tailers(self, end: Point) -> Iterator[NamedTailer]:
        for name, index in self._queue.named_tailers():
            if name != OUTPUT_POSITION:
                point = Point(*stored_position(self._queue, index))
                yield NamedTailer(name, index, self._counts.between(point, end), point)

    def _locks(self) -> Iterator[tuple[str, int, bool]]:
        for key in _LOCKS:
            if (holder := self._queue.lock_holder(key)) is not None:
                yield key, *holder

    def _next_roll_s(self, cycle: int) -> float:
        return self._queue.cycle_start_ms(cycle + 1) / 1000 - time.time()


class OlderProbe:
    """
    A queue of an older format, which has neither named tailers nor locks in its files.

    Args:
        queue: The queue, opened read-only. The probe closes it.
        time_field: The event time of its messages, if they have one.

    """

    def __init__(self, queue: quire.Queue, time_field: TimeField | None) -> None:
        """Go to the end."""
        self.format = adapter_of(queue).name
        self._queue = queue
        self._time_field = time_field
        self._tailer: AnyTailer = tailer_of(queue)
        self._counts = Counts(queue)
        self._step = numbering_of(queue).step
        self._files = _OlderFiles(queue)
        self._tailer.to_end()
        self._end = self._tailer.index

    def look(self) -> Look:
        """
        Return what has become of the queue since the look before.

        Raises:
            QuireError: The queue is damaged or was closed.
            OSError: The queue cannot be read.

        """
        read, read_bytes, last = self._read_on()
        before, self._end = self._end, self._tailer.index
        messages = read
        if read == _READ_ON or read_bytes >= _READ_BYTES:
            last = self._last() or last
            self._end = self._tailer.index
            point = self._counts.point_of
            messages = max(read, self._counts.between(point(before), point(self._end)))
        latencies: tuple[float, ...] = ()
        latency_of = None
        if self._time_field is not None and last:
            latencies, latency_of = _since(self._time_field, last)
        count, on_disk = self._files.now(has_grown=messages > 0)
        mean = read_bytes / read if read else 0.0
        return Look(
            self._end,
            messages,
            messages * mean,
            latencies,
            latency_of,
            (),
            (),
            count,
            self._next_roll_s(),
            on_disk,
        )

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()

    def _read_on(self) -> tuple[int, int, bytes]:
        """Read some messages; return how many, their length and the last one."""
        count, _, offsets, data = self._tailer._read_columns(  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            _READ_ON, max_bytes=_READ_BYTES
        )
        if not count:
            return 0, 0, b""
        starts, payloads = memoryview(offsets).cast("i"), memoryview(data)
        return count, starts[count], bytes(payloads[starts[count - 1] : starts[count]])

    def _last(self) -> bytes | None:
        self._tailer.to_end()
        if self._tailer.move_to_index(max(0, self._tailer.index - self._step)):
            return self._tailer.read_bytes()
        self._tailer.to_end()
        return None

    def _next_roll_s(self) -> float | None:
        if not adapter_of(self._queue).has_cycles:
            return None
        periods = periods_of(self._queue)
        now_ms = time.time_ns() // 1_000_000
        return (periods.start_ms(periods.cycle_at(now_ms) + 1) - now_ms) / 1000


class _RollFiles:
    """The roll files of a queue: those before the present one no longer grow."""

    def __init__(self, queue: quire.JournalQueue) -> None:
        self._queue = queue
        self._cycle = -1
        self._count = 0
        self._older = 0

    def now(self, cycle: int) -> tuple[int, int]:
        """Return how many there are, and what they occupy; *cycle* is the present one."""
        if cycle != self._cycle:
            cycles = self._queue.cycles
            others = (it for it in cycles if it != cycle)
            self._older = sum(_on_disk(self._queue.file_for_cycle(it)) for it in others)
            self._cycle, self._count = cycle, len(cycles)
        if not self._count:
            return 0, 0
        return self._count, self._older + _on_disk(self._queue.file_for_cycle(cycle))


class _OlderFiles:
    """The files of a queue of an older format."""

    def __init__(self, queue: quire.Queue) -> None:
        self._queue = queue
        self._due_s = 0.0
        self._found = (0, 0)

    def now(self, *, has_grown: bool) -> tuple[int, int]:
        """Return how many cycles or pages there are, and what they occupy."""
        if (has_grown or not self._due_s) and time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + _FILES_EVERY_S
            self._found = self._listed()
        return self._found

    def _listed(self) -> tuple[int, int]:
        adapter = adapter_of(self._queue)
        files = adapter.files(self._queue)
        return len(adapter.cycles(self._queue)), sum(map(_on_disk, files))


def open_probe(path: Path, time_field: TimeField | None) -> JournalProbe | OlderProbe:
    """
    Open a queue read-only, at its end.

    Raises:
        QuireError: There is no queue at *path*, or the queue is damaged.
        OSError: The queue cannot be read.

    """
    queue = open_read_only(path)
    try:
        if isinstance(queue, quire.JournalQueue):
            return JournalProbe(queue, time_field)
        return OlderProbe(queue, time_field)
    except (QuireError, OSError):
        queue.close()
        raise


def _since(time_field: TimeField, message: bytes) -> tuple[tuple[float, ...], str | None]:
    """Return the time from a message's event until now."""
    event_ns = time_field.of(message)
    if event_ns is None:
        return (), None
    return ((time.time_ns() - event_ns) / 1000,), "time field"


def _on_disk(file: str | Path) -> int:
    try:
        return sizes_of(Path(file))["on_disk"]
    except FileNotFoundError:  # removed a moment ago, or the next cycle has none yet
        return 0
