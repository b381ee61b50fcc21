"""What is measured, and what it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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


class Amount(NamedTuple):
    """How many messages are measured, and how many before them to warm up."""

    measured: int
    warm_up: int


@dataclass(frozen=True, slots=True)
class Volume:
    """How much is measured."""

    pairs: int
    retries: int
    """So many disturbed rounds of a scenario may be measured again."""
    patience_s: float
    """So long at most a run waits for others to pause."""
    append: Amount
    append_large: Amount
    tail: Amount
    tail_large: Amount
    latency: Amount
    peer: Amount

    def of(self, part: str, size: int) -> Amount:
        """Return how many messages of a size are appended or read."""
        large = size >= SIZES[-1]
        if part == "append":
            return self.append_large if large else self.append
        return self.tail_large if large else self.tail


FULL = Volume(
    pairs=7,
    retries=7,
    patience_s=5,
    append=Amount(3_000_000, 1_000_000),
    append_large=Amount(600_000, 400_000),
    tail=Amount(6_000_000, 1_000_000),
    tail_large=Amount(800_000, 400_000),
    latency=Amount(500_000, 300_000),
    peer=Amount(50_000, 10_000),
)
QUICK = Volume(
    pairs=3,
    retries=0,
    patience_s=0,
    append=Amount(800_000, 500_000),
    append_large=Amount(200_000, 200_000),
    tail=Amount(1_500_000, 500_000),
    tail_large=Amount(300_000, 200_000),
    latency=Amount(200_000, 150_000),
    peer=Amount(20_000, 5_000),
)
