"""Finished cycles whose files can no longer be read, with later cycles behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from damages import empty, erase_marker, lose_header
from spark_queues import DAYS, PER_DAY, load, record


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("damage", [empty, lose_header])
def test_a_finished_cycle_that_is_not_ready_is_an_error(
    spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None], number: int
) -> None:
    path = record(tmp_path / "queue")
    file = sorted(path.glob("*.cq4"))[number]
    damage(file)

    with pytest.raises(Exception, match=file.name) as caught:
        load(spark, path).count()
    assert "CorruptError" in str(caught.value)
    left = load(spark, path, failOnDataLoss="false")
    assert left.count() == (DAYS - 1) * PER_DAY


def test_missing_markers_cost_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = record(tmp_path / "queue")
    for file in sorted(path.glob("*.cq4"))[:-1]:
        erase_marker(file)

    assert load(spark, path).count() == DAYS * PER_DAY
    assert load(spark, path).select("_index").distinct().count() == DAYS * PER_DAY
