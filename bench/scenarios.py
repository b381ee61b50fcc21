"""What is measured, and what it is held against."""

from __future__ import annotations

from dataclasses import dataclass

from bench.task import DISTINCT

SIZES = (40, 96, 1024)
PARTS = ("append", "tail", "latency", "peers")
LATENCY_SIZE = 96
LATENCY_RATE = 100_000
PEER_SIZE = 96


@dataclass(frozen=True, slots=True)
class Operation:
    """One way to do it, in one system."""

    system: str
    name: str

    @property
    def key(self) -> str:
        """The name under which its results are kept."""
        return f"{self.system}.{self.name}"


def _quire(*names: str) -> tuple[Operation, ...]:
    return tuple(Operation("quire", name) for name in names)


def _java(*names: str) -> tuple[Operation, ...]:
    return tuple(Operation("chronicle", name) for name in names)


APPEND = (
    *_quire("write_bytes", "write_many", "write_batch"),
    *_java("writingDocument", "writeBytes"),
)
TAIL = (*_quire("payloads", "read_many", "read_batch"), *_java("tailing"))
LATENCY = ("quire", "chronicle")

PEERS_APPEND = (
    *_quire("write_bytes"),
    *_java("writingDocument"),
    Operation("lmdb", "append"),
    Operation("sqlite", "append"),
    Operation("redis_streams", "append"),
)
"""One call appends one message, which another process may read from then on."""
PEERS_STREAM = (
    *_quire("stream"),
    Operation("mp_queue", "stream"),
    Operation("mp_pipe", "stream"),
    Operation("zeromq", "stream"),
    Operation("iceoryx", "stream"),
)
"""One call sends one message to another process, until that one had all."""
PEER_SCALE = {
    "quire.write_bytes": (10, 10),
    "chronicle.writingDocument": (10, 50),
    "lmdb.append": (5, 5),
    "quire.stream": (10, 10),
    "zeromq.stream": (5, 5),
}
"""So many times more messages, measured and to warm up, than the slowest systems get."""


@dataclass(frozen=True, slots=True)
class Target:
    """The least ratio of two rates, ours to Java's, at one message size."""

    when: str
    ours: str
    java: str
    size: int
    least: float


def _targets(when: str, ours: str, java: str, least: dict[int, float]) -> list[Target]:
    return [
        Target(when, f"quire.{ours}", f"chronicle.{java}", size, ratio)
        for size, ratio in least.items()
    ]


TARGETS = [
    *_targets("now", "write_bytes", "writingDocument", {40: 1.0, 96: 1.0, 1024: 1.0}),
    *_targets("later", "write_bytes", "writingDocument", {40: 1.3, 96: 1.3}),
    *_targets("later", "write_bytes", "writeBytes", {40: 1.0, 96: 1.0}),
    *_targets("later", "write_many", "writingDocument", {40: 2.5, 1024: 1.0}),
    *_targets("later", "write_batch", "writingDocument", {40: 3.0, 1024: 1.0}),
    *_targets("later", "payloads", "tailing", {40: 0.7, 96: 0.7}),
    *_targets("later", "read_many", "tailing", {40: 1.0, 96: 1.0}),
    *_targets("later", "read_batch", "tailing", {40: 1.5, 96: 1.5}),
]


@dataclass(frozen=True, slots=True)
class Volume:
    """How much is measured. Counts are messages."""

    pairs: int
    retries: int
    """So many disturbed rounds of a scenario may be measured again."""
    count: int
    warm_up: int
    large_count: int
    large_warm_up: int
    latency_count: int
    latency_warm_up: int
    peer_count: int
    peer_warm_up: int

    def of(self, size: int) -> tuple[int, int]:
        """Return the measured and the warm-up messages for a size."""
        large = size >= SIZES[-1]
        return (self.large_count, self.large_warm_up) if large else (self.count, self.warm_up)


def _volume(pairs: int, retries: int, *thousands: int) -> Volume:
    return Volume(pairs, retries, *(number * DISTINCT for number in thousands))


FULL = _volume(7, 7, 1000, 500, 400, 300, 500, 300, 50, 10)
QUICK = _volume(3, 0, 400, 300, 150, 150, 200, 150, 20, 5)
