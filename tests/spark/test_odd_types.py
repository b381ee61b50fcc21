"""Types of Spark that queues lack: limited texts are texts, variants are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.sql import SparkSession
from pyspark.sql.types import CharType, StructType, VarcharType

import quire
from quire.errors import OptionsError
from quire.spark import scan
from spark_queues import load, messages_of, record


def test_limited_texts_are_read_as_texts(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=1)
    expected = ["n0", "n1", "n2"]
    for frame in (
        load(spark, path, schema="name VARCHAR(1)", columns="name"),
        load(spark, path, columns="name char( 9 )"),
        scan(spark, path, schema="name varchar(1)", columns="name"),
        scan(spark, path, schema=StructType().add("name", VarcharType(1))),
        scan(spark, path, schema=StructType().add("name", CharType(9))),
    ):
        assert sorted(row.name for row in frame.collect()) == expected
        assert frame.schema["name"].dataType.simpleString() == "string"


def test_a_view_with_limited_texts_is_for_inserting(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with quire.open(path):
        spark.catalog.dropTempView("limited")
    spark.sql(f"create temp view limited (name varchar(3)) using quire options (path '{path}')")
    spark.sql("insert into limited values ('abc')")
    with pytest.raises(SparkRuntimeException, match="EXCEED_LIMIT_LENGTH"):
        spark.sql("insert into limited values ('abcd')")
    assert [it for _, it in messages_of(path)] == [{"name": "abc"}]
    with pytest.raises(
        AnalysisException, match=r"accepts no varchar\(3\) .*: column=name, write str"
    ):
        spark.table("limited").collect()
    spark.catalog.dropTempView("limited")


def test_variants_are_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue", per_day=1)
    for schema in ("n variant", "n array<struct<a: variant>>", "n map<string, variant>"):
        with pytest.raises(
            OptionsError, match=r"a column cannot be a variant: column=n, .*parse_json"
        ):
            scan(spark, path, schema=schema)
    assert scan(spark, path, schema="variant long, name string").count() == 3
    frame = spark.sql("select parse_json('1') as v")
    with pytest.raises(
        AnalysisException, match=r"a message cannot hold a variant: column=v, write to_j"
    ):
        frame.write.format("quire").mode("append").save(str(tmp_path / "written"))
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("value", ["array()", "map()", "interval 1 month"])
def test_columns_that_arrow_has_no_type_for_are_named(
    spark: SparkSession, tmp_path: Path, value: str
) -> None:
    frame = spark.sql(f"select 1 as a, {value} as odd")
    with pytest.raises(AnalysisException, match=r"hold no values of this type: column=odd type="):
        frame.write.format("quire").mode("append").save(str(tmp_path / "written"))
    assert not (tmp_path / "written").exists()
