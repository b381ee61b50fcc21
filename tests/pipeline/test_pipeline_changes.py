"""Pipeline files that change between runs: what earlier runs kept or wrote is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quire
import quire.pipeline
from quire.pipeline import Report

pytestmark = [pytest.mark.spark, pytest.mark.slow]

START_MS = 1_700_000_000_000
QUARTER_MS = 900_000
TEXT = """\
pipeline: small
sources:
  trades: {format: quire, path: trades, schema: "_index long, n long, ms long"}
steps:
  clean:
    sql: select _index, n, timestamp_millis(ms) as at from {trades}
    watermark: {column: at, delay: 1 minute}
    deduplicate: {by: n}
    window: {length: 1 hour}
sinks:
  - {from: clean, format: parquet, path: out}
"""


def append(folder: Path, numbers: range) -> None:
    with quire.open(folder / "trades", roll_cycle="TEST_SECONDLY") as queue, queue.appender() as to:
        for n in numbers:
            to.write_map({"n": n, "ms": START_MS + n * QUARTER_MS})


def run(spark: SparkSession, folder: Path, *changes: tuple[str, str]) -> Report:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "pipeline.yaml").write_text(text, "utf-8")
    return quire.pipeline.run(quire.pipeline.load(folder / "pipeline.yaml"), spark=spark)


def numbers_in(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(row.n for row in spark.read.parquet(str(folder / "out")).collect())


CHANGES = [
    ([("clean", "tidy")], "step=clean rows="),
    ([("    window: {length: 1 hour}\n", "")], "step=clean rows="),
    ([("select _index, n,", "select _index, n, n as m,")], "kept=none found=m bigint"),
    ([("{by: n}", "{by: _index}")], "kept=n bigint found=_index bigint"),
]


def test_what_steps_keep_is_neither_lost_nor_read_as_nulls(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path, range(10))
    assert run(spark, tmp_path).errors == ()
    written = numbers_in(spark, tmp_path)
    assert 0 < len(written) < 10
    append(tmp_path, range(10, 20))

    for changes, problem in CHANGES:
        (error,) = run(spark, tmp_path, *changes).errors
        assert problem in error
        assert "remove " in error
        assert "\n" not in error
        assert numbers_in(spark, tmp_path) == written

    assert run(spark, tmp_path).errors == ()
    found = numbers_in(spark, tmp_path)
    assert len(found) > 10
    assert found == [*range(len(found))]


def test_an_incremental_run_adds_nothing_to_what_a_full_one_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path, range(10))
    full = ("pipeline: small\n", "pipeline: small\nmode: full\n")
    assert run(spark, tmp_path).errors == ()
    (error,) = run(spark, tmp_path, full, ("select _index", "select nothing")).errors
    assert "nothing" in error
    append(tmp_path, range(10, 20))
    assert run(spark, tmp_path).errors == ()  # as the full run wrote nothing

    assert run(spark, tmp_path, full).errors == ()
    found = numbers_in(spark, tmp_path)
    append(tmp_path, range(20, 30))
    (error,) = run(spark, tmp_path).errors
    assert "a run of mode full" in error
    assert str(tmp_path / "state") in error
    assert numbers_in(spark, tmp_path) == found == [*range(20)]
