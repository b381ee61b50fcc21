"""What is measured, and what it is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SIZES = (40, 96, 1024)
PARTS = (
    "append",
    "tail",
    "latency",
    "contention",
    "buffering",
    "growth",
    "scaling",
    "messages",
    "older",
    "tools",
    "life",
    "idle",
    "replication",
    "sealed",
    "serve",
    "claims",
    "spark",
    "peers",
)
LATENCY_SIZE = 96
LATENCY_RATES = (100_000, 167_000)
CONTENTION_SIZE = 96
WRITERS = (1, 2, 4, 8)
BUFFERING_SIZES = (1024, 4096)
BUFFERING_WRITERS = (1, 2)
DUMP_SIZE = 96
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
    *_quire("write_bytes@one_thread", "write_many@one_thread"),
    *_java("writingDocument", "writeBytes"),
)
TAIL = (*_quire("payloads", "read_many", "read_batch"), *_java("tailing"))
LATENCY = (*_quire("latency", "spin"), *_java("latency"), Operation("ring", "latency"))
"""Polled with `read_bytes`, awaited with `spin`, polled by Java, and the machine's own limit."""
CONTENTION = (*_quire("write_bytes"), *_java("writingDocument", "writeBytes"))
BUFFERING = (
    *_quire("document", "double_buffer"),
    *_java("writingDocument", "doubleBuffer"),
)
"""A document per message, with double buffering off and on."""
GROWTH = {
    "messages": ((1_000_000, 10_000_000), ("append", "poll", "seek", "open")),
    "cycles": ((10, 10_000), ("open",)),
}
"""What a queue grows in, from how much to how much, and what must not cost more for it."""


def aged(kind: str) -> tuple[Operation, ...]:
    """Return the operations on the smaller and the larger queue of a kind."""
    amounts, names = GROWTH[kind]
    at = [f"{name}@{amount}" for name in names for amount in amounts]
    return (*_quire(*at), *_java(*at))


SCALING = {
    "messages": _quire("write_many", "read_batch", "seek", "open"),
    "cycles": _quire("cycles", "open", "first"),
    "tailers": _quire("tailer"),
    "members": _quire("member"),
    "writers": _quire("write_bytes"),
    "sizes": _quire("write_sized", "read_sized"),
}
"""What grows, and what is measured at each amount of it."""


def _codecs(what: str) -> tuple[Operation, ...]:
    names = ("msgspec", "msgspec_struct", "orjson", "pickle")
    return tuple(Operation("codecs", f"{name}.{what}") for name in names)


MESSAGES = {
    "write": (
        *_quire("method_write", "write_message"),
        *_java("method-write"),
        *_codecs("encode"),
    ),
    "read": (
        *_quire("method_read", "read_message", "columns"),
        *_java("method-read"),
        *_codecs("decode"),
    ),
    "dump": (*_quire("dump"), *_java("dump")),
}
"""One object of five fields a message; and the whole queue as text."""


def _older(system: str, *names: str) -> tuple[Operation, ...]:
    return tuple(Operation(system, name) for name in names)


OLDER_SIZES = (40, 96)
OLDER = {
    "vanilla-append": (
        *_older("vanilla", "write_bytes", "write_many"),
        *_older("vanilla_java", "append-one"),
    ),
    "vanilla-read": (
        *_older("vanilla", "payloads", "read_many", "read_batch"),
        *_older("vanilla_java", "tail"),
        *_older("limits", "call"),
    ),
    "vanilla-aged": _older("vanilla", "idle@1", "idle@10000", "open@10", "open@10000"),
    "quick-queue-append": (
        *_older("quick_queue", "write_bytes", "write_many", "write_bytes@named"),
        *_older("quick_queue", "write_many@named", "pack"),
        *_older("quick_queue_java", "append"),
        *_older("quick_queue_c", "append"),
    ),
    "quick-queue-read": (
        *_older("quick_queue", "payloads", "read_many", "read_batch", "unpack"),
        *_older("quick_queue_java", "read"),
        *_older("quick_queue_c", "read"),
    ),
    "quick-queue-aged": _older("quick_queue", "open@2", "open@1000"),
    "quick-queue-producers": _older(
        "quick_queue", "write_bytes@1", "write_bytes@2", "write_many@1", "write_many@2"
    ),
}
"""What is measured of the two older formats, and beside whom."""
MEMORY_GROWTH = 10
"""So many times more messages has the queue that memory must not grow with."""
_QUERIES = ("count", "sum", "group", "scan")


def _spark(*names: str) -> tuple[Operation, ...]:
    return tuple(Operation("spark", name) for name in names)


TOOLS = {
    "read": (
        *_quire("read", "read@jsonl", "read@csv", "read@text"),
        *_java("ChronicleReaderMain"),
    ),
    "dump": _quire("dump"),
    "where": _quire("where"),
    "verify": _quire("verify"),
    "stat": _quire("stat"),
    "metrics": _quire("metrics"),
    "start": _quire("version"),
}
"""Commands, by what they do, with their format; `where`, `verify` and `metrics` once started."""

LIFE_SIZE = 96
LIFE_RATE = LATENCY_RATES[0]
LIFE = {
    "groups": _quire("group@batches", "group@acks", "group@data", "group@keyed", "group@messages"),
    "warm": (*_quire("paced", "paced@pretoucher"), *_java("paced", "paced@micro_touch")),
    "ring": _quire("direct", "locked", "locked@ring", "stopped@ring"),
    "seek": _quire("seek@field", "seek@cycle"),
    "roll": _quire("roll", "roll@early"),
    "idle": _quire("idle@1", "idle@1000"),
    "logging": tuple(
        Operation("log_handlers", name) for name in ("none", "quire", "file", "queue")
    ),
    "recording": tuple(Operation("recorders", name) for name in ("udp", "tcp", "websocket")),
}
"""What users of a queue do beside appending and reading, by kind."""

IDLE_SIZE = 96
IDLE_RATE = 150
IDLE = {
    "cpu": _quire(
        *(
            f"{readers}{way}"
            for readers in ("idle_threads@50", "idle_tasks@200", "idle_tasks@1000")
            for way in ("", "@poll")
        )
    ),
    "wake": _quire(
        *("wake_spin", "wake_follow", "wake_afollow", "wake_follow@ring"),
        *("wake_follow@poll", "wake_afollow@poll"),
    ),
}
"""Readers that wait, asleep and, beside that, by a pauser that polls as tailers did before."""

CLAIM_SIZE = 40
CLAIM_MINUTES = (7, 10, 20, 50, 60, 80, 100, 200)
"""Million messages a minute."""
CLAIM_SIZES = (40, 96, 256, 1024, 4096)
CLAIM_SIZES_RATE = LATENCY_RATES[0]
PACED_SIZES = (1024, 4096)
PACED_RATE = 10_000
SERVICES_RATE = 10_000
BROKER_RATES = (2000, 20_000)
CLAIMS = {
    "rates": (*_quire("latency", "batches"), *_java("latency"), Operation("ring", "latency")),
    "sizes": (*_quire("latency"), *_java("latency"), Operation("ring", "latency")),
    "writers": BUFFERING,
    "services": _quire("services@thread", "services@asleep"),
    "broker": (*_quire("latency"), Operation("kafka", "latency")),
}
"""What Chronicle Queue's documentation says of rates and latencies, beside Java, a ring, Kafka."""

SEALED = {
    "encrypt": (
        *(Operation("sealed", name) for name in ("append@plain", "append@encrypted")),
        Operation("seal_crate", "seal"),
    ),
    "compress": tuple(
        Operation("sealed", f"{what}@{name}")
        for what, names in (
            ("flights", ("plain", "zstd", "zstd_dictionary", "lz4", "snappy", "gzip", "lzw")),
            ("flights", ("delta", "default_zero")),
            ("library", ("zstd", "lz4", "snappy", "gzip")),
        )
        for name in names
    ),
    "cycles": tuple(Operation("sealed", f"cycles@{name}") for name in ("plain", "compressed")),
    "seal": tuple(Operation("sealed", name) for name in ("seal", "verify")),
}
"""Encrypted and compressed messages, and the proof that they are as they were."""

SERVED_SIZE = 40
SERVED_RATE = 2000


def _served(*names: str, beside: tuple[str, ...] = ()) -> tuple[Operation, ...]:
    own = [Operation("served", name) for name in names]
    return (*own, *(Operation("served_redis", name) for name in beside))


SERVED = {
    "xadd": _served("xadd", beside=("xadd",)),
    "append": _served("write_many", beside=("pipeline",)),
    "tail": _served("read_many", "read_batch", beside=("xread",)),
    "call": _served(
        *("call@write_bytes", "call@redis_py", "call@socket"),
        beside=("call@redis_py", "call@socket"),
    ),
    "flight": _served("flight", "loopback"),
    "seen": tuple(
        Operation(system, "latency")
        for system in ("served", "served_resp", "served_redis", "served_nats", "tcp_echo")
    ),
    "idle": _served("tailers@1000", "streams@1000", "page@100", beside=("streams@1000",)),
}
"""What clients do by a server, beside Redis with an AOF that is synchronised each second."""

SPARK = {
    "decode": _quire("decode_columns", "decode_payloads"),
    "query": (
        *_quire(*_QUERIES, "sum@one", *(f"scanned_{name}" for name in _QUERIES), "places"),
        *_spark(*(f"map_in_arrow_{name}" for name in _QUERIES)),
    ),
    "archive": (
        *_quire(*(f"table_{name}" for name in _QUERIES)),
        *_spark(*(f"parquet_{name}" for name in _QUERIES)),
    ),
    "compressed": _quire("ranges", "compressed_ranges"),
    "write": (*_quire("write"), *_spark("write_parquet")),
    "stream": _quire("available_now"),
    "trigger": (*_quire("trigger"), *_spark("rate")),
    "memory": _quire("worker_memory@small", "worker_memory@large"),
}
"""Eight columns of self-describing messages, on Spark with two cores."""
PEERS_APPEND = (
    *_quire("write_bytes"),
    *_java("writingDocument"),
    Operation("lmdb", "append"),
    Operation("sqlite", "append"),
    Operation("redis_streams", "append"),
    Operation("limits", "fresh_pages"),
    Operation("limits", "touched_pages"),
    Operation("limits", "call"),
)
"""One call appends one message, which another process may read from then on."""
PEERS_STREAM = (
    *_quire("stream"),
    Operation("mp_queue", "stream"),
    Operation("mp_pipe", "stream"),
    Operation("zeromq", "stream"),
    Operation("iceoryx", "stream"),
    Operation("kafka", "stream"),
)
"""One call sends one message to another process, until that one had all."""
PEER_SCALE = {
    "quire.write_bytes": (10, 10),
    "chronicle.writingDocument": (10, 50),
    "lmdb.append": (5, 5),
    "limits.fresh_pages": (40, 5),
    "limits.touched_pages": (40, 5),
    "limits.call": (40, 5),
    "quire.stream": (10, 10),
    "zeromq.stream": (5, 5),
    "kafka.stream": (10, 20),
}
"""So many times more messages, measured and to warm up, than the slowest systems get."""


class Amount(NamedTuple):
    """How many messages are measured, and how many before them to warm up."""

    measured: int
    warm_up: int


@dataclass(frozen=True, slots=True)
class Life:
    """How much is measured of the part `life`."""

    groups: Amount
    """The number of messages that a member of a group acknowledges."""
    held: Amount
    """Paced appends while the drainer is stopped or the lock held, and before."""
    sought: tuple[int, int]
    """Messages and cycles of the queue in which a time is sought."""
    rolls: int
    polls: Amount
    """Polls of all idle tailers together."""
    records: Amount
    recorded: Amount
    """Messages that arrive over the network."""


@dataclass(frozen=True, slots=True)
class Idle:
    """How much is measured of the part `idle`."""

    quiet_ms: Amount
    """Milliseconds measured without an append, and waited before that until readers poll slowly."""
    wakes: Amount


@dataclass(frozen=True, slots=True)
class Replication:
    """How much is measured of the part `replication`."""

    pairs: int
    """Rounds that count; fewer than elsewhere, since each starts several servers."""
    seconds: float
    """How long messages are sent at each rate, after two thirds of that to warm up."""
    caught_up: Amount
    cost: Amount
    waits: Amount
    flights: Amount


@dataclass(frozen=True, slots=True)
class Scaling:
    """How much is measured of the part `scaling`: the amounts, ascending."""

    pairs: int
    """Rounds that count, since there are many scenarios."""
    messages: tuple[int, ...]
    cycles: tuple[int, ...]
    processes: tuple[int, ...]
    """How many tailers, members of a group and writers there are at once."""
    sizes: tuple[int, ...]
    read: int
    """The number of messages in the queue that tailers and members read."""
    written: int
    """How many messages there is room for, of all writers together."""
    bytes: int
    """The total length of the messages of each size, roughly."""


@dataclass(frozen=True, slots=True)
class Claims:
    """How much is measured of the part `claims`."""

    pairs: int
    """Rounds that count, since there are many scenarios."""
    seconds: float
    """How long messages are sent at each rate, after two thirds of that to warm up."""
    paced_ms: int
    """How long two writers append."""
    passed: Amount
    """Objects that go through three services."""


@dataclass(frozen=True, slots=True)
class Served:
    """How much is measured of the part `serve`."""

    added: Amount
    """Appended by `XADD` in pipelines."""
    appended: Amount
    """Appended in batches, and read."""
    calls: Amount
    flown: Amount
    """Messages read by Arrow Flight, without a warm-up."""
    seen: Amount
    quiet_ms: Amount
    """Milliseconds without an append, and those waited before until all tailers are asleep."""


@dataclass(frozen=True, slots=True)
class Volume:
    """How much is measured."""

    pairs: int
    retries: int
    """So many disturbed rounds of a scenario may be measured again."""
    patience_s: float
    """So long at most a run waits for others to pause."""
    budget_s: float
    """After so long a scenario begins no other round; two it gets in any case."""
    sizes_on_disk: tuple[int, ...]
    rates_on_disk: tuple[int, ...]
    append: Amount
    append_large: Amount
    tail: Amount
    tail_large: Amount
    latency_s: float
    """How long messages are sent at each rate, after two thirds of that to warm up."""
    contention_ms: int
    """So long contending writers append."""
    contention_warm_up: int
    """So many messages they appended before, together."""
    most_writers: int
    messages: Amount
    dumped: dict[str, tuple[int, Amount]]
    """So many messages a queue has that is dumped, by what they are; and how often it is dumped."""
    tools: int
    """The number of messages in the queue that the command line reads."""
    life: Life
    idle: Idle
    replication: Replication
    sealed: Amount
    """Messages; with those to warm up at most as many as there are flights, 336,776."""
    served: Served
    claims: Claims
    scaling: Scaling
    spark: int
    """The number of messages in the queue that Spark reads."""
    peer: Amount

    def of(self, part: str, size: int) -> Amount:
        """Return how many messages of a size are appended or read."""
        large = size >= SIZES[-1]
        if part == "append":
            return self.append_large if large else self.append
        return self.tail_large if large else self.tail

    def at_rate(self, rate: int, seconds: float | None = None) -> Amount:
        """Return how many messages are sent at a rate, in the time of the part `latency` or so."""
        thousands = max(1, round(rate * (seconds or self.latency_s) / 1000))
        return Amount(thousands * 1000, thousands * 2 // 3 * 1000)


FULL = Volume(
    pairs=10,
    retries=7,
    patience_s=5,
    budget_s=900,
    sizes_on_disk=SIZES,
    rates_on_disk=LATENCY_RATES,
    append=Amount(10_000_000, 1_000_000),
    append_large=Amount(600_000, 400_000),
    tail=Amount(10_000_000, 1_000_000),
    tail_large=Amount(800_000, 400_000),
    latency_s=5,
    contention_ms=1000,
    contention_warm_up=200_000,
    most_writers=max(WRITERS),
    messages=Amount(1_000_000, 500_000),
    dumped={"texts": (1_000_000, Amount(1, 1)), "objects": (30_000, Amount(34, 10))},
    tools=1_000_000,
    life=Life(
        groups=Amount(2_000_000, 200_000),
        held=Amount(50_000, 50_000),
        sought=(10_000_000, 1000),
        rolls=1000,
        polls=Amount(2_000_000, 200_000),
        records=Amount(20_000, 1000),
        recorded=Amount(1_000_000, 100_000),
    ),
    idle=Idle(quiet_ms=Amount(5000, 6000), wakes=Amount(1000, 150)),
    replication=Replication(
        pairs=3,
        seconds=2,
        caught_up=Amount(10_000_000, 0),
        cost=Amount(300_000, 50_000),
        waits=Amount(10_000, 1000),
        flights=Amount(500_000, 50_000),
    ),
    sealed=Amount(200_000, 50_000),
    served=Served(
        added=Amount(1_000_000, 200_000),
        appended=Amount(3_000_000, 500_000),
        calls=Amount(20_000, 2000),
        flown=Amount(1_000_000, 0),
        seen=Amount(10_000, 2000),
        quiet_ms=Amount(5000, 3000),
    ),
    claims=Claims(pairs=5, seconds=2, paced_ms=3000, passed=Amount(20_000, 5000)),
    scaling=Scaling(
        pairs=3,
        messages=(1_000_000, 10_000_000, 100_000_000),
        cycles=(10, 100, 1000, 10_000, 100_000),
        processes=(1, 2, 4, 8, 16, 32, 64),
        sizes=(8, 64, 512, 4096, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20),
        read=4_000_000,
        written=40_000_000,
        bytes=512 << 20,
    ),
    spark=10_000_000,
    peer=Amount(50_000, 10_000),
)
QUICK = Volume(
    pairs=5,
    retries=0,
    patience_s=0,
    budget_s=6,
    sizes_on_disk=(96,),
    rates_on_disk=(100_000,),
    append=Amount(800_000, 500_000),
    append_large=Amount(200_000, 200_000),
    tail=Amount(1_500_000, 500_000),
    tail_large=Amount(300_000, 200_000),
    latency_s=1.2,
    contention_ms=300,
    contention_warm_up=60_000,
    most_writers=4,
    messages=Amount(200_000, 200_000),
    dumped={"texts": (50_000, Amount(1, 4)), "objects": (30_000, Amount(2, 6))},
    tools=100_000,
    life=Life(
        groups=Amount(300_000, 100_000),
        held=Amount(50_000, 50_000),
        sought=(100_000, 100),
        rolls=100,
        polls=Amount(200_000, 100_000),
        records=Amount(5000, 500),
        recorded=Amount(200_000, 20_000),
    ),
    idle=Idle(quiet_ms=Amount(1000, 5000), wakes=Amount(300, 50)),
    replication=Replication(
        pairs=2,
        seconds=0.5,
        caught_up=Amount(2_000_000, 0),
        cost=Amount(50_000, 10_000),
        waits=Amount(1000, 200),
        flights=Amount(100_000, 20_000),
    ),
    sealed=Amount(50_000, 10_000),
    served=Served(
        added=Amount(200_000, 50_000),
        appended=Amount(500_000, 100_000),
        calls=Amount(2000, 200),
        flown=Amount(200_000, 0),
        seen=Amount(1500, 500),
        quiet_ms=Amount(2000, 1500),
    ),
    claims=Claims(pairs=1, seconds=0.3, paced_ms=500, passed=Amount(3000, 1000)),
    scaling=Scaling(
        pairs=1,
        messages=(100_000, 1_000_000),
        cycles=(10, 1000),
        processes=(1, 2, 4),
        sizes=(8, 512, 32 << 10, 2 << 20, 64 << 20),
        read=500_000,
        written=10_000_000,
        bytes=64 << 20,
    ),
    spark=1_000_000,
    peer=Amount(10_000, 2_000),
)
