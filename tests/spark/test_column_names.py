"""Names of columns: message columns are there once, and other doubles are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import quire
import quire.spark
from quire.arrow.schema import Schema
from quire.errors import OptionsError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with quire.open(tmp_path / "orders") as queue, queue.appender() as appender:
        appender.write_map({"n": 1, "N": 2, "_topic": "own"})
    return tmp_path / "orders"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("_index long, n long", {"_topic": "orders", "_error": None, "n": 1}),
        ("`_topic` string, n long", {"_topic": "orders", "_error": None, "n": 1}),
        ("_error string, n long", {"_topic": "orders", "_error": None, "n": 1}),
        ("N long, _cycle int", {"_topic": "orders", "_error": None, "N": 2}),
        (
            Schema({"n": "int64", "_topic": "utf8"}).to_text(),
            {"_topic": "orders", "_error": None, "n": 1},
        ),
    ],
)
def test_message_columns_of_a_schema_are_there_once(
    spark: SparkSession, path: Path, schema: str, expected: dict[str, object]
) -> None:
    frame = quire.spark.scan(spark, path, schema=schema, onError="column")

    assert len(frame.columns) == len({*frame.columns})
    (row,) = frame.collect()
    found = row.asDict()
    assert found.pop("_index") >= 0
    found.pop("_cycle", None)
    assert found == expected


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"schema": "n long, n long"}, "a column occurs 2 times: column=n"),
        ({"schema": "n long, N long"}, "columns differ only by case: n, N"),
        ({"schema": "_INDEX long"}, "message column: column=_INDEX, write _index"),
        ({"columns": "n long, _index, _index"}, "a column occurs 2 times: column=_index"),
        (
            {"schema": Schema({"n": "int64", "_topic": "int64"}).to_text()},
            "column _topic is string, not bigint",
        ),
        (
            {"schema": Schema({"n": "int64", "N": "int64"}).to_text()},
            "columns differ only by case: n, N",
        ),
    ],
)
def test_other_doubles_are_refused_by_name(
    spark: SparkSession, path: Path, options: dict[str, str], why: str
) -> None:
    with pytest.raises(OptionsError, match=why):
        quire.spark.scan(spark, path, **options)
    with pytest.raises(AnalysisException, match=why):
        spark.read.format("quire").options(**options).load(str(path)).collect()


def test_a_schema_given_to_spark_has_no_doubles(spark: SparkSession, path: Path) -> None:
    with pytest.raises(AnalysisException, match="a column occurs 2 times: column=n"):
        spark.read.format("quire").schema("n long, n long").load(str(path)).collect()


def test_inferred_fields_leave_message_columns_alone(spark: SparkSession, path: Path) -> None:
    (row,) = quire.spark.scan(spark, path, inferSchema=True).select("_topic", "_index").collect()

    assert row["_topic"] == "orders"
