"""The messages of the Spark benchmark: maps of eight fields, and what a query of them must give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import quire
from bench.quire_queues import open_queue
from bench.task import BLOCK_BYTES, DISTINCT, ROLL_CYCLE, START_MS

SIZE = 100
"""The approximate size of a message, in bytes."""
_DAY_MS = 86_400_000
VENUES = ("XNYS", "XNAS", "XLON")
SYMBOLS = ("EURUSD", "GBPUSD", "USDJPY", "AUDUSD", "EURGBP", "USDCHF", "NZDUSD", "EURJPY")

SCHEMA = (
    "symbol string, id bigint, price double, quantity int, buy boolean, venue string, at bigint,"
    " fee double"
)
"""All columns, for Spark."""
COLUMNS = {
    "symbol": "utf8",
    "id": "int64",
    "price": "float64",
    "quantity": "int32",
    "buy": "bool",
    "venue": "utf8",
    "at": "int64",
    "fee": "float64",
}
"""All columns, for the decoder."""


def rows() -> list[dict[str, str | int | float | bool]]:
    """Return what the distinct messages hold."""
    return [
        {
            "symbol": SYMBOLS[number % len(SYMBOLS)],
            "id": number,
            "price": 100 + number % 400 / 4,
            "quantity": number % 500 * 10,
            "buy": number % 2 == 0,
            "venue": VENUES[number % 3],
            "at": START_MS + number,
            "fee": number % 8 / 8,
        }
        for number in range(DISTINCT)
    ]


def payloads() -> list[bytes]:
    """Return the distinct messages."""
    import json

    found = [quire.types.parse_json(json.dumps(row)) for row in rows()]
    assert abs(sum(map(len, found)) / DISTINCT - SIZE) < SIZE * 0.1, sum(map(len, found))
    return found


def fill(path: Path, count: int, *, closed: bool = False) -> None:
    """
    Write so many messages, on one day.

    Args:
        path: The queue.
        count: How many.
        closed: End the day, so that it can be archived.

    """
    pool = payloads()
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle=ROLL_CYCLE, block_bytes=BLOCK_BYTES, clock=clock) as queue,
        queue.appender() as appender,
    ):
        for _ in range(count // DISTINCT):
            appender.write_many(pool)
        if closed:
            # A writer ends a day when it begins another one, which nobody wants here.
            clock.advance(_DAY_MS)
            appender.write_text("tomorrow")
            appender.close()
            Path(queue.file_for_cycle(queue.cycles[-1])).unlink()
            queue.refresh()


def compress(path: Path) -> None:
    """Compress the one day of a queue."""
    later = quire.ManualClock(START_MS + _DAY_MS)
    with quire.open(path, clock=later) as queue:
        with queue.appender() as appender:
            appender.write_text("tomorrow")  # the newest cycle would stay as it is
        newest = Path(queue.file_for_cycle(queue.cycles[-1]))
    quire.prune(path, max_cycles=1, action="compress", clock=later)
    newest.unlink()
    with quire.open(path) as queue:
        queue.refresh()
    files = sorted(it.suffix for it in path.glob("*.cq4*"))
    assert files == [".cq4t", ".zst"], files


def verify(path: Path, count: int) -> None:
    """Look whether a queue that Spark wrote holds each message as often as it must."""
    wanted = {row["id"]: row for row in rows()}
    seen: Counter[int] = Counter()
    schema = quire.Schema(COLUMNS, index=None)
    with open_queue(path, read_only=True) as queue, queue.tailer() as tailer:
        while (batch := tailer.read_batch(schema=schema)).num_rows:
            ids: list[int] = batch["id"].to_numpy().tolist()
            seen.update(ids)
        tailer.to_start()
        first = tailer.read_batch(DISTINCT, schema=schema).to_pylist()
    assert seen == dict.fromkeys(wanted, count // DISTINCT), f"other messages: count={seen.total()}"
    assert all(row == wanted[row["id"]] for row in first), "other values"


def expected(count: int) -> dict[str, object]:
    """Return what the queries must give, by plain Python."""
    times, every = count // DISTINCT, rows()
    groups: Counter[str] = Counter()
    for row in every:
        groups[str(row["symbol"])] += int(row["quantity"]) * times
    return {
        "count": count,
        "sum": sum(float(row["price"]) for row in every) * times,
        "group": dict(groups),
        "scan": None,
    }
