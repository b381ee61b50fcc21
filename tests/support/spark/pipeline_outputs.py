"""Runs of the pipeline of trades, and what it has to have written and counted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quire.pipeline
from quire.pipeline import Report
from quire.pipeline.spec.loader import scheduled
from trades_recorded import PIPELINE, Recorded

DROPPED = "known symbol"
KEPT = "below one"


def run(spark: SparkSession, folder: Path, schedule: str | None = None) -> Report:
    pipeline = quire.pipeline.load(folder / "pipeline.yaml")
    if schedule is not None:
        pipeline = scheduled(pipeline, schedule)
    report = quire.pipeline.run(pipeline, spark=spark)
    assert report.errors == ()
    return report


def rewritten(folder: Path, *changes: tuple[str, str]) -> None:
    text = PIPELINE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "pipeline.yaml").write_text(text, "utf-8")


def ids(spark: SparkSession, folder: Path) -> list[int]:
    """The trades that were written, each as often as it was."""
    return sorted(row.id for row in spark.read.parquet(str(folder / "out/clean")).collect())


def hourly(spark: SparkSession, folder: Path) -> dict[tuple[int, str], tuple[int, float]]:
    rows = spark.read.parquet(str(folder / "out/hourly")).collect()
    found = {
        (int(row.hour.timestamp() * 1000), row["name"]): (row.trades, row.total) for row in rows
    }
    assert len(found) == len(rows)
    return found


def quarantined(spark: SparkSession, folder: Path) -> Counter[str]:
    rows = spark.read.parquet(str(folder / "out/quarantine")).collect()
    return Counter(rule for row in rows for rule in row.rules)


def check_outputs(spark: SparkSession, folder: Path, recorded: Recorded) -> None:
    """Everything that was written equals what plain Python makes of what was recorded."""
    complete = recorded.complete()
    assert ids(spark, folder) == sorted(it[0] for it in complete)
    with quire.open(folder / "out/queue", read_only=True) as queue, queue.tailer() as tailer:
        appended = [it["id"] for it in iter(tailer.read_map, None)]
    assert sorted(appended) == sorted(it[0] for it in complete)
    records = [it for it in (folder / "out/queue/.quire-sink").iterdir() if it.is_dir()]
    assert len(records) <= 1
    expected = recorded.hourly()
    found = hourly(spark, folder)
    assert found.keys() == expected.keys()
    for key, (count, total) in expected.items():
        assert found[key][0] == count
        assert found[key][1] == pytest.approx(total)
    put_in = {it: n for it, n in recorded.faults.items() if it not in (DROPPED, KEPT)}
    assert quarantined(spark, folder) == put_in
    rows = spark.read.parquet(str(folder / "out/quarantine")).collect()
    values = [(row.rules[0], json.loads(row.row)) for row in rows]
    assert {it["id"] for rule, it in values if rule == "late"} == recorded.late
    assert Counter(it["id"] for rule, it in values if rule == "duplicate") == Counter(
        recorded.again
    )
    assert {row.step for row in rows if row.rules == ["malformed"]} == {"trades"}
    assert all("price" in it["_error"] for rule, it in values if rule == "malformed")


def check_counts(report: Report, recorded: Recorded) -> None:
    """The report counts what was put in, and where it went."""
    rules = {rule.name: rule for step in report.steps for rule in step.rules}
    assert {name: rule.broken for name, rule in rules.items()} == recorded.faults
    assert {rule.destination for name, rule in rules.items() if name not in (DROPPED, KEPT)} == {
        report.quarantine
    }
    trades, _, clean, by_hour = report.steps
    faults = recorded.faults
    assert (trades.rows_out, trades.quarantined) == (clean.rows_in, faults["malformed"])
    gone = faults["late"] + faults["duplicate"] + faults["price is positive"]
    assert (clean.quarantined, clean.dropped) == (gone, faults[DROPPED])
    complete = recorded.complete()
    assert (clean.rows_out, clean.held) == (len(complete), len(recorded.good) - len(complete))
    assert (by_hour.rows_in, by_hour.rows_out) == (len(complete), len(recorded.hourly()))
    assert [sink.rows for sink in report.sinks] == [
        *(len(complete), len(recorded.hourly()), len(complete)),
    ]
    assert report.rows_in == len(recorded.good) + sum(faults.values()) - faults[KEPT]
    assert sum(batch.rows_in or 0 for batch in report.batches) == report.rows_in
    assert sum(batch.rows_out or 0 for batch in report.batches) == report.rows_out
    assert sum(batch.quarantined for batch in report.batches) == report.quarantined
