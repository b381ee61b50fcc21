"""A frame's rows do not depend on what else was asked of it, whatever Spark pushes down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import quire
import quire.spark
from quire.archive import archive
from spark_queues import DAYS, PER_DAY, indexes, load, messages_of, record

SETTING = "spark.sql.python.filterPushdown.enabled"
EACH = DAYS * PER_DAY
COLUMNS = "_topic,_cycle,_index,n long"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three topics of three days."""
    folder = tmp_path_factory.mktemp("queues")
    for topic in "abc":
        record(folder / topic)
    return folder


@pytest.fixture(params=["session", "true"])
def pushed(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """A session as it comes, and one whose user has Spark push filters down."""
    if request.param != "session":
        spark.conf.set(SETTING, request.param)
    yield spark
    spark.conf.unset(SETTING)


def test_a_filter_of_one_action_does_not_stay_with_the_frame(
    pushed: SparkSession, folder: Path
) -> None:
    frame = load(pushed, folder, columns=COLUMNS)

    assert frame.where("_topic = 'a'").count() == EACH
    assert frame.count() == 3 * EACH
    assert frame.where("_topic = 'nope'").count() == 0
    assert frame.where("_topic in ('b', 'c')").count() == 2 * EACH


def test_unions_and_joins_of_a_frame_with_itself_have_the_rows_of_each_side(
    pushed: SparkSession, folder: Path
) -> None:
    frame = load(pushed, folder, columns=COLUMNS)
    a, b = frame.where("_topic = 'a'"), frame.where("_topic = 'b'")

    topics = {row[0]: row[1] for row in a.union(b).groupBy("_topic").count().collect()}
    assert topics == {"a": EACH, "b": EACH}
    joined = a.alias("a").join(b.alias("b"), f.col("a.n") == f.col("b.n"))
    assert joined.count() == EACH
    halves = [frame.where("n < 20"), frame.where("n >= 20")]
    assert halves[0].union(halves[1]).count() == 3 * EACH


def test_a_view_has_all_rows_after_a_query_that_found_none(
    pushed: SparkSession, folder: Path
) -> None:
    load(pushed, folder, columns=COLUMNS).createOrReplaceTempView("messages")
    counts = [
        pushed.sql(statement).head()
        for statement in (
            "select count(*) from messages where _topic = 'nope'",
            "select count(*) from messages",
            "select count(*) from messages where _cycle < 0",
            "select count(*) from messages",
        )
    ]
    assert counts == [(0,), (3 * EACH,), (0,), (3 * EACH,)]

    pushed.sql(f"create or replace temp view used using quire options (path '{folder}')")
    assert pushed.sql("select count(*) from used where _index < 0").head() == (0,)
    assert pushed.sql("select count(*) from used").head() == (3 * EACH,)


def test_halves_of_a_table_are_the_table(pushed: SparkSession, tmp_path: Path) -> None:
    path, dest = record(tmp_path / "queue"), tmp_path / "archive"
    archive(path, dest)
    expected = [index for index, _ in messages_of(path)]
    for middle in (expected[PER_DAY - 20], expected[-20]):
        table = quire.spark.table(pushed, dest)
        low, high = table.where(f"_index < {middle}"), table.where(f"_index >= {middle}")
        assert indexes(low.union(high)) == expected


def test_topics_and_offsets_say_what_is_read(spark: SparkSession, folder: Path) -> None:
    found = [index for index, _ in messages_of(folder / "a")]
    frame = load(
        spark,
        folder,
        columns="_topic,_index,n long",
        topics="c, a",
        startingOffsets=found[60],
        endingOffsets=found[70],
        recordsPerPartition=5,
    )

    assert indexes(frame) == sorted(found[60:70] * 2)
    assert {row._topic for row in frame.collect()} == {"a", "c"}
    assert load(spark, folder, columns=COLUMNS, topics='["b"]').count() == EACH
    with pytest.raises(Exception, match=r"no such topic in topics: topic=d known=a, b, c"):
        load(spark, folder, topics="a,d").count()
    with pytest.raises(Exception, match="topics is empty: topics= ,"):
        load(spark, folder, topics=" ,").count()


def test_a_frame_shows_what_its_first_action_found(spark: SparkSession, path: Path) -> None:
    """Spark plans a source in Python once for each ``load``."""
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_text("1")
        frame = load(spark, path)
        appender.write_text("2")
        assert frame.count() == 2
        appender.write_text("3")
        assert (frame.count(), frame.where("_sequence >= 0").count()) == (2, 2)
        assert load(spark, path).count() == 3
