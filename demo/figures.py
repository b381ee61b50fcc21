"""The figures of groups of departures, in plain Python: what Spark's are held against."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from math import ceil, floor
from pathlib import Path
from typing import Final, NamedTuple

from demo.flights import number, open_rows

QUANTILE: Final = 0.95
TOLERANCE: Final = 1e-9

# A flight is on time if it is less than this many minutes late, by the US definition.
LATE_MIN: Final = 15
VERY_LATE_MIN: Final = 60

# Delays in bands of five minutes; the first and the last hold all beyond them.
BAND_MIN: Final = 5
BAND_FIRST: Final = -30
BAND_LAST: Final = 180


class Group(NamedTuple):
    """
    What departures are grouped by; None stands for all.

    Attributes:
        carrier: The airline's code.
        hour: The scheduled hour, New York time.
        day: The scheduled day, New York time.
        month: Its month.
        band: The band of the delay, by its first minute.

    """

    carrier: str | None = None
    hour: int | None = None
    day: date | None = None
    month: int | None = None
    band: int | None = None


ALL: Final = Group()


class Departure(NamedTuple):
    """A scheduled departure; its delay is None when it never left."""

    carrier: str
    hour: int
    day: date
    delay: int | None

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that it belongs to."""
        carrier, hour, day, delay = self
        groups = (
            ALL,
            Group(carrier, hour),
            Group(carrier),
            Group(hour=hour),
            Group(day=day),
            Group(month=day.month),
        )
        return groups if delay is None else (*groups, Group(band=band_of(delay)))


@dataclass(frozen=True, slots=True)
class Figures:
    """
    Departures of one group.

    Attributes:
        flights: Scheduled flights, the cancelled ones included.
        departed: How many of them left.
        on_time: How many left less than 15 minutes late.
        very_late: How many left an hour late or more.
        mean: Mean departure delay of those that left, in minutes; None when none did.
        p95: The 95th percentile of it, interpolated linearly.

    """

    flights: int
    departed: int
    on_time: int
    very_late: int
    mean: float | None
    p95: float | None

    @property
    def cancelled(self) -> int:
        """How many never left."""
        return self.flights - self.departed

    @property
    def late(self) -> int:
        """How many left late, but less than an hour."""
        return self.departed - self.on_time - self.very_late


def figures_of(departures: Iterable[Departure]) -> dict[Group, Figures]:
    """Return the figures of each group that has a flight."""
    delays: defaultdict[Group, list[int]] = defaultdict(list)
    flights: Counter[Group] = Counter()
    for departure in departures:
        for group in departure.groups:
            flights[group] += 1
            if departure.delay is not None:
                delays[group].append(departure.delay)
    return {group: _figures(count, delays[group]) for group, count in flights.items()}


def figures_from_csv(folder: Path, limit: int | None = None) -> dict[Group, Figures]:
    """Compute the figures from ``flights.csv``, with nothing of what wrote or read the journal."""
    return figures_of(_departures_in_csv(folder, limit))


def differences(found: Mapping[Group, Figures], expected: Mapping[Group, Figures]) -> list[str]:
    """Return one line for each group whose figures differ; none when all are equal."""
    return [
        f"{group}: {found.get(group)} is not {expected.get(group)}"
        for group in sorted(found.keys() | expected.keys(), key=str)
        if not _equal(found.get(group), expected.get(group))
    ]


def band_of(delay: int) -> int:
    """Return the band of a delay in minutes."""
    return max(BAND_FIRST, min(BAND_LAST, delay // BAND_MIN * BAND_MIN))


def percentile(values: Sequence[float], quantile: float) -> float:
    """Return the exact percentile, linear between neighbours, of *values* in ascending order."""
    place = quantile * (len(values) - 1)
    low, high = values[floor(place)], values[ceil(place)]
    return low + (high - low) * (place - floor(place))


def _departures_in_csv(folder: Path, limit: int | None) -> Iterator[Departure]:
    with open_rows(folder) as rows:
        header = next(rows)
        names = ("year", "month", "day", "carrier", "hour", "dep_delay")
        places = [header.index(name) for name in names]
        for row in islice(rows, limit):
            year, month, day, carrier, hour, delay = (row[place] for place in places)
            yield Departure(
                carrier, int(hour), date(int(year), int(month), int(day)), number(delay)
            )


def _figures(flights: int, delays: list[int]) -> Figures:
    if not delays:
        return Figures(flights, 0, 0, 0, None, None)
    return Figures(
        flights,
        len(delays),
        sum(delay < LATE_MIN for delay in delays),
        sum(delay >= VERY_LATE_MIN for delay in delays),
        sum(delays) / len(delays),
        percentile(sorted(delays), QUANTILE),
    )


def _equal(one: Figures | None, other: Figures | None) -> bool:
    if one is None or other is None:
        return one is other
    counts = (one.flights, one.departed, one.on_time, one.very_late)
    same = counts == (other.flights, other.departed, other.on_time, other.very_late)
    return same and _close(one.mean, other.mean) and _close(one.p95, other.p95)


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOLERANCE
