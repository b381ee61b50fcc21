from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

import quire


class Say(Protocol):
    def say(self, text: str) -> None: ...


class Echo:
    def __init__(self, out: Say) -> None:
        self.out = out

    def say(self, text: str) -> None:
        self.out.say(text)


def test_the_history_of_each_message_is_a_column(spark: SparkSession, tmp_path: Path) -> None:
    with (
        quire.open(tmp_path / "a", source_id=7) as first,
        quire.open(tmp_path / "b", source_id=8) as second,
    ):
        writer = first.appender().method_writer(Say)
        for text in ("x", "y"):
            writer.say(text)
        with quire.service(inputs=[first], output=second, handler=Echo) as service:
            while service.run_once():
                pass
        second.appender().write_map({"without": 1})
        tailer = second.tailer()
        expected = [tailer.history for _ in tailer]

    source = spark.read.format("quire").option("columns", "_index, _history, payload")
    rows = source.load(str(tmp_path / "b")).orderBy("_index").collect()

    found = [
        None
        if row._history is None
        else quire.MessageHistory(
            tuple((it["id"], it["index"]) for it in row._history.sources),
            tuple(row._history.timings),
        )
        for row in rows
    ]
    assert found == expected
    assert [it is None for it in found] == [False, False, True]
    assert found[0] is not None
    assert found[0].sources[0][0] == 7


def test_the_history_stands_beside_fields_and_their_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    with quire.open(tmp_path / "a") as queue, queue.appender() as appender:
        appender.write_map({"at": 1_700_000_000_123, "n": 5})

    history = "_history struct<sources:array<struct<id:int,index:bigint>>,timings:array<bigint>>"
    source = spark.read.format("quire").option("timestampField", "at")
    (row,) = (
        source.schema(f"n int, _timestamp timestamp, {history}").load(str(queue.path)).collect()
    )

    assert (row.n, row._history) == (5, None)
    assert row._timestamp.microsecond == 123_000
