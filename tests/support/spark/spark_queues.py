"""Queues that the Spark tests read, and the same read in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame, SparkSession

import quire

if TYPE_CHECKING:
    from quire._native import Value

DAY_MS = 86_400_000
START_MS = 15_706 * DAY_MS
DAYS = 3
PER_DAY = 50


@quire.message(alias="SparkTrade")
@dataclass
class Trade:
    symbol: str
    price: float


class Market(Protocol):
    def trade(self, trade: Trade) -> None: ...
    def halt(self, symbol: str, minutes: int) -> None: ...


def record(path: Path, per_day: int = PER_DAY, **more: Value) -> Path:
    """Record maps over three days: `n`, `half`, `name`, and `time` in epoch milliseconds."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=1 << 20) as queue,
        queue.appender() as appender,
    ):
        for number in range(DAYS * per_day):
            clock.now_ms = START_MS + number // per_day * DAY_MS + number % per_day * 1_000
            values: dict[str, Value] = {
                "n": number,
                "half": number / 2,
                "name": f"n{number}",
                "time": clock.now_ms,
            }
            appender.write_map(values | more)
    return path


def messages_of(path: Path) -> list[tuple[int, dict[Any, Any]]]:
    """Return index and fields of every message, with nothing of what Spark's source uses."""
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [(excerpt.index, excerpt.to_dict()) for excerpt in tailer]


def load(
    spark: SparkSession, path: Path, schema: str | None = None, /, **options: object
) -> DataFrame:
    """Read *path* with these options."""
    reader = spark.read.format("quire")
    if schema is not None:
        reader = reader.schema(schema)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(path))


def indexes(frame: DataFrame) -> list[int]:
    """Return the sorted indexes of a frame's rows."""
    return sorted(row._index for row in frame.select("_index").collect())
