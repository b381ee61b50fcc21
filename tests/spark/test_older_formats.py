import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructType

import quire
import quire.spark
from older_queues import (
    FORMATS,
    PAGE_BYTES,
    fill,
    found,
    free_entries,
    leave_unfinished,
    wires,
)
from queues import DAY_MS, START_MS
from quire.archive import archive
from quire.spark.read import topic_tracker
from quire.spark.read.batch_reader import BatchReader
from quire.spark.read.topic_tracker import TopicTracker
from quire.spark.source_options import ReadOptions

PER_DAY = 100
DAYS = 3


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path, kind: str) -> Path:
    """A queue of maps over three days, or over two index pages."""
    messages = wires(range(DAYS * PER_DAY), tmp_path / "wires")
    days = [messages[day * PER_DAY : (day + 1) * PER_DAY] for day in range(DAYS)]
    return fill(tmp_path / "old" / "queue", kind, days)


def read(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    reader = spark.read.format("quire")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(path))


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.orderBy("_index").collect()]


def test_rows_are_the_messages_that_a_tailer_reads(spark: SparkSession, path: Path) -> None:
    messages = found(path)

    for frame in (
        read(spark, path, recordsPerPartition=70, batchRows=30),
        quire.spark.scan(spark, path.parent),  # as the one topic below
    ):
        columns = frame.select("_topic", "_index", "payload")
        assert rows(columns) == [("queue", *message) for message in messages]
    assert len(messages) == DAYS * PER_DAY


def test_an_index_is_a_cycle_and_a_sequence(spark: SparkSession, path: Path, kind: str) -> None:
    per_cycle = PER_DAY if kind == "vanilla" else 256
    first = START_MS // DAY_MS if kind == "vanilla" else 0

    places = rows(quire.spark.scan(spark, path, columns="_cycle, _sequence, _index"))

    assert [place[:2] for place in places] == [
        (first + n // per_cycle, n % per_cycle) for n in range(DAYS * PER_DAY)
    ]
    assert [place[2] for place in places] == [index for index, _ in found(path)]


def test_messages_that_are_wire_become_columns(spark: SparkSession, path: Path) -> None:
    frame = quire.spark.scan(
        spark, path, columns="_index, n int, _timestamp", timestampField="at", schema="n int"
    )

    assert [row[1] for row in rows(frame)] == [*range(DAYS * PER_DAY)]
    (last,) = frame.agg({"_timestamp": "max"}).collect()
    assert last[0].microsecond == 299_000
    assert read(spark, path, inferSchema=True).schema["n"].dataType.typeName() == "long"


def test_messages_that_are_no_wire_are_errors_or_rows(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    path = fill(tmp_path / "queue", kind, [[*wires([7], tmp_path / "wires"), b"\x82raw"]])
    (_, index) = [index for index, _ in found(path)]

    with pytest.raises(PythonException, match=f"index={index:#x} topic=queue"):
        read(spark, path, schema="n int").collect()
    kept = rows(read(spark, path, columns="_index, n int, _error string", onError="column"))
    assert kept[0][1:] == (7, None)
    assert kept[1][1] is None
    assert kept[1][2]


def test_offsets_narrow_a_read(spark: SparkSession, path: Path) -> None:
    indexes = [index for index, _ in found(path)]

    some = read(spark, path, startingOffsets=indexes[70], endingOffsets=indexes[270])
    assert [row[0] for row in rows(some.select("_index"))] == indexes[70:270]
    by_time = read(spark, path, startingTimestamp=START_MS + 250, timestampField="at")
    assert [row[0] for row in rows(by_time.select("_index"))] == indexes[250:]


def test_times_without_a_field_are_starts_of_cycles(
    spark: SparkSession, path: Path, kind: str
) -> None:
    day = START_MS // DAY_MS * DAY_MS + DAY_MS

    if kind == "vanilla":
        assert read(spark, path, startingTimestamp=day).count() == 2 * PER_DAY
    else:
        with pytest.raises(AnalysisException, match="a Quick-Queue has no cycles, so no time"):
            read(spark, path, startingTimestamp=day).count()


def test_the_option_queue_format_is_what_a_queue_must_have(
    spark: SparkSession, path: Path, kind: str
) -> None:
    assert read(spark, path, queueFormat=kind).count() == DAYS * PER_DAY
    with pytest.raises(AnalysisException, match=f"asked=chronicle found={kind}"):
        read(spark, path, queueFormat="chronicle").count()
    with pytest.raises(AnalysisException, match="queueFormat must be one of chronicle, vanilla"):
        read(spark, path, queueFormat="kafka").count()


def read_directly(path: Path, **options: object) -> list[bytes]:
    """Plan and read as Spark does, without it."""
    given = {"path": str(path)} | {name: str(value) for name, value in options.items()}
    reader = BatchReader(ReadOptions.of(given), StructType().add("payload", BinaryType()))
    batches = [batch for share in reader.partitions() for batch in reader.read(share)]
    return [row["payload"] for batch in batches for row in batch.to_pylist()]


def test_free_index_entries_are_passed_over(tmp_path: Path) -> None:
    path = fill(tmp_path / "queue", "vanilla", [[b"%d" % n for n in range(20)], [b"end"]])
    free_entries(path, 5, 9)
    expected = [b"%d" % n for n in range(20) if not 5 <= n < 9] + [b"end"]

    for tasks in (1, 3, 7, 21):  # more than one begins among the free entries
        assert read_directly(path, minPartitions=tasks, batchRows=2) == expected


def test_entries_of_dead_producers_are_passed_over(tmp_path: Path) -> None:
    path, expected = tmp_path / "queue", [b"%d" % n for n in range(9)]
    with quire.quick_queue.open(path, page_bytes=PAGE_BYTES) as queue:
        queue.appender("AA0").write_many(expected)
    leave_unfinished(path, 3, 5, proven=False)
    del expected[5], expected[3]

    assert [payload for _, payload in found(path)] == expected
    for tasks in (1, 4, 9):
        assert read_directly(path, minPartitions=tasks, batchRows=2) == expected


def test_messages_that_are_gone_are_an_error(tmp_path: Path) -> None:
    path = fill(tmp_path / "queue", "vanilla", [[b"one", b"two"], [b"three"]])
    options = ReadOptions.of({"path": str(path)})
    reader = BatchReader(options, StructType().add("payload", BinaryType()))
    shares = reader.partitions()
    shutil.rmtree(min(file for file in path.iterdir() if file.is_dir()))

    with pytest.raises(quire.errors.IndexOutOfRangeError, match="planned=3 read=1"):
        [batch for share in shares for batch in reader.read(share)]


def test_a_stream_leaves_a_new_cycle_alone_while_slow_writers_may_append_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fill(tmp_path / "queue", "vanilla", [[b"one"], [b"next day"]])
    begun_s = (START_MS // DAY_MS + 1) * DAY_MS / 1_000
    tracker = TopicTracker("queue", str(path), ReadOptions.of({"path": str(path)}))

    monkeypatch.setattr(topic_tracker, "now_ms", lambda: (begun_s + 9) * 1_000)
    offset = tracker.end()
    assert (offset, tracker.ahead(0).count) == (found(path)[0][0] + 1, 1)
    fill(path, "vanilla", [[b"of a slow writer"]])
    monkeypatch.setattr(topic_tracker, "now_ms", lambda: (begun_s + 10) * 1_000)
    assert tracker.ahead(offset).count == 2
    tracker.close()


def test_a_stream_goes_on_where_its_checkpoint_says(
    spark: SparkSession, path: Path, tmp_path: Path, kind: str
) -> None:
    batches: list[list[int]] = []

    def keep(batch: DataFrame, _number: int) -> None:
        batches.append(sorted(row._index for row in batch.select("_index").collect()))

    def run(**options: object) -> None:
        reader = spark.readStream.format("quire")
        for name, value in options.items():
            reader = reader.option(name, str(value))
        query = (
            reader.load(str(path.parent))
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(600)

    run(maxOffsetsPerTrigger=120)
    indexes = [index for index, _ in found(path)]
    assert [len(batch) for batch in batches] == [120, 120, 60]

    fill(path, kind, [[b"one more"], [b"and one"]], first_day=DAYS)
    run()
    assert [index for batch in batches for index in batch] == [index for index, _ in found(path)]
    assert batches[-1] == [index for index, _ in found(path)[len(indexes) :]]


def test_a_table_is_the_archive_and_the_rest(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    report = archive(path, tmp_path / "archive", schema=quire.Schema({"n": "int64"}), grace_s=0)
    assert 0 < report.messages < DAYS * PER_DAY

    table = quire.spark.table(spark, tmp_path / "archive")

    assert rows(table.select("_index", "n", "payload")) == [
        (index, n, payload) for n, (index, payload) in enumerate(found(path))
    ]


def test_a_sink_says_why_it_cannot_write_there(spark: SparkSession, path: Path) -> None:
    frame = spark.createDataFrame([(1,)], "n int")

    with pytest.raises(AnalysisException, match="only to a Chronicle Queue"):
        frame.write.format("quire").mode("append").save(str(path))
