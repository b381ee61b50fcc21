"""What the tests of streams share: queues to stream from, and queries that keep their batches."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import LongType, StringType, StructType

import quire
from queues import DAY_MS, START_MS
from quire.spark.read.checkpoints import Offsets
from quire.spark.read.stream import StreamReader
from quire.spark.source_options import ReadOptions

SCHEMA = "_topic string, _index long, n long"
FIELDS = StructType().add("_topic", StringType()).add("_index", LongType()).add("n", LongType())


@dataclass
class Source:
    """A directory of queues; each message is a map of its number in its topic."""

    path: Path
    clock: quire.ManualClock = field(default_factory=lambda: quire.ManualClock(START_MS))
    counts: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of_two_topics(cls, path: Path) -> Source:
        """Record two topics over two days: 10 + 4 and 5 + 0 messages."""
        source = cls(path)
        source.record("orders", 10)
        source.record("eu/trades", 5)
        source.roll()
        source.record("orders", 4)
        return source

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
        assert query.awaitTermination(600)
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
        if name != "path":
            reader = reader.option(name, str(value))
    return reader.load(str(options.get("path", path)))


def pairs(rows: Iterable[Any]) -> list[tuple[str, int]]:
    """Return topic and number of each row, in order; what comes twice is there twice."""
    return sorted((row["_topic"], row["n"]) for row in rows)


class Driver:
    """Does what Spark's micro-batches do: a log of offsets, then a batch, then a commit."""

    def __init__(self, source: Source, **options: str) -> None:
        self.source = source
        self.options = options
        self.offsets: Offsets | None = None
        self.rows: list[Any] = []
        self.restart()

    def restart(self) -> None:
        self.reader = StreamReader(
            ReadOptions.of({"path": str(self.source.path), **self.options}),
            FIELDS,
        )

    def plan(self, limit: int | None = None) -> Offsets:
        if self.offsets is None:
            self.offsets = journaled(self.reader.initialOffset())
        most = ReadAllAvailable() if limit is None else ReadMaxRows(limit)
        return journaled(self.reader.latestOffset(self.offsets, most))

    def batch(self, limit: int | None = None, *, crash: bool = False) -> int:
        """Read a batch, and return how many rows it had; with *crash*, twice."""
        end = self.plan(limit)
        assert self.offsets is not None
        found = self.read(self.offsets, end)
        if crash:
            self.restart()
            found = self.read(self.offsets, end)
        if end != self.offsets:
            assert found or self.options.get("failOnDataLoss") == "false"
        self.offsets = end
        self.rows += found
        return len(found)

    def read(self, start: Offsets, end: Offsets) -> list[Any]:
        shares = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        batches = [batch for share in shares for batch in self.reader.read(share)]
        return [row for batch in batches for row in batch.to_pylist()]

    def numbers(self) -> list[tuple[str, int]]:
        return pairs(self.rows)


def journaled(offsets: Offsets) -> Offsets:
    """As they come back from a checkpoint; in their one canonical form."""
    assert list(offsets) == sorted(offsets)
    found: Offsets = json.loads(json.dumps(offsets))
    return found
