"""Tables of Spark's catalogue: what works, and what is refused before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import quire
from spark_queues import DAYS, messages_of, record

TABLES = ("made", "other", "left")


@pytest.fixture
def sql(spark: SparkSession) -> Iterator[SparkSession]:
    """A session without the tables of these tests, before and after."""

    def drop() -> None:
        for name in TABLES:
            spark.sql(f"drop table if exists {name}")
            spark.catalog.dropTempView(name)

    drop()
    yield spark
    drop()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [(*row,) for row in frame.collect()]
    return sorted(found)


def files(path: Path) -> list[str]:
    return sorted(str(it.relative_to(path)) for it in path.rglob("*"))


@pytest.mark.parametrize(
    "declared",
    [
        "options (path '{path}', schema 'n long, name string', columns 'n, name')",
        "options (schema 'n long, name string', COLUMNS 'n, name') location '{path}'",
        """options (schema "n long comment 'it''s', name string", columns 'n, name')
        location '{path}' comment 'trades' tblproperties ('made.by'='me')""",
    ],
)
def test_a_table_without_columns_is_read_from_its_path(
    sql: SparkSession, tmp_path: Path, declared: str
) -> None:
    path = record(tmp_path / "a queue", per_day=2)
    sql.sql(f"create table made using quire {declared.format(path=path)}")

    expected = [(fields["n"], fields["name"]) for _, fields in messages_of(path)]
    assert rows(sql.table("made")) == expected
    assert rows(sql.sql("select name, n + 1 from made where n > 3")) == [("n4", 5), ("n5", 6)]
    record(path, per_day=1)  # rows of a table are those of the moment of its query
    assert sql.table("made").count() == 3 * DAYS
    assert sql.readStream.table("made").isStreaming


def test_a_table_keeps_inferred_columns(sql: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=1)
    sql.sql(f"create table made using quire options (path '{path}', inferSchema 'true')")
    assert sql.table("made").columns == ["_topic", "_index", "n", "half", "name", "time"]
    assert sql.table("made").agg({"n": "sum"}).head() == (3.0,)
    assert '"inferschema": "true"' in str(sql.sql("describe made").head())


def test_dropping_a_table_keeps_the_queue(sql: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=1)
    sql.catalog.createTable("made", str(path), "quire")
    before = files(path)
    sql.sql("drop table made")
    assert files(path) == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("path '{path}/none'", "path is not a directory"),
        ("path '{path}', colums '_index'", "unknown option: colums, did you mean columns?"),
        ("path '{path}', endingOffsets 'earliest'", "endingOffsets must not be earliest"),
        ("path '{path}', failOnDataLoss '1'", "failOnDataLoss must be one of true, false"),
        ("schema 'n long'", "path is missing: use .load"),
    ],
)
def test_a_table_that_could_not_be_read_is_not_made(
    sql: SparkSession, tmp_path: Path, options: str, expected: str
) -> None:
    path = record(tmp_path / "queue", per_day=1)
    with pytest.raises(PySparkException, match=expected.replace("?", r"\?")):
        sql.sql(f"create table made using quire options ({options.format(path=path)})")
    assert not sql.catalog.tableExists("made")


def test_a_table_with_columns_says_how_to_make_it(sql: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=1)
    sql.sql(f"create table made (n long) using quire location '{path}'")
    with pytest.raises(AnalysisException, match="create table NAME using quire options"):
        sql.table("made").collect()
    assert sql.read.option("path", str(path)).table("made").count() == DAYS


def test_inserts_go_where_they_say_and_nowhere_else(sql: SparkSession, tmp_path: Path) -> None:
    one, two = (record(tmp_path / name, per_day=1) for name in ("one", "two"))
    for name, path in (("made", one), ("other", two)):
        sql.sql(
            f"create table {name} using quire options (path '{path}', schema 'n long', columns 'n')"
        )
    before = (files(one), files(two))
    frame = sql.table("made")
    with pytest.raises(AnalysisException, match="or into a temp view: create temp view NAME"):
        sql.sql("insert into other values (7)")
    with pytest.raises(AnalysisException, match="insert into NAME with"):
        sql.sql("insert into other select * from made")
    with pytest.raises(AnalysisException, match="does not pass the path of a table"):
        frame.write.insertInto("other")
    with pytest.raises(AnalysisException, match=r"path is missing: use \.save"):
        frame.writeTo("other").append()
    assert (files(one), files(two)) == before

    sql.sql(f"insert into other with (path '{two}') table made")
    sql.sql(f"create temp view left (n long) using quire options (path '{two}')")
    sql.sql("insert into left values (9)")
    assert [it["n"] for _, it in messages_of(two)] == [0, 1, 2, 0, 1, 2, 9]
    assert len(messages_of(one)) == DAYS


def test_a_table_of_rows_is_refused_before_a_row_is_written(
    sql: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "queue"
    frame = sql.createDataFrame([(1,), (2,)], "n long")
    written = frame.write.format("quire").option("path", str(path))
    for create in (
        lambda: written.mode("append").saveAsTable("made"),
        lambda: written.mode("error").saveAsTable("made"),
        lambda: frame.writeTo("made").using("quire").option("path", str(path)).create(),
        lambda: sql.sql(f"create table made using quire location '{path}' as select 1L as n"),
    ):
        with pytest.raises(
            PySparkException, match=r"create temp view NAME (\(symbol string\) )?using quire"
        ):
            create()
        assert not sql.catalog.tableExists("made")
        assert not path.exists() or files(path) == []

    written.mode("append").save()
    sql.sql(f"create table made using quire options (path '{path}', schema 'n long', columns 'n')")
    assert rows(sql.table("made")) == [(1,), (2,)]


def test_batches_of_a_stream_and_scripts_are_no_new_tables(
    sql: SparkSession, tmp_path: Path
) -> None:
    source, target = record(tmp_path / "source", per_day=1), tmp_path / "target"
    stream = sql.readStream.format("quire").schema("n long").load(str(source))

    def write(batch: DataFrame, _: int) -> None:
        batch.write.format("quire").mode("append").save(str(target))

    query = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).foreachBatch(write).start().awaitTermination()
    with quire.open(target, read_only=True) as queue, queue.tailer() as tailer:
        assert len([*tailer]) == DAYS

    sql.sql(f"create temp view left (n long) using quire options (path '{target}')")
    sql.sql("begin insert into left values (7); insert into left values (8); end").collect()
    assert [it["n"] for _, it in messages_of(target)][DAYS:] == [7, 8]
