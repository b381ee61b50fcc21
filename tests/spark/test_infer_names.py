"""``inferSchema`` of odd messages and names: each is read, or refused by one clear error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import quire
from quire.errors import OptionsError
from quire.spark import scan
from spark_queues import load

ODD = {"last price": 1.5, "a.b": 2, "a`b": 3, "": 4, "é": 5, "a,b": 6, "(x": 7, "ï:y": 8, "c;": 9}


def queue(path: Path, *messages: bytes | dict[str, Any]) -> Path:
    with quire.open(path) as opened, opened.appender() as appender:
        for message in messages:
            if isinstance(message, bytes):
                appender.write_bytes(message)
            else:
                appender.write_map(message)
    return path


def test_a_raw_message_is_refused_or_left_out(spark: SparkSession, tmp_path: Path) -> None:
    path = queue(tmp_path / "queue", {"a": 1}, b"\x01\x02raw", {"a": 2, "b": "x"})
    with pytest.raises(OptionsError) as caught:
        scan(spark, path, inferSchema=True)
    assert "inferSchema: cannot read the message" in str(caught.value)
    assert "leave out messages that are not mappings: onError=column" in str(caught.value)
    with pytest.raises(AnalysisException, match="messages that are not mappings: onError=column"):
        load(spark, path, inferSchema=True)

    for frame in (
        scan(spark, path, inferSchema=True, onError="column"),
        load(spark, path, inferSchema=True, onError="column"),
    ):
        rows = sorted(frame.collect(), key=lambda row: row._index)
        assert [(row.a, row.b, row._error is None) for row in rows] == [
            (1, None, True),
            (None, None, False),
            (2, "x", True),
        ]


def test_names_that_differ_by_case_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = queue(tmp_path / "queue", {"Price": 1}, {"price": 2}, {"PRICE": "x", "b": 1})
    frame = load(spark, path, inferSchema=True)
    assert frame.columns == ["_topic", "_index", "Price", "price", "PRICE", "b"]
    assert {tuple(row)[2:] for row in frame.collect()} == {
        (1, None, None, None),
        (None, 2, None, None),
        (None, None, "x", 1),
    }
    assert frame.agg({"b": "sum"}).head() == (1,)


@pytest.mark.parametrize("name", ["_index", "_INDEX"])
def test_a_field_named_like_a_message_column_is_refused(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = queue(tmp_path / "queue", {name: 7, "a": 1})
    with pytest.raises(OptionsError, match=f"the name of a message column: field={name} .list the"):
        scan(spark, path, inferSchema=True)
    assert scan(spark, path, schema="a int").select("a").head() == (1,)


def test_odd_names_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    path = queue(tmp_path / "queue", ODD)
    for frame in (load(spark, path, inferSchema=True), scan(spark, path, inferSchema=True)):
        assert frame.columns[2:] == [*ODD]
        assert tuple(frame.head() or ())[2:] == tuple(ODD.values())
    chosen = ["a.b", "last price", "a`b", "a,b", "é"]
    written = ", ".join("`" + name.replace("`", "``") + "`" for name in chosen)
    for columns in (written, "a.b, last price, `a``b`, `a,b`, é"):
        frame = scan(spark, path, inferSchema=True, columns=columns)
        assert frame.columns == chosen
        assert frame.head() == (2, 1.5, 3, 6, 5)
        assert load(spark, path, inferSchema=True, columns=columns).head() == (2, 1.5, 3, 6, 5)
    typed = "`last price` double, `a``b` long"
    assert scan(spark, path, columns=typed).head() == (1.5, 3)
    assert scan(spark, path, schema=typed, columns="`a``b`").head() == (3,)
