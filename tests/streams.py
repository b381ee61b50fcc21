"""What the tests of streams share: queues to stream from, and queries that keep their batches."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import quire
from queues import DAY_MS, START_MS

SCHEMA = "_topic string, _index long, n long"


@dataclass
class Source:
    """A directory of queues; each message is a map of its number in its topic."""

    path: Path
    clock: quire.ManualClock = field(default_factory=lambda: quire.ManualClock(START_MS))
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def record(self, topic: str, count: int) -> None:
        with (
            quire.open(
                self.path / topic,
                roll_cycle="TEST4_DAILY",
                clock=self.clock,
                block_bytes=2**16,
            ) as queue,
            queue.appender() as appender,
        ):
            for _ in range(count):
                number = self.counts.get(topic, 0)
                appender.write_map({"n": number, "at": self.clock.now_ms + 1_000 * number})
                self.counts[topic] = number + 1

    def roll(self) -> None:
        self.clock.advance(DAY_MS)

    def prune(self, topic: str, cycles: int = 1) -> None:
        """Delete the files of the first cycles; -1: of all but the last."""
        for file in sorted((self.path / topic).glob("*.cq4"))[:cycles]:
            file.unlink()

    def delete(self, topic: str) -> None:
        shutil.rmtree(self.path / topic)

    def indexes(self, topic: str) -> list[int]:
        with quire.open(self.path / topic, read_only=True) as queue:
            return [excerpt.index for excerpt in queue.tailer()]

    def numbers(self, *left_out: tuple[str, int]) -> list[tuple[str, int]]:
        """Return topic and number of every message that was recorded, but for some."""
        every = {(topic, n) for topic, count in self.counts.items() for n in range(count)}
        return sorted(every - {*left_out})


@dataclass
class Sink:
    """Runs queries on one checkpoint, and keeps the rows of their batches."""

    spark: SparkSession
    path: Path
    source: Source
    columns: str | None = SCHEMA
    batches: list[list[Any]] = field(default_factory=list[list[Any]])
    partitions: list[int] = field(default_factory=list[int])

    def run(self, *, also: Callable[[], object] = int, **options: object) -> StreamingQuery:
        """Read what is there; *also* is called in each batch."""
        query = self._start({"availableNow": True}, also, options)
        assert query.awaitTermination(50)
        return query

    def follow(self, *, also: Callable[[], object] = int, **options: object) -> StreamingQuery:
        """Start a query that goes on until it is stopped."""
        return self._start({"processingTime": "0 seconds"}, also, options)

    def _start(
        self, trigger: dict[str, Any], also: Callable[[], object], options: dict[str, object]
    ) -> StreamingQuery:
        def keep(batch: DataFrame, _number: int) -> None:
            self.partitions.append(batch.rdd.getNumPartitions())
            self.batches.append(batch.collect())
            also()

        frame = stream(self.spark, self.source.path, self.columns, **options)
        writer = frame.writeStream.foreachBatch(keep)
        return writer.option("checkpointLocation", str(self.path)).trigger(**trigger).start()

    @property
    def rows(self) -> list[Any]:
        return [row for batch in self.batches for row in batch]

    def numbers(self) -> list[tuple[str, int]]:
        return pairs(self.rows)


def stream(
    spark: SparkSession, path: Path, columns: str | None = SCHEMA, /, **options: object
) -> DataFrame:
    """Return a stream of the columns that Spark is told, or of the default ones."""
    reader = spark.readStream.format("quire")
    if columns is not None:
        reader = reader.schema(columns)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(path))


def pairs(rows: Iterable[Any]) -> list[tuple[str, int]]:
    """Return topic and number of each row, in order; what comes twice is there twice."""
    return sorted((row["_topic"], row["n"]) for row in rows)
