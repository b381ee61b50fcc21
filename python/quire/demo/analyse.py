"""
Departure delays by carrier and by scheduled hour, computed twice.

Once on Spark from the journal, once in plain Python from the data set's own file, so that the one
can be held against the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import quire
from quire.demo.flights import number, open_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA: Final = "event string, carrier string, hour int, delay int"
QUANTILE: Final = 0.95
TOLERANCE: Final = 1e-9

# A carrier and an hour; None stands for all of them.
Group: TypeAlias = tuple[str | None, int | None]

# Carrier, scheduled hour, and minutes of delay: None when it never left.
Departure: TypeAlias = tuple[str, int, int | None]


@dataclass(frozen=True, slots=True)
class Figures:
    """
    Departures of one group.

    Attributes:
        flights: Scheduled flights, the cancelled ones included.
        departed: How many of them left.
        mean: Mean departure delay of those that left, in minutes; None when none did.
        p95: The 95th percentile of it, interpolated linearly.

    """

    flights: int
    departed: int
    mean: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """
    What was found in the journal.

    Attributes:
        groups: Figures by group.
        events: Messages read, of all kinds.

    """

    groups: dict[Group, Figures]
    events: int


def analyse(spark: SparkSession, path: Path) -> Analysis:
    """Compute the figures on Spark, from the journal at *path*, in one job."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation("journal")
    journal = spark.read.format("quire").schema(SCHEMA).load(str(path))
    rows = (
        journal.observe(seen, f.count(f.lit(1)).alias("events"))
        .where(f.col("event").isin("departed", "cancelled"))
        .cube("carrier", "hour")
        .agg(
            f.count(f.lit(1)).alias("flights"),
            f.count("delay").alias("departed"),
            f.avg("delay").alias("mean"),
            f.percentile("delay", QUANTILE).alias("p95"),
        )
        .collect()
    )
    groups = {
        (row.carrier, row.hour): Figures(row.flights, row.departed, row.mean, row.p95)
        for row in rows
    }
    return Analysis(groups, seen.get["events"])


def figures_from_csv(folder: Path, limit: int | None = None) -> dict[Group, Figures]:
    """Compute the figures from ``flights.csv``, with nothing of what wrote or read the journal."""
    return figures_of(_departures_in_csv(folder, limit))


def figures_from_journal(path: Path) -> Analysis:
    """Compute the figures from the journal in plain Python, where there is no Spark."""
    with quire.open(path, read_only=True, create=False) as queue, queue.tailer() as tailer:
        events = list(iter(tailer.read_map, None))
    departures = (
        (event["carrier"], event["hour"], event["delay"])
        for event in events
        if event["event"] != "arrived"
    )
    return Analysis(figures_of(departures), len(events))


def figures_of(departures: Iterable[Departure]) -> dict[Group, Figures]:
    """Return the figures of each group that has a flight."""
    delays: defaultdict[Group, list[int]] = defaultdict(list)
    flights: Counter[Group] = Counter()
    for carrier, hour, delay in departures:
        for group in ((carrier, hour), (carrier, None), (None, hour), (None, None)):
            flights[group] += 1
            if delay is not None:
                delays[group].append(delay)
    return {group: _figures(count, delays[group]) for group, count in flights.items()}


def differences(found: Mapping[Group, Figures], expected: Mapping[Group, Figures]) -> list[str]:
    """Return one line for each group whose figures differ; none when all are equal."""
    groups = sorted(found.keys() | expected.keys(), key=str)
    return [
        f"carrier={carrier} hour={hour}: {found.get((carrier, hour))}"
        f" is not {expected.get((carrier, hour))}"
        for carrier, hour in groups
        if not _equal(found.get((carrier, hour)), expected.get((carrier, hour)))
    ]


def percentile(values: Sequence[int], quantile: float) -> float:
    """Return the exact percentile, linear between neighbours, of *values* in ascending order."""
    place = quantile * (len(values) - 1)
    low, high = values[floor(place)], values[ceil(place)]
    return low + (high - low) * (place - floor(place))


def _departures_in_csv(folder: Path, limit: int | None) -> Iterator[Departure]:
    with open_rows(folder) as rows:
        header = next(rows)
        carrier, hour, delay = (header.index(name) for name in ("carrier", "hour", "dep_delay"))
        for row in islice(rows, limit):
            yield row[carrier], int(row[hour]), number(row[delay])


def _figures(flights: int, delays: list[int]) -> Figures:
    if not delays:
        return Figures(flights, 0, None, None)
    mean = sum(delays) / len(delays)
    return Figures(flights, len(delays), mean, percentile(sorted(delays), QUANTILE))


def _equal(one: Figures | None, other: Figures | None) -> bool:
    if one is None or other is None:
        return one is other
    counts = (one.flights, one.departed) == (other.flights, other.departed)
    return counts and _close(one.mean, other.mean) and _close(one.p95, other.p95)


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOLERANCE
