"""What the measurements of the part `life` are held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench.harness import Result
from bench.summary import Spread, kept, taking


class Most(NamedTuple):
    """The most that may be found in the runs of an operation, less what is found in another's."""

    key: str
    what: str
    take: Callable[[Result], float]
    limit: float
    unit: str = ""
    less: str = ""


LEAST_RATES = [
    ("quire.group@batches", "groups: read_many(1000), ack_many", 2e6),
    ("quire.group@data", "groups: with each message's data", 1e6),
    ("quire.group@keyed", "groups: the same, with 1,000 keys", 0.3e6),
    ("recorders.udp", "record: UDP", 10e6 / 60),
    ("recorders.tcp", "record: TCP", 10e6 / 60),
    ("recorders.websocket", "record: WebSocket", 10e6 / 60),
]
"""Key, what it is, messages a second."""
RATIOS = [
    ("log_handlers.quire", "log_handlers.file", "logging: Quire's handler : FileHandler", 1.0),
    ("log_handlers.quire", "log_handlers.queue", "logging: Quire's handler : QueueHandler", 1.0),
]
"""The least ratio of two rates."""
MOST = [
    Most(
        "quire.stopped@ring",
        "window max through the ring, drainer stopped",
        taking("windows", "max"),
        50,
        " us",
    ),
    Most("quire.seek@field", "move_to_time, a message", taking("nanos", unit=1e6), 20, " ms"),
    Most("quire.seek@cycle", "move_to_time, a cycle", taking("nanos", unit=1e6), 20, " ms"),
    Most("quire.idle@1000", "1,000 idle tailers, directory read", taking("listed"), 0, " times"),
    Most(
        "log_handlers.quire",
        "logging: what Quire's handler adds to a call",
        taking("nanos", unit=1e3),
        5,
        " us",
        less="log_handlers.none",
    ),
]


WARM, COLD = "quire.paced@pretoucher", "quire.paced"
MOST_OF_COLD = 0.5
SHARES = {
    "window max with the pretoucher : without": taking("windows", "max"),
    "page faults with the pretoucher : without": taking("faults"),
}
"""What the pretoucher must at least halve."""


def share(scenario: Result, take: Callable[[Result], float]) -> Spread:
    """Return the ratio of warm to cold appends, taken within each round."""
    runs = [one["runs"] for one in kept(scenario)]
    pairs = [(take(run[WARM]), take(run[COLD])) for run in runs]
    return Spread.of([warm / cold if cold else float(warm > 0) for warm, cold in pairs])


def spread(scenario: Result, most: Most) -> Spread:
    """Return what is held against a limit, taken within each round."""
    runs = [one["runs"] for one in kept(scenario)]
    return Spread.of(
        [most.take(run[most.key]) - (most.take(run[most.less]) if most.less else 0) for run in runs]
    )
