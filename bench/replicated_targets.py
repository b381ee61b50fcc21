"""What the part `replication` is held against."""

from __future__ import annotations

OURS = "replicated.latency"
PEERS = ("replicated_java", "replicated_redis", "replicated_nats")
PERCENTILES = ("p50", "p99")
"""In which a message that is replicated has to be there before each peer's."""
WAITING = "replicated.wait@all"
SYNCING = "replicated.wait@each"
"""Appends that wait for a replica, or for the disk: the first are to be faster."""
LEAST_RATES = [
    ("replicated.catch_up", "replicate: one connection", 10e6 / 6),
    ("replicated.flight", "replicate: 64 messages under way", 200e3),
    ("replicated.flight@busy", "replicate: 64 messages under way, busy threads", 200e3),
]
"""Key, what it is, messages a second."""
ALONE, REPLICATED = "replicated.cost@alone", "replicated.cost@replicated"
MOST_COST = 1.05
"""The most CPU time an appender may take, as a multiple of one without replication."""
