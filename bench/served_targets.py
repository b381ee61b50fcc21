"""What the part `serve` is held against."""

from __future__ import annotations

from bench.harness import Result
from bench.life_targets import Most
from bench.summary import Spread, kept, taking

RATIOS = [("served.xadd", "served_redis.xadd", "serve: XADD in pipelines : Redis", 1.0)]
"""The least ratio of two rates."""
LEAST_RATES = [
    ("served.write_many", "serve: write_many", 1e6),
    ("served.read_many", "serve: read_many", 2e6),
    ("served.read_batch", "serve: read_batch", 2e6),
]
"""Key, what it is, messages a second."""
CALLS = [
    (
        "served.call@write_bytes",
        "served_redis.call@redis_py",
        "serve: write_bytes : Redis, redis-py",
    ),
    ("served.call@redis_py", "served_redis.call@redis_py", "serve: XADD by redis-py : Redis"),
    ("served.call@socket", "served_redis.call@socket", "serve: XADD by a bare socket : Redis"),
]
MOST_OF_REDIS = 1.5
"""The most time that a call and its answer may take, as a multiple of Redis's."""
MOST = [
    Most(f"served.{name}", f"serve: CPU at rest, {what}", taking("cpu", unit=0.01), 5, " %")
    for name, what in (
        ("tailers@1000", "1,000 tailers"),
        ("streams@1000", "1,000 in XREAD BLOCK"),
        ("page@100", "the page with 100 queues"),
    )
]
FLIGHT, LOOPBACK = "served.flight", "served.loopback"
LEAST_GB = 1.0
"""By Arrow Flight, in GB/s; or what the loopback itself does, if that is less."""


def share_of_flight(scenario: Result) -> Spread:
    """Return what Flight reaches, in parts of the target, within each round."""
    rate, runs = taking("bytes_per_s", unit=1e9), [one["runs"] for one in kept(scenario)]
    return Spread.of([rate(run[FLIGHT]) / min(LEAST_GB, rate(run[LOOPBACK])) for run in runs])
