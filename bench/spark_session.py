"""
The process in which the operations on Spark run: ``python -m bench.spark_session PATHS``.

It is one session for all of them, warm after the first round. Each line of stdin names an
operation, and each line of stdout says how long it took.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import quire
from bench import machine, spark_data
from bench.spark_data import COLUMNS
from bench.task import DISTINCT, START_MS, Stopwatch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_CORES = 2
_PER_TASK = 1_000_000
_BATCH_ROWS = 32_768
_RANGES = 51
"""Tasks that read one cycle."""
_TRIGGER_ROWS = 1_000
_TRIGGERS = 30
_WARM_UP = 10
"""So many triggers come before those that count."""

Found: TypeAlias = dict[str, Any]


class _Watch(Stopwatch):
    """Measures its block, with the CPU time of Spark's processes."""

    def __enter__(self) -> Self:
        self._used_s = machine.tree_s(os.getpid())
        return super().__enter__()

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self.cpu_nanos = round((machine.tree_s(os.getpid()) - self._used_s) * 1e9)

    def found(self, count: int) -> Found:
        """Return the figures of a run over *count* messages."""
        return {"nanos": self.nanos, "cpu_nanos": self.cpu_nanos, "count": count}


class Lab:
    """
    What is measured.

    Args:
        folder: Where the queue, its archive and what is written lie.
        count: How many messages the queue has.

    """

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        self.queue = folder / "queue"
        self.expected = spark_data.expected(count)
        self._spark: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The session; decoding alone needs none."""
        if self._spark is None:
            import quire.spark

            settings = {"spark.sql.session.timeZone": "UTC"}
            self._spark = quire.spark.session("bench", cores=_CORES, memory="2g", settings=settings)
        return self._spark

    def run(self, name: str) -> Found:
        """Run an operation; ``name@one`` reads the one column that it needs."""
        what, _, variant = name.partition("@")
        if what in OPERATIONS:
            return OPERATIONS[what](self)
        way, _, query = what.rpartition("_")
        return self.query(self.frame(way, query if variant == "one" else None), query)

    def frame(self, way: str, only: str | None) -> DataFrame:
        """Return the rows, as this way has them; of the queue those that one query needs."""
        match way:
            case "map_in_arrow":
                return self.map_in_arrow()
            case "parquet":
                return self.spark.read.parquet(str(self.archive())).select(*COLUMNS)
            case "scanned":
                return self.scanned()
            case "table":
                return self.table().select(*COLUMNS)
            case _:
                return self.source(only)

    def query(self, frame: DataFrame, name: str) -> Found:
        """Measure a query, and compare what it gave."""
        with _Watch() as watch:
            found = QUERIES[name](frame)
        if found != self.expected[name]:
            raise AssertionError(f"another result: query={name} found={found}")
        return watch.found(self.count)

    def source(self, only: str | None = None) -> DataFrame:
        """Return all columns of the queue, or the one that a query needs."""
        schema = {"sum": "price double"}[only] if only else spark_data.SCHEMA
        reader = self.spark.read.format("quire").schema(schema)
        return reader.option("recordsPerPartition", str(_PER_TASK)).load(str(self.queue))

    def scanned(self) -> DataFrame:
        """Return all columns of the queue, by `quire.spark.scan`."""
        import quire.spark

        columns = spark_data.SCHEMA
        return quire.spark.scan(
            self.spark, self.queue, columns=columns, recordsPerPartition=_PER_TASK
        )

    def places(self) -> Found:
        """Count the messages by their places, which needs no Python."""
        import quire.spark

        with _Watch() as watch:
            found = quire.spark.scan(self.spark, self.queue, columns="_index").count()
        if found != self.count:
            raise AssertionError(f"another count: found={found}")
        return watch.found(self.count)

    def compressed(self) -> Path:
        """Return a copy of the queue whose cycle is compressed, made when it is first asked for."""
        place = self.folder / "compressed"
        if not place.exists():
            quire.copy_queue(self.queue, place)
            spark_data.compress(place)
        return place

    def ranges(self, queue: Path) -> Found:
        """Read all rows of a queue, each task a small range."""
        reader = self.spark.read.format("quire").schema(spark_data.SCHEMA)
        reader = reader.option("recordsPerPartition", str(-(-self.count // _RANGES)))
        frame = reader.load(str(queue))
        if frame.rdd.getNumPartitions() != _RANGES:
            raise AssertionError(f"other tasks: count={frame.rdd.getNumPartitions()}")
        return self.query(frame, "scan")

    def map_in_arrow(self) -> DataFrame:
        """Return the same rows, decoded by a function instead of a source."""
        tasks = max(_CORES, -(-self.count // _PER_TASK))
        decode = _decoding(str(self.queue), self.count // tasks)
        return self.spark.range(0, tasks, 1, tasks).mapInArrow(decode, spark_data.SCHEMA)

    def table(self) -> DataFrame:
        """Return the archive of the queue, and what the queue holds beyond."""
        import quire.spark

        self.archive()
        return quire.spark.table(self.spark, self.folder / "archive")

    def archive(self) -> Path:
        """Return the directory of the archived queue, made when it is first asked for."""
        import quire.archive

        place = self.folder / "archive"
        if not place.exists():
            report = quire.archive.archive(self.queue, place, schema=quire.Schema(COLUMNS))
            assert report.messages == self.count, report
        return place / "topic=queue"


def _decoding(
    path: str, share: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what decodes the share of the queue that each number stands for."""
    columns = dict(COLUMNS)

    def decode(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = quire.Schema(columns, index=None)
        with quire.open(path, read_only=True, create=False) as queue, queue.tailer() as tailer:
            first = queue.first_index or 0
            for batch in numbers:
                for number in batch.column(0).to_numpy().tolist():
                    tailer.move_to_index(first + number * share)
                    left = share
                    while left:
                        rows = tailer.read_batch(min(left, _BATCH_ROWS), schema=schema)
                        left -= rows.num_rows
                        yield rows

    return decode


def _count(frame: DataFrame) -> object:
    return frame.count()


def _sum(frame: DataFrame) -> object:
    return frame.agg({"price": "sum"}).collect()[0][0]


def _group(frame: DataFrame) -> object:
    return {row[0]: row[1] for row in frame.groupBy("symbol").sum("quantity").collect()}


def _scan(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "count": _count,
    "sum": _sum,
    "group": _group,
    "scan": _scan,
}


def _decode(lab: Lab, schema: quire.Schema | None) -> Found:
    """Decode everything on one core, and count the rows."""
    with quire.open(lab.queue, read_only=True) as queue, queue.tailer() as tailer:
        count = 0
        with Stopwatch() as watch:
            while rows := tailer.read_batch(_BATCH_ROWS, schema=schema).num_rows:
                count += rows
    if count != lab.count:
        raise AssertionError(f"other messages: count={count} expected={lab.count}")
    return {"nanos": watch.nanos, "cpu_nanos": watch.cpu_nanos, "count": count}


def _decode_columns(lab: Lab) -> Found:
    return _decode(lab, quire.Schema(COLUMNS, index=None))


def _decode_payloads(lab: Lab) -> Found:
    return _decode(lab, None)


def _rows_to_write(lab: Lab) -> DataFrame:
    """Return rows that Spark makes by itself, of the values of the messages."""
    frame = lab.spark.range(0, lab.count, 1, _CORES).selectExpr(f"id % {DISTINCT} as id")
    texts = {
        "symbol": f"element_at(array{spark_data.SYMBOLS}, cast(id % 8 as int) + 1)",
        "venue": f"element_at(array{spark_data.VENUES}, cast(id % 3 as int) + 1)",
    }
    return frame.selectExpr(
        f"{texts['symbol']} as symbol",
        "id",
        "100 + cast(id % 400 as double) / 4 as price",
        "cast(id % 500 * 10 as int) as quantity",
        "id % 2 = 0 as buy",
        f"{texts['venue']} as venue",
        f"{START_MS} + id as at",
        "cast(id % 8 as double) / 8 as fee",
    )


def _write(lab: Lab) -> Found:
    return _written(lab, "quire", lambda place: spark_data.verify(place, lab.count))


def _write_parquet(lab: Lab) -> Found:
    def verify(place: Path) -> None:
        found = lab.spark.read.parquet(str(place)).count()
        if found != lab.count:
            raise AssertionError(f"other rows: count={found} expected={lab.count}")

    return _written(lab, "parquet", verify)


def _written(lab: Lab, format_name: str, verify: Callable[[Path], None]) -> Found:
    place = lab.folder / "written"
    shutil.rmtree(place, ignore_errors=True)
    frame = _rows_to_write(lab)
    with _Watch() as watch:
        frame.write.format(format_name).mode("append").save(str(place))
    verify(place)
    shutil.rmtree(place)
    return watch.found(lab.count)


def _available_now(lab: Lab) -> Found:
    """Stream all there is to nowhere."""
    reader = lab.spark.readStream.format("quire").schema(spark_data.SCHEMA)
    reader = reader.option("maxOffsetsPerTrigger", str(2 * _PER_TASK))
    with _Watch() as watch:
        progress = _streamed(lab, reader.load(str(lab.queue)))
    count = sum(int(one["numInputRows"]) for one in progress)
    if count != lab.count:
        raise AssertionError(f"other messages: count={count} expected={lab.count}")
    return watch.found(count)


def _trigger(lab: Lab) -> Found:
    """Read little with each trigger."""
    small = lab.folder / "small"
    if not small.exists():
        spark_data.fill(small, _TRIGGERS * _TRIGGER_ROWS)
    reader = lab.spark.readStream.format("quire").schema(spark_data.SCHEMA)
    reader = reader.option("maxOffsetsPerTrigger", str(_TRIGGER_ROWS))
    return _around(_streamed(lab, reader.load(str(small))))


def _rate(lab: Lab) -> Found:
    """Have Spark's own source make as many rows with each trigger."""
    reader = lab.spark.readStream.format("rate-micro-batch")
    reader = reader.option("rowsPerBatch", str(_TRIGGER_ROWS)).option("numPartitions", "1")
    return _around(_streamed(lab, reader.load(), triggers=_TRIGGERS))


def _streamed(lab: Lab, frame: DataFrame, triggers: int | None = None) -> list[Found]:
    """Run a stream to nowhere: to its end, or for so many triggers; return their progress."""
    checkpoint = lab.folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    if triggers is None:
        query: StreamingQuery = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    else:
        query = writer.trigger(processingTime="0 seconds").start()
        while (last := query.lastProgress) is None or last["batchId"] < triggers - 1:
            time.sleep(0.01)
        query.stop()
    shutil.rmtree(checkpoint)
    return [json.loads(one.json) for one in query.recentProgress if one["numInputRows"]]


def _around(progress: list[Found]) -> Found:
    """Return what a trigger takes in the middle, beside the work on its rows."""
    import statistics

    counted = progress[_WARM_UP:_TRIGGERS]
    rows = {int(one["numInputRows"]) for one in counted}
    if rows != {_TRIGGER_ROWS} or len(counted) < _TRIGGERS - _WARM_UP:
        raise AssertionError(f"other triggers: rows={rows} count={len(counted)}")
    durations = [one["durationMs"] for one in counted]
    whole = statistics.median(one["triggerExecution"] for one in durations)
    around = statistics.median(one["triggerExecution"] - one["addBatch"] for one in durations)
    return {"nanos": around * 1e6, "cpu_nanos": 0, "count": 1, "whole_ms": whole}


def _worker_memory(lab: Lab) -> Found:
    """Read everything, and see how much memory a worker had at most."""
    found = lab.run("scan")
    return found | {"peak_bytes": max(_peaks())}


def _peaks() -> Iterator[int]:
    """Yield the most memory that each Python worker of Spark had."""
    for pid in machine.descendants(os.getpid()):
        process = Path("/proc", str(pid))
        if b"-m\0pyspark." in process.joinpath("cmdline").read_bytes():
            lines = process.joinpath("status").read_text("utf-8").splitlines()
            fields = dict(line.split(":", 1) for line in lines)
            yield int(fields["VmHWM"].split()[0]) << 10


OPERATIONS: dict[str, Callable[[Lab], Found]] = {
    "decode_columns": _decode_columns,
    "decode_payloads": _decode_payloads,
    "places": Lab.places,
    "ranges": lambda lab: lab.ranges(lab.queue),
    "compressed_ranges": lambda lab: lab.ranges(lab.compressed()),
    "write": _write,
    "write_parquet": _write_parquet,
    "available_now": _available_now,
    "trigger": _trigger,
    "rate": _rate,
    "worker_memory": _worker_memory,
}


def main(folder: str, count: str) -> None:
    """Answer each line."""
    lab = Lab(Path(folder), int(count))
    for line in sys.stdin:
        print(json.dumps(lab.run(line.strip())), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
