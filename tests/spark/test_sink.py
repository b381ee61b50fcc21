"""Frames written into queues, and streams."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import quire
from paths import SUPPORT
from queues import payloads
from quire.maintenance.sink_writes import FOLDER
from quire.staged import commits

ROWS = 200


def write(frame: DataFrame, path: Path, **options: object) -> None:
    writer = frame.write.format("quire").mode("append")
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save(str(path))


def messages(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue:
        return payloads(queue)


def maps(path: Path) -> list[dict[str, Any]]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [dict(it) for it in iter(tailer.read_map, None)]


def expected(write: Callable[[quire.JournalAppender], object], path: Path) -> list[bytes]:
    """What single writers make."""
    with quire.open(path) as queue, queue.appender() as appender:
        write(appender)
        return payloads(queue)


def schema(**types: str) -> str:
    return quire.Schema(types).to_text()


def numbers(spark: SparkSession, rows: int = ROWS, partitions: int = 4) -> DataFrame:
    return spark.range(0, rows, 1, partitions).selectExpr("id as n", "concat('n', id) as name")


def test_rows_are_maps_in_the_order_of_the_partitions(spark: SparkSession, path: Path) -> None:
    write(numbers(spark), path)

    assert maps(path) == [{"n": n, "name": f"n{n}"} for n in range(ROWS)]
    assert [it.name for it in (path / FOLDER).iterdir()] == ["lock"]


def test_every_type_of_sparks_is_written(spark: SparkSession, path: Path) -> None:
    frame = spark.sql("""
        select cast(1 as tinyint) a, cast(2 as smallint) b, 3 c, 4L d, cast(1.5 as float) e, 2.5D f,
          true g, 'text' h, X'0102' i, date'2026-01-02' j, timestamp'2026-01-02 03:04:05.006' k,
          timestamp_ntz'2026-01-02 03:04:05' l, 1.50 m, array(1, null) n, map('x', 1) o,
          named_struct('p', 1, 'q', cast(null as string)) p, cast(null as int) r
    """)

    write(frame, path)

    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC)
    assert maps(path) == [
        {
            "a": 1, "b": 2, "c": 3, "d": 4, "e": 1.5, "f": 2.5, "g": True, "h": "text",
            "i": b"\1\2", "j": moment.date(), "k": moment,
            "l": moment.replace(tzinfo=None, microsecond=0), "m": "1.50", "n": [1, None],
            "o": {"x": 1}, "p": {"p": 1, "q": None}, "r": None,
        }
    ]  # fmt: skip


def test_what_was_read_and_filtered_is_written_as_it_was(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    write(numbers(spark), path)

    frame = spark.read.format("quire").load(str(path)).where("_sequence % 2 = 0")
    write(frame.orderBy("_index").coalesce(1), tmp_path / "copy")

    assert messages(tmp_path / "copy") == messages(path)[::2]


def test_columns_that_were_decoded_are_encoded_again(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    write(numbers(spark), path)

    reader = spark.read.format("quire").schema("_index long, _topic string, n long, name string")
    write(reader.load(str(path)).where("n < 10").coalesce(1), tmp_path / "copy")

    assert messages(tmp_path / "copy") == messages(path)[:10]


def test_forms_are_chosen(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("EURUSD", 1.5)], "symbol string, price double")
    cases: list[tuple[DataFrame, dict[str, object], Callable[[quire.JournalAppender], object]]] = [
        (frame.selectExpr("symbol as value"), {}, lambda it: it.write_text("EURUSD")),
        (frame.select("symbol"), {"form": "text"}, lambda it: it.write_text("EURUSD")),
        (
            frame.selectExpr("cast(symbol as binary) as payload"),
            {},
            lambda it: it.write_bytes(b"EURUSD"),
        ),
        (frame, {}, lambda it: it.write_map({"symbol": "EURUSD", "price": 1.5})),
        (frame, {"form": "fields"}, lambda it: it.write_bytes(FIELDS)),
        (
            frame,
            {"type": "Quote"},
            lambda it: it.write_bytes(b"\xb6\x05Quote\x82\x17\0\0\0" + FIELDS),
        ),
        (
            frame,
            {"method": "quote"},
            lambda it: it.write_bytes(b"\xb9\x05quote\x82\x0a\0\0\0\xe6EURUSD\x92\x96\x01"),
        ),
        (
            frame,
            {"schema": schema(symbol="utf8", price="float32"), "form": "fields"},
            lambda it: it.write_bytes(FIELDS),
        ),
        (
            frame.selectExpr("symbol", "cast(null as double) price"),
            {"omitNulls": True},
            lambda it: it.write_map({"symbol": "EURUSD"}),
        ),
    ]
    for number, (columns, options, oracle) in enumerate(cases):
        write(columns, tmp_path / f"q{number}", **options)

        found = messages(tmp_path / f"q{number}")
        assert found == expected(oracle, tmp_path / f"o{number}"), (options, found)


FIELDS = b"\xc6symbol\xe6EURUSD\xc5price\x92\x96\x01"


def test_a_queue_is_made_as_asked_for(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(numbers(spark, 2, 1), path, rollCycle="FAST_HOURLY", sync=False)
    write(numbers(spark, 2, 1), other, form="fields", wireType="FIELDLESS_BINARY")
    write(numbers(spark, 1, 1), other, form="fields")

    with quire.open(path, read_only=True) as queue:
        assert queue.roll_cycle.name == "FAST_HOURLY"
    assert messages(other) == [b"\xa1\0\xe2n0", b"\xa1\1\xe2n1", b"\xa1\0\xe2n0"]


def test_everything_wrong_is_reported_at_once(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    with quire.open(path, roll_cycle="FAST_DAILY"):
        pass
    (tmp_path / "file").touch()
    (tmp_path / "many" / "one").mkdir(parents=True)
    shutil.copytree(path, tmp_path / "many" / "one" / "queue")
    frame = numbers(spark, 1)
    cases: list[tuple[Path, dict[str, object], list[str]]] = [
        (
            path,
            {
                "form": "yaml",
                "bad": 1,
                "rollCycle": "HOURLY",
                "writeId": "a/b",
                "sync": "maybe",
                "batchId": -1,
            },
            [
                "form must be one of raw, text",
                "unknown option: bad",
                "the queue has another roll cycle",
                "writeId",
                "batchId must be a number, and requires writeId: batchId=-1",
            ],
        ),
        (
            path,
            {"form": "raw"},
            ["form=raw requires one binary column: found=n int64, name string"],
        ),
        (
            path,
            {"schema": schema(n="int32")},
            ["the schema has no such column: column=name known=n"],
        ),
        (path, {"schema": "nowhere:Thing"}, ["schema=nowhere:Thing: No module named"]),
        (
            path,
            {"wireType": "TEXT"},
            ["wire_type=TEXT known=BINARY_LIGHT"],
        ),
        (tmp_path / "file", {}, ["path is not a directory"]),
        (
            tmp_path / "many",
            {},
            ["path is a directory of queues, give the path of one", "many/one/queue"],
        ),
        (tmp_path / "new", {"rollCycle": "NONE"}, ["NONE"]),
    ]
    for place, options, problems in cases:
        with pytest.raises(AnalysisException) as raised:
            write(frame, place, **options)
        message = str(raised.value)
        assert "quire.errors.OptionsError: quire sink: " in message, message
        assert not [it for it in problems if it not in message], message
    assert not (tmp_path / "new").exists()


def test_overwriting_is_refused_with_the_reason(spark: SparkSession, path: Path) -> None:
    with pytest.raises(AnalysisException, match="never replaced, so mode=overwrite"):
        numbers(spark, 1).write.format("quire").mode("overwrite").save(str(path))
    assert not path.exists()


def test_a_value_that_does_not_fit_fails_the_write_and_nothing_is_written(
    spark: SparkSession, path: Path
) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("if(id = 9, 1L << 40, id) as n")

    with pytest.raises(PythonException, match="does not fit: column=n type=int64 expected=int32"):
        write(frame, path, schema=schema(n="int32"))

    assert list(path.rglob("*.arrow")) == []
    assert not path.exists() or not list(path.glob("*.cq4"))


def test_a_repeated_write_with_an_id_appends_nothing_twice(spark: SparkSession, path: Path) -> None:
    for write_id in ["2026-11-21", "2026-11-21", "2026-11-22"]:
        write(numbers(spark, 10), path, writeId=write_id)
    write(numbers(spark, 10), path)
    write(numbers(spark, 10), path)

    assert [it["n"] for it in maps(path)] == [*range(10)] * 4


def test_the_batches_of_a_write_have_one_record(spark: SparkSession, path: Path) -> None:
    there: list[bool] = []
    for batch in [0, 1, 1, 0, 3]:
        there.append(commits.has(str(path), "job", batch))
        write(numbers(spark, 5), path, writeId="job", batchId=batch)

    assert there == [False, False, True, True, False]
    assert [it["n"] for it in maps(path)] == [*range(5)] * 3
    assert [it.name for it in (path / ".quire-sink").iterdir() if it.is_dir()] == ["job"]


def test_another_staging_location_holds_what_tasks_stage(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    staging = tmp_path / "staging"

    write(numbers(spark), path, stagingLocation=staging)

    assert [it["n"] for it in maps(path)] == [*range(ROWS)]
    assert staging.is_dir()
    assert [it for it in staging.rglob("*") if it.is_file()] == []


class Stream:
    """Files of numbers as a stream, into a queue."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root, self.path = spark, root, root / "queue"
        self.count = 0
        (root / "files").mkdir()

    def add(self, rows: int) -> None:
        text = "\n".join(str(self.count + row) for row in range(rows))
        fresh = self.root / "fresh"
        fresh.write_text(text)
        os.utime(fresh, (time.time(), 1_700_000_000 + self.count))  # their order in the stream
        fresh.rename(self.root / "files" / f"{self.count:09}.txt")
        self.count += rows

    def run(self, checkpoint: str = "checkpoint", mode: str = "append") -> None:
        """Write all that is there, a file in a batch."""
        reader = self.spark.readStream.format("text").option("maxFilesPerTrigger", 1)
        frame = reader.load(str(self.root / "files")).selectExpr("cast(value as long) as n")
        if mode != "append":
            frame = frame.groupBy("n").count()
        query = (
            frame.writeStream.format("quire")
            .outputMode(mode)
            .option("checkpointLocation", str(self.root / checkpoint))
            .trigger(availableNow=True)
            .start(str(self.path))
        )
        query.awaitTermination()

    @property
    def found(self) -> list[int]:
        return [it["n"] for it in maps(self.path)]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_a_stream_goes_on_where_it_was(stream: Stream) -> None:
    stream.add(20)
    stream.add(20)
    stream.run()
    stream.add(20)
    stream.run()

    assert stream.found == [*range(60)]
    assert len(list((stream.path / FOLDER).rglob("*"))) == len(["lock", "query", "query/done.json"])


def test_a_batch_that_spark_repeats_is_not_appended_again(stream: Stream) -> None:
    stream.add(20)
    stream.add(20)
    stream.run()
    for name in ("1", ".1.crc"):  # as if the driver died before it noted the commit
        (stream.root / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    stream.add(20)
    stream.run()

    assert stream.found == [*range(60)]


def test_a_deleted_checkpoint_drops_no_data(stream: Stream) -> None:
    stream.add(20)
    stream.run()
    shutil.rmtree(stream.root / "checkpoint")
    stream.add(20)
    stream.run()

    assert stream.found == [*range(20), *range(40)]


@pytest.mark.parametrize("mode", ["complete", "update"])
def test_streams_whose_rows_change_are_refused(stream: Stream, mode: str) -> None:
    stream.add(1)

    with pytest.raises((StreamingQueryException, AnalysisException), match=r"(?i)complete|update"):
        stream.run(mode=mode)

    assert not stream.path.exists()


DRIVER = """
import sys, time
from pathlib import Path
import quire.spark
from test_sink import Stream
root = Path(sys.argv[1])
spark = quire.spark.session("killed", cores=2, memory="600m")
stream = Stream.__new__(Stream)
stream.spark, stream.root, stream.path, stream.count = spark, root, root / "queue", 0
stream.run()
if sys.argv[2] == "stay":
    time.sleep(3600)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_driver_leaves_no_gap_and_no_duplicate(tmp_path: Path) -> None:
    """Killed behind some batches, twice, and run to the end the third time."""
    stream = Stream.__new__(Stream)
    stream.root, stream.path, stream.count = tmp_path, tmp_path / "queue", 0
    (tmp_path / "files").mkdir()
    for _ in range(10):
        stream.add(500)
    for wanted in (1000, 3000, None):
        with driver(tmp_path, "end" if wanted is None else "stay") as process:
            try:
                while wanted is not None and len_of(stream) < wanted and process.poll() is None:
                    time.sleep(0.02)
                if wanted is None:
                    process.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        assert (process.returncode == 0) == (wanted is None)

    assert stream.found == [*range(stream.count)]


def driver(root: Path, then: str) -> subprocess.Popen[bytes]:
    """Start a driver, with its Java and workers in a group of their own; it ends, or stays."""
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(SUPPORT)])}
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(root), then],
        start_new_session=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def len_of(stream: Stream) -> int:
    """How many messages there are: the last index counts them, in one cycle."""
    try:
        with quire.open(stream.path, read_only=True) as queue:
            last = queue.last_index
            return 0 if last is None else queue.roll_cycle.to_sequence(last) + 1
    except quire.QuireError:
        return 0
