"""What is measured of the part `replication`."""

from __future__ import annotations

from bench.scenarios import Operation

REPLICATION_SIZE = 40
REPLICATION_RATES = (10_000, 100_000, 167_000)
REPLICATION = {
    "latency": tuple(
        Operation(system, "latency")
        for system in (
            "replicated",
            "replicated_java",
            "replicated_redis",
            "replicated_nats",
            "tcp_echo",
        )
    ),
    "catch-up": (Operation("replicated", "catch_up"),),
    "cost": (Operation("replicated", "cost@alone"), Operation("replicated", "cost@replicated")),
    "waits": (Operation("replicated", "wait@each"), Operation("replicated", "wait@all")),
    "flights": (Operation("replicated", "flight"), Operation("replicated", "flight@busy")),
}
"""From one process to another through a replica, and what replication takes of the appender."""

ACCEPTABLE = {7: ("30", 0.993), 20: ("20", 0.999), 50: ("1000", 0.999), 80: ("60", 0.993)}
"""By million messages a minute: the limit in microseconds, and for which share of them it holds."""
REPLICATION["acceptable"] = tuple(
    Operation(system, "latency") for system in ("replicated", "replicated_java", "tcp_echo")
)
