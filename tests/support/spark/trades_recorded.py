"""
Trades with faults put in on purpose, and what a pipeline has to make of them.

The faults are known because they were put in, not because anything looked for them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import quire

START_MS = 1_705_314_600_000  # 2024-01-15T10:30:00Z
STEP_MS = 20_000
DELAY_MS = 600_000
HOUR_MS = 3_600_000
SYMBOLS = ("EURUSD", "USDJPY", "GBPUSD")

PIPELINE = """\
pipeline: trades
schedule: available-now
sources:
  trades:
    format: quire
    path: queue
    schema: >-
      _topic string, _index long, _error string,
      id long, at_ms long, symbol string, price double
    malformed: quarantine
    options: {maxOffsetsPerTrigger: 300}
  names: {format: csv, path: names.csv, options: {header: true}}
steps:
  clean:
    sql: select *, timestamp_millis(at_ms) as at from {trades}
    expect:
      price is positive: price > 0
      known symbol: {check: symbol <> 'NONE', action: drop}
      below one: {check: price < 1, action: warn}
    watermark: {column: at, delay: 10 minutes}
    deduplicate: {by: id}
    window: {length: 1 hour}
  hourly:
    sql: >-
      select date_trunc('hour', at) as hour, name, count(*) as trades, sum(price) as total
      from {clean} join {names} using (symbol) group by all
sinks:
  - {from: clean, format: parquet, path: out/clean, partition_by: symbol}
  - {from: hourly, format: parquet, path: out/hourly}
  - {from: clean, format: quire, path: out/queue, options: {rollCycle: TEST_SECONDLY}}
quarantine: {path: out/quarantine}
"""

QUEUE_SINK = next(line for line in PIPELINE.splitlines(keepends=True) if "out/queue" in line)
"""A full run replaces what its sinks hold, which a queue cannot."""


@dataclass
class Recorded:
    """What was recorded: whole trades that came in time, and how many faults of each kind."""

    good: list[tuple[int, int, str, float]] = field(
        default_factory=list[tuple[int, int, str, float]]
    )
    faults: Counter[str] = field(default_factory=Counter[str])
    late: set[int] = field(default_factory=set[int])
    again: list[int] = field(default_factory=list[int])

    @property
    def latest_ms(self) -> int:
        return max(at_ms for _, at_ms, _, _ in self.good)

    def complete(self) -> list[tuple[int, int, str, float]]:
        """The trades in hours that are over, ten minutes ago."""
        return [it for it in self.good if end_ms(it[1]) <= self.latest_ms - DELAY_MS]

    def hourly(self) -> dict[tuple[int, str], tuple[int, float]]:
        """Count and sum by the hour's beginning and the symbol's name."""
        found: dict[tuple[int, str], tuple[int, float]] = {}
        for _, at_ms, symbol, price in self.complete():
            key = (end_ms(at_ms) - HOUR_MS, f"the {symbol}")
            count, total = found.get(key, (0, 0.0))
            found[key] = (count + 1, total + price)
        return found


def end_ms(at_ms: int) -> int:
    return (at_ms // HOUR_MS + 1) * HOUR_MS


def record(folder: Path, count: int = 1000, seed: int = 7) -> Recorded:
    """Record trades into `queue`, and write the pipeline and its lookup beside it."""
    (folder / "pipeline.yaml").write_text(PIPELINE, "utf-8")
    names = "".join(f"{symbol},the {symbol}\n" for symbol in SYMBOLS)
    (folder / "names.csv").write_text(f"symbol,name\n{names}", "utf-8")
    recorded = Recorded()
    more(folder, recorded, count, seed)
    return recorded


def more(folder: Path, recorded: Recorded, count: int, seed: int = 8) -> None:
    """Record trades behind those that are there."""
    chance = random.Random(seed)  # noqa: S311 - must repeat
    first = len(recorded.good)
    with quire.open(folder / "queue", roll_cycle="TEST_SECONDLY") as queue, queue.appender() as to:
        for number in range(first, first + count):
            at_ms = START_MS + number * STEP_MS + chance.randrange(-DELAY_MS // 2, 1)
            price = chance.randrange(1, 200) / 100
            trade = (number, at_ms, chance.choice(SYMBOLS), price)
            to.write_map(dict(zip(("id", "at_ms", "symbol", "price"), trade, strict=True)))
            recorded.good.append(trade)
            recorded.faults["below one"] += price >= 1
            if chance.random() < 0.1:
                _put_in(to, recorded, chance, number)


def _put_in(
    to: quire.JournalAppender, recorded: Recorded, chance: random.Random, number: int
) -> None:
    """Record one fault more."""
    at_ms = START_MS + number * STEP_MS
    whole: dict[str, str | int | float] = {"id": 10**6 + number, "at_ms": at_ms, "symbol": "EURUSD"}
    fault = chance.choice(["malformed", "late", "duplicate", "price is positive", "known symbol"])
    if fault == "malformed":
        to.write_map({**whole, "price": "a lot"})
    elif fault == "late":
        latest = max(it[1] for it in recorded.good)
        to.write_map(
            {**whole, "at_ms": latest - DELAY_MS - chance.randrange(1, 10**7), "price": 0.5}
        )
        recorded.late.add(10**6 + number)
    elif fault == "duplicate":
        recent = [
            it for it in recorded.good if it[1] >= max(i[1] for i in recorded.good) - DELAY_MS
        ]
        again = chance.choice(recent)
        to.write_map({**whole, "id": again[0], "at_ms": again[1], "price": 0.5})
        recorded.again.append(again[0])
    elif fault == "price is positive":
        to.write_map({**whole, "price": -chance.random()})
    else:
        to.write_map({**whole, "symbol": "NONE", "price": 0.5})
    recorded.faults[fault] += 1
