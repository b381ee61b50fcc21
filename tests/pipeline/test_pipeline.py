"""Runs of pipelines, against what was put into their queues."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline_outputs import (
    DROPPED,
    KEPT,
    check_counts,
    check_outputs,
    hourly,
    ids,
    quarantined,
    rewritten,
    run,
)
from trades_recorded import QUEUE_SINK, end_ms, more, record

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("schedule", ["available-now", "once"])
def test_late_malformed_and_duplicate_rows_are_counted_and_kept_aside(
    spark: SparkSession, tmp_path: Path, schedule: str
) -> None:
    recorded = record(tmp_path)
    report = run(spark, tmp_path, schedule)

    assert min(recorded.faults.values()) > 5
    assert len(report.batches) == (1 if schedule == "once" else 4)
    check_outputs(spark, tmp_path, recorded)
    check_counts(report, recorded)
    lags = [batch.lag for batch in report.batches]
    read = [batch.rows_in or 0 for batch in report.batches]
    assert lags == [sum(read[n + 1 :]) for n in range(len(read))]
    assert report.sources[0].lag == 0


def test_each_run_goes_on_where_the_last_one_ended(spark: SparkSession, tmp_path: Path) -> None:
    recorded = record(tmp_path, 400)
    first = run(spark, tmp_path, "once")
    nothing = run(spark, tmp_path, "once")
    more(tmp_path, recorded, 500)
    second = run(spark, tmp_path, "once")

    assert (nothing.rows_in, nothing.rows_out, nothing.batches) == (0, 0, ())
    assert [batch.batch for batch in (*first.batches, *second.batches)] == [0, 1]
    check_outputs(spark, tmp_path, recorded)


def test_a_full_run_computes_all_of_it_and_replaces_the_last(
    spark: SparkSession, tmp_path: Path
) -> None:
    recorded = record(tmp_path, 300)
    rewritten(tmp_path, ("schedule: available-now", "mode: full"), (QUEUE_SINK, ""))
    for _ in range(2):
        run(spark, tmp_path)

    assert ids(spark, tmp_path) == sorted(it[0] for it in recorded.good)
    assert sum(n for n, _ in hourly(spark, tmp_path).values()) == len(recorded.good)
    put_in = {it: n for it, n in recorded.faults.items() if it not in (DROPPED, KEPT)}
    assert quarantined(spark, tmp_path) == put_in
    assert end_ms(recorded.latest_ms) > recorded.latest_ms
