from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

import quire

DAY_MS = 86_400_000
DAYS = 3
PER_DAY = 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue of maps over three days."""
    clock = quire.ManualClock(15_706 * DAY_MS)
    path = tmp_path / "queue"
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for number in range(DAYS * PER_DAY):
            clock.now_ms = (15_706 + number // PER_DAY) * DAY_MS
            appender.write_map({"n": number, "half": number / 2, "name": f"n{number}"})
    return path


def read(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    reader = spark.read.format("quire")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(path))


@pytest.mark.smoke
def test_rows_are_the_messages_that_a_tailer_reads(spark: SparkSession, path: Path) -> None:
    found = read(spark, path).orderBy("_index").collect()

    with quire.open(path, read_only=True) as queue:
        cycle_of, sequence_of = queue.roll_cycle.to_cycle, queue.roll_cycle.to_sequence
        messages = list(queue.tailer())
    assert [tuple(row) for row in found] == [
        ("queue", each.index, cycle_of(each.index), sequence_of(each.index), each.data)
        for each in messages
    ]
    assert len(found) == DAYS * PER_DAY


def test_fields_of_maps_become_typed_columns(spark: SparkSession, path: Path) -> None:
    fields = spark.read.format("quire").schema("half double, n int, _cycle int, none string")
    rows = fields.load(str(path)).orderBy("n").collect()

    assert [tuple(row) for row in rows[48:52]] == [
        (24.0, 48, 15_706, None),
        (24.5, 49, 15_706, None),
        (25.0, 50, 15_707, None),
        (25.5, 51, 15_707, None),
    ]


def test_the_option_columns_selects(spark: SparkSession, path: Path) -> None:
    found = read(spark, path, columns="_sequence, name string", batchRows=7)

    assert found.columns == ["_sequence", "name"]
    assert found.where("name = 'n149'").head() == (49, "n149")


def test_small_queues_are_read_by_one_task(spark: SparkSession, path: Path) -> None:
    assert read(spark, path).rdd.getNumPartitions() == 1
    assert read(spark, path, recordsPerPartition=40).rdd.getNumPartitions() == 4


def test_ranges_cover_every_message_once(spark: SparkSession, path: Path) -> None:
    found = read(spark, path, recordsPerPartition=7, batchRows=3, columns="n int")

    assert sorted(row.n for row in found.collect()) == list(range(DAYS * PER_DAY))


def test_an_empty_queue_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    quire.open(tmp_path / "empty", roll_cycle="FAST_DAILY").close()

    assert read(spark, tmp_path / "empty").count() == 0


def test_reading_leaves_every_byte_alone(spark: SparkSession, path: Path) -> None:
    before = {file.name: file.read_bytes() for file in path.iterdir()}

    assert read(spark, path).count() == DAYS * PER_DAY
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_all_wrong_options_are_refused_at_planning(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="batchRows=none; unknown option: form"):
        read(spark, tmp_path, batchRows="none", form="x")


def test_a_directory_without_a_queue_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="NotAQueueError"):
        read(spark, tmp_path).count()


def test_a_schema_that_cannot_be_filled_is_refused(spark: SparkSession, path: Path) -> None:
    reader = spark.read.format("quire").schema("_index int, at interval day to second")

    with pytest.raises(AnalysisException, match="column _index is bigint, not int") as caught:
        reader.load(str(path)).count()
    assert "type of column at is not supported: interval day to second" in str(caught.value)


def test_a_field_that_does_not_fit_names_its_column_and_value(
    spark: SparkSession, path: Path
) -> None:
    with pytest.raises(PythonException, match=r"field=name .*topic=queue"):
        read(spark, path, columns="name long").collect()


def test_a_message_that_is_no_map_is_an_error(spark: SparkSession, path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_bytes(b"\x07 no map")

    with pytest.raises(PythonException, match="WireError"):
        read(spark, path, columns="n long").collect()
