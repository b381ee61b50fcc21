"""Functions of `quire.spark` that are given arguments of the wrong kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import quire
import quire.spark
from wrong_arguments import check


def call(function: Callable[..., Any], name: str, given: dict[str, Any], wrong: object) -> None:
    function(**given | {name: wrong})


@pytest.mark.parametrize(
    "name", ["spark", "path", "topics", "schema", "method", "columns", "startingOffsets"]
)
def test_scan(spark: SparkSession, path: Path, appender: quire.JournalAppender, name: str) -> None:
    appender.write_map({"a": 1})
    given = {"spark": spark, "path": path, "schema": "a int"}
    check(partial(call, quire.spark.scan, name, given), f"{name}|column|messages are gone")


@pytest.mark.parametrize("name", ["spark", "path", "archive", "schema", "method", "columns"])
def test_table(spark: SparkSession, path: Path, name: str) -> None:
    quire.open(path).close()
    given = {"spark": spark, "path": path}
    check(partial(call, quire.spark.table, name, given), f"{name}|no archive")


@pytest.mark.parametrize(
    "name", ["app_name", "cores", "memory", "ui", "ship", "settings", "master"]
)
def test_session(name: str) -> None:
    # A session that runs would take what is right.
    with pytest.raises(TypeError, match=f"invalid {name}: expected .*, found object"):
        call(quire.spark.session, name, {}, object())


def test_what_takes_no_queue() -> None:
    check(quire.spark.register, "spark")
    check(quire.spark.lag_of, "progress")


def test_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(partial(call, quire.spark.finish, "path", {}), "path|File name too long")
    given = {"path": tmp_path}
    check(partial(call, quire.spark.finish, "staging_location", given), "staging_location|name too")
