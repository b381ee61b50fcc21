"""
Departure delays, computed from the journal: on Spark, or in plain Python where there is none.

``demo.figures`` computes the same from the data set's own file, so that the one can be held
against the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from demo.events import DAY_MS, ORIGIN_ZONE, date_of
from demo.figures import (
    BAND_FIRST,
    BAND_LAST,
    BAND_MIN,
    LATE_MIN,
    QUANTILE,
    VERY_LATE_MIN,
    Departure,
    Figures,
    Group,
    figures_of,
)
from demo.journal import Journal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SCHEMA: Final = "_timestamp timestamp, event string, carrier string, hour int, delay int"
TIME: Final = "sched"

_GROUPS: Final = ("", "carrier hour", "carrier", "hour", "day", "month", "band")


@dataclass(frozen=True, slots=True)
class Analysis:
    """
    What was found in the journal.

    Attributes:
        groups: Figures by group.
        messages: Messages of all kinds, by the UTC day of their cycle.

    """

    groups: dict[Group, Figures]
    messages: dict[date, int]

    @property
    def events(self) -> int:
        """Messages read, of all kinds."""
        return sum(self.messages.values())


def analyse(spark: SparkSession, journal: Journal) -> Analysis:
    """Compute the figures on Spark."""
    from pyspark.sql import functions as f

    from quire.spark import scan

    path, options = journal.place
    events = scan(spark, path, columns=SCHEMA, timestampField=TIME, **options)
    rows = (
        _departures(events)
        .groupingSets(
            [[f.col(name) for name in names.split()] for names in _GROUPS],
            *map(f.col, Group._fields),
        )
        .agg(*_figures(), f.grouping("band").alias("is_any_band"))
        # Cancelled flights have no delay, and are in no band.
        .where("is_any_band = 1 or band is not null")
        .collect()
    )
    counts = _days(spark, journal).groupBy("day").count().collect()
    return Analysis(
        {_group(row): _figures_in(row) for row in rows},
        {date_of(row[0]): row[1] for row in sorted(counts)},
    )


def figures_from_journal(journal: Journal) -> Analysis:
    """Compute the figures from the journal in plain Python, where there is no Spark."""
    departures: list[Departure] = []
    messages: Counter[date] = Counter()
    with journal.open(read_only=True) as queue, queue.tailer() as tailer:
        while (event := journal.read(tailer)) is not None:
            messages[date_of(journal.day_of(queue, tailer, event))] += 1
            if event["event"] != "arrived":
                departures.append(_departure(event))
    return Analysis(figures_of(departures), dict(messages))


def _days(spark: SparkSession, journal: Journal) -> DataFrame:
    """Return the day of each message: that of its cycle, if there are cycles."""
    from quire.spark import scan

    path, options = journal.place
    if journal.store_of_day is not None:
        return scan(spark, path, columns="_cycle", **options).toDF("day")
    times = scan(spark, path, columns="sched long, actual long", **options)
    return times.selectExpr(f"cast(coalesce(actual, sched) div {DAY_MS} as int) as day")


def _departures(events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    delay = f.col("delay")
    band = f.greatest(
        f.lit(BAND_FIRST), f.least(f.lit(BAND_LAST), f.floor(delay / BAND_MIN) * BAND_MIN)
    )
    return (
        events.where(f.col("event").isin("departed", "cancelled"))
        .withColumn("time", f.from_utc_timestamp("_timestamp", ORIGIN_ZONE))
        .withColumn("day", f.to_date("time"))
        .withColumn("month", f.month("time"))
        .withColumn("band", f.when(delay.isNotNull(), band))  # least() passes nulls over
    )


def _figures() -> list[Column]:
    """Return the columns of a group's figures, as ``Figures`` has them."""
    from pyspark.sql import functions as f

    delay = f.col("delay")
    return [
        f.count(f.lit(1)).alias("flights"),
        f.count(delay).alias("departed"),
        f.count_if(delay < LATE_MIN).alias("on_time"),
        f.count_if(delay >= VERY_LATE_MIN).alias("very_late"),
        f.avg(delay).alias("mean"),
        f.percentile(delay, QUANTILE).alias("p95"),
    ]


def _group(row: Any) -> Group:  # noqa: ANN401 - a row of Spark
    return Group(row.carrier, row.hour, row.day, row.month, row.band)


def _figures_in(row: Any) -> Figures:  # noqa: ANN401
    return Figures(row.flights, row.departed, row.on_time, row.very_late, row.mean, row.p95)


def _departure(event: Mapping[str, Any]) -> Departure:
    time = datetime.fromtimestamp(event["sched"] / 1_000, ZoneInfo(ORIGIN_ZONE))
    return Departure(event["carrier"], event["hour"], time.date(), event["delay"])
