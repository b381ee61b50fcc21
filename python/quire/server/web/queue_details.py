"""The details of one queue: its cycles, readers, groups, replicas, disk and latencies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from quire.errors import QuireError
from quire.formats.adapters import (
    adapter_of,
    count_of,
    cycles_of,
    journal_of,
    numbering_of,
    periods_of,
)
from quire.formats.protocols import AnyQueue
from quire.groups.states import (
    GroupState,
    PendingMessage,
    count_from,
    pending_of,
    side_file,
    states_of,
)
from quire.handles.journal.replicas import Replica, replicas_of
from quire.metrics.snapshot import Histogram, Metrics, metrics_of
from quire.server.errors_for_clients import ErrorsForClients

_MOST_CYCLES: Final = 200
_MOST_PENDING: Final = 100
_WIDTH: Final = 960.0
_HEIGHT: Final = 120.0
_NARROWEST: Final = 2.0


@dataclass(frozen=True, slots=True)
class Cycle:
    """
    A cycle of a queue.

    Attributes:
        number: Its number.
        first_index: The index of its first message.
        messages: The number of its messages.
        start: When it starts; None if the cycle is not a period of time.
        size: The bytes that it takes on disk.

    """

    number: int
    first_index: int
    messages: int
    start: datetime | None
    size: int


class Bar(NamedTuple):
    """A bar of a chart, in the units of its view box, and what it stands for."""

    x: float
    y: float
    width: float
    height: float
    text: str


class Chart(NamedTuple):
    """
    A bar chart with a label at each end of its axis.

    Attributes:
        bars: The bars.
        label: A description of the chart for screen readers.
        first: The label at the left end.
        last: The label at the right end.

    """

    bars: Sequence[Bar]
    label: str
    first: str
    last: str


class Reader(NamedTuple):
    """A named tailer: its name, the index that it reads next, and its lag."""

    name: str
    next_index: int
    lag: int


class Group(NamedTuple):
    """A consumer group, and its first pending messages."""

    state: GroupState
    pending: list[PendingMessage]


class Latency(NamedTuple):
    """Durations of one kind: their name, their histogram, and a chart of it."""

    name: str
    histogram: Histogram
    chart: Chart


@dataclass(frozen=True, slots=True)
class Details:
    """
    The details of one queue at one moment.

    Attributes:
        title: The name of its format, in words.
        facts: The settings with which it was created, by name.
        cycles: Its newest cycles, the newest first.
        all_cycles: The number of all cycles.
        timeline: The number of messages of each cycle, as a chart; None without cycles.
        readers: Its named tailers.
        groups: Its consumer groups.
        replicas: Its replicas.
        metrics: The metrics of its processes, and its disk.
        latencies: How long appends and reads took, if metrics are recorded.
        troubles: Errors because of which details are missing.

    """

    title: str
    facts: dict[str, str]
    cycles: list[Cycle]
    all_cycles: int
    timeline: Chart | None
    readers: list[Reader]
    groups: list[Group]
    replicas: list[Replica]
    metrics: Metrics
    latencies: list[Latency]
    troubles: list[str]


def details_of(queue: AnyQueue, errors: ErrorsForClients) -> Details:
    """
    Return the details of a queue, with errors as visitors see them.

    Raises:
        QuireError: The queue is damaged, or was removed.
        OSError: The queue cannot be read.

    """
    adapter, journal = adapter_of(queue), journal_of(queue)
    cycles, all_cycles = _cycles(queue)
    metrics, troubles = metrics_of(queue), list[str]()
    groups, replicas = list[Group](), list[Replica]()
    for find in (
        lambda: metrics.disk,
        lambda: metrics.replication,
        lambda: groups.extend(_groups(queue)),
        lambda: replicas.extend([] if journal is None else replicas_of(journal)),
    ):
        try:
            find()
        except (QuireError, OSError) as error:
            troubles.append(errors.text(error))
    return Details(
        adapter.title,
        {name: str(value) for name, value in adapter.properties(queue).items()},
        cycles,
        all_cycles,
        timeline(cycles),
        _readers(queue),
        groups,
        replicas,
        metrics,
        _latencies(metrics),
        troubles,
    )


def _cycles(queue: AnyQueue) -> tuple[list[Cycle], int]:
    adapter, numbering, periods = adapter_of(queue), numbering_of(queue), None
    if adapter.has_cycles:
        periods = periods_of(queue)
    numbers, found = cycles_of(queue), list[Cycle]()
    for number in reversed(numbers[-_MOST_CYCLES:]):
        start, size = None, 0
        if periods is not None:
            with suppress(ValueError, OverflowError, OSError):
                start = datetime.fromtimestamp(periods.start_ms(number) / 1000, UTC)
        with suppress(OSError, QuireError):
            place = adapter.place(queue, number)
            files = [*place.iterdir()] if place.is_dir() else [place]
            size = sum(it.lstat().st_blocks * 512 for it in files)
        found.append(
            Cycle(number, numbering.to_index(number, 0), count_of(queue, number), start, size)
        )
    return found, len(numbers)


def timeline(newest_first: Sequence[Cycle]) -> Chart | None:
    """Return a chart of the number of messages in each cycle, by time."""
    cycles = [*reversed(newest_first)]
    if not cycles:
        return None
    low, high = cycles[0].number, cycles[-1].number
    step = _WIDTH / (high - low + 1)
    most = max(it.messages for it in cycles) or 1
    bars: list[Bar] = []
    for it in cycles:
        height = _HEIGHT * it.messages / most if it.messages else 1.0
        width = max(_NARROWEST, step * 0.85)
        x = min((it.number - low) * step, _WIDTH - width)
        text = f"{_moment(it)}: {it.messages:,} messages"
        bars.append(Bar(x, _HEIGHT - height, width, height, text))
    first, last = _moment(cycles[0]), _moment(cycles[-1])
    label = f"Messages of {len(cycles)} cycles from {first} to {last}, {most:,} at most"
    return Chart(bars, label, first, last)


def _moment(cycle: Cycle) -> str:
    if cycle.start is None:
        return f"cycle {cycle.number}"
    return cycle.start.strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")


def lag_of(queue: AnyQueue) -> int | None:
    """Return the lag of the slowest named tailer or group; None if there are none."""
    lags = [it.lag for it in _readers(queue)]
    if adapter_of(queue).why_no_groups is None:
        lags += [it.lag for it in states_of(queue)]
    return max(lags, default=None)


def _readers(queue: AnyQueue) -> list[Reader]:
    found = adapter_of(queue).named_tailers(queue)
    return [Reader(name, index, count_from(queue, index)) for name, index in found]


def _groups(queue: AnyQueue) -> list[Group]:
    if adapter_of(queue).why_no_groups is not None:
        return []
    return [
        Group(state, pending_of(side_file(queue.path, state.name))[:_MOST_PENDING])
        for state in states_of(queue)
    ]


def _latencies(metrics: Metrics) -> list[Latency]:
    named = (
        ("Appending", metrics.append_latency),
        ("Reading", metrics.read_latency),
        ("Waiting for the write lock", metrics.lock_wait),
    )
    return [Latency(name, it, histogram_of(name, it)) for name, it in named if it.count]


def histogram_of(name: str, found: Histogram) -> Chart:
    """Return a chart of the number of durations from each power of two to the next."""
    low = max(0, math.floor(math.log2(max(1, found.buckets[0][0]))))
    high = max(low, math.ceil(math.log2(max(2, found.buckets[-1][1]))))
    counts = [
        found.at_most(2 ** (power + 1)) - (found.at_most(2**power) if power > low else 0)
        for power in range(low, high)
    ] or [found.count]
    step, most = _WIDTH / len(counts), max(counts) or 1
    bars: list[Bar] = []
    for place, count in enumerate(counts):
        height = max(1.0 if count else 0.0, _HEIGHT * count / most)
        past = duration(2 ** (low + place + 1))
        text = f"{duration(2 ** (low + place))} to {past}: {count:,}"
        bars.append(Bar(place * step, _HEIGHT - height, step * 0.9, height, text))
    first, last = duration(2**low), duration(2 ** max(high, low + 1))
    label = f"{name}: {found.count:,} durations between {first} and {last}"
    return Chart(bars, label, first, last)


def duration(nanoseconds: float | None) -> str:
    """Return a duration in a suitable unit."""
    if nanoseconds is None:
        return "\N{EN DASH}"
    value = float(nanoseconds)
    for unit in ("ns", "\N{MICRO SIGN}s", "ms"):
        if value < 1000:  # noqa: PLR2004
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} s"
