"""What the part on Spark is held against."""

from __future__ import annotations

from bench import summary
from bench.harness import Result
from bench.summary import TIME, Spread

BASES = {
    "quire.count": "spark.map_in_arrow_count",
    "quire.sum": "spark.map_in_arrow_sum",
    "quire.group": "spark.map_in_arrow_group",
    "quire.scan": "spark.map_in_arrow_scan",
    "quire.sum@one": "quire.sum",
    "quire.scanned_count": "spark.map_in_arrow_count",
    "quire.scanned_sum": "spark.map_in_arrow_sum",
    "quire.scanned_group": "spark.map_in_arrow_group",
    "quire.scanned_scan": "spark.map_in_arrow_scan",
    "quire.places": "quire.count",
    "quire.table_count": "spark.parquet_count",
    "quire.table_sum": "spark.parquet_sum",
    "quire.table_group": "spark.parquet_group",
    "quire.table_scan": "spark.parquet_scan",
    "quire.compressed_ranges": "quire.ranges",
    "quire.write": "spark.write_parquet",
    "quire.trigger": "spark.rate",
}
"""What each operation stands beside."""
RATES = {
    "quire.decode_columns": 5e6,
    "quire.decode_payloads": 25e6,
    "quire.write": 2e6,
    "quire.available_now": 2e6,
}
"""Messages a second, at least."""
RATIOS = {
    "quire.count": 1.0,
    "quire.sum": 1.0,
    "quire.group": 1.0,
    "quire.scan": 1.0,
    "quire.sum@one": 2.0,
    "quire.scanned_count": 1.0,
    "quire.scanned_sum": 1.0,
    "quire.scanned_group": 1.0,
    "quire.scanned_scan": 1.0,
    "quire.places": 2.0,
    "quire.compressed_ranges": 1 / 1.5,
    "quire.table_count": 1.0,
    "quire.table_sum": 1.0,
    "quire.table_group": 1.0,
    "quire.table_scan": 1.0,
}
"""The ratio to what it stands beside, at least."""
MOST_AROUND = 1.2
"""What a trigger takes around its batch, at most so many times what the rate source's does."""
MOST_MEMORY = 1.25
"""So many times the memory at most, in a queue that is ten times as large."""
SMALL, LARGE = "quire.worker_memory@small", "quire.worker_memory@large"


def ratio(scenario: Result, key: str, clock: str = TIME) -> Spread | None:
    """Return the ratio of an operation's rate to that of what it stands beside, if there is one."""
    base = BASES.get(key)
    if base is None or not {key, base} <= set(summary.operations(scenario)):
        return None
    return summary.ratio(scenario, key, base, clock)


def peak(scenario: Result, key: str) -> Spread:
    """Return the most memory that a worker had."""
    return summary.values(scenario, key, lambda run: float(run["peak_bytes"]))


def growth(scenario: Result) -> Spread:
    """Return how many times the memory a worker takes for the larger queue."""
    runs = [one["runs"] for one in summary.kept(scenario)]
    return Spread.of([run[LARGE]["peak_bytes"] / run[SMALL]["peak_bytes"] for run in runs])


def around(scenario: Result) -> Spread:
    """Return how many times as much a trigger takes around its batch as the rate source's."""
    return summary.ratio(scenario, "spark.rate", "quire.trigger")
