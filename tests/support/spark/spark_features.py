"""
What Quire does on Spark, as a program: for other releases of PySpark, and other ways to start it.

``python spark_features.py DIRECTORY WAY``; prints a line of JSON for each feature, with what it
found or the error. The way is ``session``, ``submit`` or ``connect``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import quire
import quire.archive
import quire.spark
from quire.spark.sessions import java
from spark_queues import DAY_MS, DAYS, START_MS, record

COLUMNS = "n long, half double, name string"


class Features:
    """A session, and a queue of three days."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        self.queue = record(folder / "queue")

    def scan(self) -> object:
        frame = quire.spark.scan(self.spark, self.queue, schema=COLUMNS)
        return frame.selectExpr("max(half)", "sum(n)").head()

    def places(self) -> object:
        return quire.spark.scan(self.spark, self.queue, columns="_index").distinct().count()

    def source(self) -> object:
        reader = self.spark.read.format("quire").schema(f"_index long, time timestamp, {COLUMNS}")
        found = reader.option("startingTimestamp", "2013-01-02").load(str(self.queue))
        return [found.count(), found.where("n >= 100 and name like 'n1%'").count()]

    def view(self) -> object:
        self.spark.sql(
            "create or replace temp view trades using quire"
            f" options (path '{self.queue}', inferSchema 'true')"
        )
        return self.spark.sql("select max(n), min(name) from trades").head()

    def write(self) -> object:
        rows = self.spark.range(100).selectExpr("id as n", "cast(id as string) as name")
        rows.write.format("quire").mode("append").save(str(self.folder / "written"))
        with quire.open(self.folder / "written", read_only=True) as queue:
            return queue.entry_count

    def archive(self) -> object:
        schema = quire.Schema({"n": "int64", "name": "utf8"})
        quire.archive.archive(self.queue, self.folder / "archive", schema=schema)
        return quire.spark.table(self.spark, self.folder / "archive").agg({"n": "sum"}).head()

    def stream(self) -> object:
        """From the start, on from the checkpoint, and when there is nothing more."""
        queue = record(self.folder / "live")
        found = [self._read_on(queue)]
        record(queue)
        return [*found, self._read_on(queue), self._read_on(queue)]

    def pruned(self) -> object:
        """Messages that were read are deleted, and the stream goes on; then ones that were not."""
        queue = self.folder / "live"
        later = quire.ManualClock(START_MS + DAYS * DAY_MS)
        quire.prune(queue, max_cycles=1, clock=later)
        self._append(queue, later, 10)
        found = [self._read_on(queue)]
        later.advance(DAY_MS)
        self._append(queue, later, 10)
        later.advance(DAY_MS)
        self._append(queue, later, 10)
        quire.prune(queue, max_cycles=1, clock=later)
        return [*found, _error(lambda: self._read_on(queue))]

    def lag(self) -> object:
        query = self._query(self.queue, self.folder / "lagging")
        query.awaitTermination()
        return quire.spark.lag_of(query.lastProgress)

    def limit(self) -> object:
        query = self._query(self.queue, self.folder / "limited", maxOffsetsPerTrigger="60")
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress]

    def sink(self) -> object:
        rows = self.spark.readStream.format("quire").schema(COLUMNS).load(str(self.queue))
        writer = rows.writeStream.format("quire").option("path", str(self.folder / "copied"))
        writer = writer.option("checkpointLocation", str(self.folder / "copying"))
        writer.trigger(availableNow=True).start().awaitTermination()
        with quire.open(self.folder / "copied", read_only=True) as queue:
            return queue.entry_count

    def own_session(self) -> object:
        return quire.spark.session("other", cores=2) is self.spark

    def _read_on(self, queue: Path) -> int:
        place = self.folder / "read"
        before = self._rows(place)
        self._query(queue, self.folder / "reading", "parquet", place).awaitTermination()
        return self._rows(place) - before

    def _rows(self, place: Path) -> int:
        return self.spark.read.parquet(str(place)).count() if place.exists() else 0

    def _query(
        self,
        queue: Path,
        checkpoint: Path,
        sink: str = "noop",
        place: Path | None = None,
        **options: str,
    ) -> Any:  # noqa: ANN401 - a query of either kind of session
        reader = self.spark.readStream.format("quire").schema(COLUMNS).options(**options)
        writer = reader.load(str(queue)).writeStream.format(sink)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        return writer.start(None if place is None else str(place))

    def _append(self, path: Path, clock: quire.ManualClock, count: int) -> None:
        with quire.open(path, clock=clock) as queue, queue.appender() as appender:
            for number in range(count):
                appender.write_map({"n": number, "half": 0.5, "name": "later"})


NAMES = [name for name in vars(Features) if not name.startswith("_")]


def _error(work: Callable[[], object]) -> str:
    try:
        return f"no error: {work()}"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
        return f"{type(error).__name__}: {error}"


def session_of(way: str) -> SparkSession:
    """Return a session that was started in this way."""
    if way != "connect":
        return quire.spark.session("features", cores=2, ship=False)
    java.use()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    spark: SparkSession = builder.remote("local[2]").getOrCreate()
    quire.spark.register(spark)
    return spark


def main(folder: str, way: str) -> None:
    """Try everything."""
    features = Features(Path(folder), session_of(way))
    for name in NAMES:
        try:
            found = {"found": getattr(features, name)()}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
            found = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps({"feature": name, **found}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
