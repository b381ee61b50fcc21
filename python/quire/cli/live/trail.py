"""Earlier samples that the screens keep, and the text of a sample."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from quire._common.terminal import escape_line
from quire._common.units import (
    NOTHING,
    count_text,
    duration_text,
    latency_text,
    short_size_text,
)
from quire.cli.live.sample import OK, ReplicationSample, Sample
from quire.cli.verbs.history import percentile

_BARS: Final = "▁▂▃▄▅▆▇█"
_KEPT: Final = 120  # samples
_LATENCIES: Final = 1_000
_SHOWN_TAILERS: Final = 5
_GAP: Final = " "
_NAME: Final = 8  # the narrowest first column
_LEFT: Final = {"rate"}

COLUMNS: Final = (
    ("queue", 0),
    ("msg/s", 6),
    ("rate", 8),
    ("B/s", 6),
    ("latency", 7),
    ("lag", 6),
    ("lock", 7),
    ("disk", 6),
    ("idle", 4),
)
"""The columns of the table and their widths; the first gets the remaining width."""

SORTS: Final[Mapping[str, Callable[[Sample], float]]] = {
    "queue": lambda _: 0.0,
    "msg/s": lambda it: it.messages_per_second or 0.0,
    "B/s": lambda it: it.bytes_per_second or 0.0,
    "latency": lambda it: it.latency_us or 0.0,
    "lag": lambda it: it.lag or 0.0,
    "disk": lambda it: it.on_disk or 0.0,
    "idle": lambda it: it.idle_s or 0.0,
}


class Trail:
    """The last samples of one queue."""

    def __init__(self) -> None:
        """Start without samples."""
        self.rates: deque[float | None] = deque(maxlen=_KEPT)
        self.latencies: deque[float | None] = deque(maxlen=_KEPT)
        self.lags: dict[str, deque[float | None]] = {}
        self._all_latencies: deque[float] = deque(maxlen=_LATENCIES)

    def add(self, sample: Sample) -> None:
        """Add the next sample."""
        self.rates.append(sample.messages_per_second)
        self.latencies.append(sample.latency_us)
        self._all_latencies.extend(sample.latencies_us)
        lags = {it.name: it.lag for it in sample.tailers}
        self.lags = {name: self.lags.get(name, deque(maxlen=_KEPT)) for name in lags}
        for name, lag in lags.items():
            self.lags[name].append(lag)

    def percentiles(self) -> Iterator[tuple[str, float]]:
        """Yield the name and value of each percentile for which there are enough messages."""
        ordered = [round(it * 1000) for it in sorted(self._all_latencies)]
        for share in (50.0, 99.0):
            if ordered and (found := percentile(ordered, share)) is not None:
                yield f"p{share:g}", found / 1000
        if ordered:
            yield "worst", ordered[-1] / 1000


def ordered(samples: Iterable[Sample], sort: str, pattern: str) -> list[Sample]:
    """Return the samples whose name contains *pattern*, sorted by name or largest first."""
    chosen = [it for it in samples if pattern.lower() in it.queue.lower()]
    key = SORTS[sort]
    return sorted(chosen, key=lambda it: (-key(it), it.queue))


def heading(width: int) -> str:
    """Return the names of the columns, aligned like :func:`line`."""
    return _aligned([name for name, _ in COLUMNS], width)


def line(sample: Sample, trail: Trail, width: int) -> tuple[str, bool]:
    """Return a line of the table, and whether it needs attention."""
    is_alarm = sample.state != OK or any(not it.alive for it in sample.locks)
    return _aligned(_cells(sample, trail, _name_width(width)), width), is_alarm


def _aligned(cells: Sequence[str], width: int) -> str:
    name, *others = cells
    parts = [
        cell.ljust(room) if column in _LEFT else cell.rjust(room)
        for cell, (column, room) in zip(others, COLUMNS[1:], strict=True)
    ]
    return _GAP.join([name.ljust(_name_width(width)), *parts])[:width]


def _name_width(width: int) -> int:
    return max(_NAME, width - sum(room + len(_GAP) for _, room in COLUMNS[1:]))


def _cells(sample: Sample, trail: Trail, width: int) -> tuple[str, ...]:
    name = cut(escape_line(sample.queue), width)
    if sample.state != OK:
        return (name, sample.state, *([""] * (len(COLUMNS) - 2)))
    return (
        name,
        count_text(sample.messages_per_second),
        sparkline(trail.rates, dict(COLUMNS)["rate"]),
        short_size_text(sample.bytes_per_second),
        latency_text(sample.latency_us),
        count_text(sample.lag),
        _lock(sample),
        short_size_text(sample.on_disk),
        duration_text(sample.idle_s),
    )


def _lock(sample: Sample) -> str:
    """Return the holder of the write lock, with ``!`` after a dead process."""
    found = next((it for it in sample.locks if it.pid == sample.lock_pid), None)
    return NOTHING if found is None else f"{found.pid}{'' if found.alive else '!'}"


def summary(samples: list[Sample], sort: str, pattern: str, interval_s: float) -> str:
    """Return the line above the table."""
    rates = [it.messages_per_second for it in samples if it.messages_per_second is not None]
    parts = [
        f"{len(samples)} queue{'' if len(samples) == 1 else 's'}",
        f"{count_text(sum(rates)) if rates else NOTHING} msg/s",
        f"by {sort}",
        f"every {interval_s:g}s",
        *_disks(samples),
    ]
    if pattern:
        parts.insert(1, f"filter {escape_line(pattern)!r}")
    return " · ".join(parts)


def _disks(samples: list[Sample]) -> Iterator[str]:
    """Yield how full each file system is, and when it will be full at the present rate."""
    disks = {it.disk.device: it.disk for it in samples if it.disk is not None}
    for device, disk in disks.items():
        of_it = [it for it in samples if it.disk is not None and it.disk.device == device]
        rate = sum(it.bytes_per_second or 0.0 for it in of_it)
        share = 100 * (disk.size - disk.free) / disk.size if disk.size else 0
        full = f", full in {duration_text(disk.free / rate)}" if rate else ""
        yield f"disk {share:.0f}%, {short_size_text(disk.free)} free{full}"


def details(sample: Sample, trail: Trail, width: int) -> Iterator[str]:
    """Yield the lines below the table: the details of one queue."""
    yield escape_line(f"{sample.queue}  {sample.path}")
    if sample.state != OK:
        yield escape_line(sample.error or sample.state)
        return
    yield _files(sample)
    curve = max(10, min(60, width - 46))
    yield f"rate    {count_text(sample.messages_per_second):>7} msg/s  " + sparkline(
        trail.rates, curve
    )
    yield from _latencies(sample, trail, curve)
    yield from (_held(sample, at) for at in range(len(sample.locks)))
    yield from _tailers(sample, trail, curve)
    yield from _groups(sample)
    if sample.replication is not None:
        yield _replication(sample.replication)


def _files(sample: Sample) -> str:
    files = sample.files or 0
    parts = [
        sample.format or "",
        f"{files:,} file{'' if files == 1 else 's'}",
        f"{short_size_text(sample.on_disk)} on disk",
        f"end {sample.end_index}",
    ]
    if sample.rolls:
        parts.append(f"{sample.rolls} new")
    if sample.next_roll_s is not None:
        later = sample.next_roll_s >= 0
        parts.append(f"rolls in {duration_text(sample.next_roll_s)}" if later else "roll is due")
    return " · ".join(parts)


def _latencies(sample: Sample, trail: Trail, curve: int) -> Iterator[str]:
    found = "  ".join(f"{name} {latency_text(value)}" for name, value in trail.percentiles())
    if found:
        yield f"latency {latency_text(sample.latency_us):>7}        " + sparkline(
            trail.latencies, curve
        )
        yield f"        {found}"


def _held(sample: Sample, at: int) -> str:
    lock = sample.locks[at]
    name = lock.name.removeprefix("chronicle.").replace(".lock", " lock")
    dead = "" if lock.alive else ", which is dead: see quire unlock"
    return f"{name} held by process {lock.pid} for {duration_text(lock.held_s)}{dead}"


def _tailers(sample: Sample, trail: Trail, curve: int) -> Iterator[str]:
    by_lag = sorted(sample.tailers, key=lambda it: (-it.lag, it.name))
    for it in by_lag[:_SHOWN_TAILERS]:
        name = cut(escape_line(it.name), 16)
        rate = count_text(it.messages_per_second)
        yield (
            f"{name:<16} lag {count_text(it.lag):>6}  {rate:>6} msg/s  "
            + sparkline(trail.lags[it.name], curve)
        )
    if len(by_lag) > _SHOWN_TAILERS:
        yield f"and {len(by_lag) - _SHOWN_TAILERS} more tailers"


def _groups(sample: Sample) -> Iterator[str]:
    by_lag = sorted(sample.groups, key=lambda it: (-it.lag, it.name))
    for it in by_lag[:_SHOWN_TAILERS]:
        members = f"{it.members} consumer{'' if it.members == 1 else 's'}"
        oldest = "" if it.oldest_s is None else f", the oldest {duration_text(it.oldest_s)} old"
        yield (
            f"{cut(escape_line(it.name), 16):<16} lag {count_text(it.lag):>6}  {members},"
            f" {count_text(it.pending).strip()} pending{oldest}"
        )
    if len(by_lag) > _SHOWN_TAILERS:
        yield f"and {len(by_lag) - _SHOWN_TAILERS} more groups"


def _replication(state: ReplicationSample) -> str:
    lag = "" if state.lag is None else f", lag {count_text(state.lag).strip()}"
    acknowledged = state.acknowledged_index or "nothing"
    in_sync = f", in sync {escape_line(' '.join(state.in_sync))}" if state.in_sync else ""
    said = f"{state.role}, epoch {state.epoch}, acknowledged {acknowledged}{lag}{in_sync}"
    return f"replication: {said}"


def sparkline(values: Sequence[float | None], width: int) -> str:
    """
    Return the last *width* values as bars from 0 to the largest; a blank for None.

    0 is the lowest bar; any larger value is at least the second.
    """
    shown = [*values][-width:]
    largest = max((it for it in shown if it is not None), default=0)
    return "".join(_bar(it, largest) for it in shown).rjust(width)


def _bar(value: float | None, largest: float) -> str:
    if value is None:
        return " "
    if value <= 0 or largest <= 0:
        return _BARS[0]
    return _BARS[max(1, min(len(_BARS) - 1, round(value / largest * (len(_BARS) - 1))))]


def cut(text: str, width: int) -> str:
    """Return a text in at most *width* characters; its end is kept, as paths differ there."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"
