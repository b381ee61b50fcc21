"""Sources, transforms, sinks and errors of pipelines, each in a small one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quire
import quire.pipeline
from cli_runs import COMMAND
from quire.pipeline import PipelineError, Report
from quire.pipeline.runtime import micro_batch
from quire.pipeline.runtime.state import State

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TRADES = """\
pipeline: small
sources:
  trades: {format: quire, path: trades, schema: "_index long, n long"}
"""


def append(folder: Path, name: str, *values: int) -> None:
    with quire.open(folder / name, roll_cycle="TEST_SECONDLY") as queue, queue.appender() as to:
        for value in values:
            to.write_map({"n": value})


def run(spark: SparkSession, folder: Path, text: str) -> Report:
    (folder / "pipeline.yaml").write_text(text, "utf-8")
    return quire.pipeline.run(quire.pipeline.load(folder / "pipeline.yaml"), spark=spark)


def messages(path: Path) -> list[dict[str, object]]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [dict(it) for it in iter(tailer.read_map, None)]


def test_two_queues_python_a_table_and_queues_as_sinks(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, "trades", 1, 2, 3)
    append(tmp_path, "fills", 20, 30, -40)
    (tmp_path / "steps.py").write_text(
        "def matched(trades, filled):\n"
        "    filled = filled.selectExpr('n div 10 as n', 'n as filled')\n"
        "    return trades.join(filled, 'n', 'left').drop('_index')\n"
    )
    text = f"""{TRADES}
  fills: {{format: quire, path: fills, schema: "_index long, n long"}}
steps:
  filled: {{from: fills, expect: {{above zero: n > 0}}}}
  matched: {{from: [trades, filled], python: "steps.py:matched"}}
sinks:
  - {{from: matched, format: quire, path: out/queue}}
  - {{from: matched, format: table, table: matched, path: out/table}}
quarantine: {{format: quire, path: out/quarantine}}
"""
    report = run(spark, tmp_path, text)
    assert report.errors == ()
    assert [(step.rows_in, step.rows_out) for step in report.steps] == [
        *((None, 3), (None, 3), (3, 2), (5, 3)),
    ]
    assert [sink.rows for sink in report.sinks] == [3, 3]

    expected = [(1, None), (2, 20), (3, 30)]
    written = messages(tmp_path / "out/queue")
    assert sorted((it["n"], it.get("filled")) for it in written) == expected
    assert sorted((row.n, row.filled) for row in spark.table("matched").collect()) == expected
    (aside,) = messages(tmp_path / "out/quarantine")
    assert (aside["step"], aside["rules"]) == ("filled", ["above zero"])
    assert json.loads(str(aside["row"]))["n"] == -40

    append(tmp_path, "trades", 4)
    assert run(spark, tmp_path, text).rows_out == 2
    assert sorted(row.n for row in spark.table("matched").collect()) == [1, 2, 3, 4]
    assert len(messages(tmp_path / "out/queue")) == 4
    spark.sql("drop table matched")


def test_a_full_run_replaces_its_own_rows_and_no_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path, "trades", 1, 2, -3)
    (tmp_path / "steps.py").write_text(
        "def same(batches):\n    yield from batches\n\n"
        "def by_arrow(trades):\n"
        "    return trades.select('n').mapInArrow(same, 'n long')\n"
    )
    step = "{from: trades, python: 'steps.py:by_arrow', expect: {above zero: n > 0}}"
    text = f"""{TRADES}steps: {{step: {step}}}
sinks: [{{from: step, format: parquet, path: out}}]
quarantine: {{path: aside}}
"""
    first = run(spark, tmp_path, text)
    assert first.errors == ()
    written = sorted(it.name for it in (tmp_path / "out").glob("*.parquet"))
    theirs = spark.range(100, 101).withColumnRenamed("id", "n")
    theirs.write.mode("append").parquet(str(tmp_path / "out"))

    full = f"mode: full\n{text}"
    assert run(spark, tmp_path, full).errors == ()
    assert not {it.name for it in (tmp_path / "out").glob("*.parquet")} & set(written)
    assert sorted(row.n for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [
        *(1, 2, 100)
    ]
    assert run(spark, tmp_path, full.replace("n > 0", "n > -9")).errors == ()
    assert spark.read.parquet(str(tmp_path / "aside")).count() == 0
    rows = sorted(row.n for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert rows == [-3, 1, 2, 100]


SINK = "sinks: [{from: step, format: parquet, path: out}]\n"


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("{sql: 'select m from {trades}'}", "step step failed: pipeline=small: [UNRESOLVED_COLUMN"),
        ("{sql: 'selec n from {trades}'}", "step step failed: pipeline=small: [PARSE_SYNTAX_ERROR"),
        ("{from: trades, expect: {a: x > 1}}", "step step failed: pipeline=small: [UNRESOLVED"),
        ("{from: trades, deduplicate: {by: m}}", "step failed: pipeline=small: no such columns: m"),
        ("{from: trades, python: 'steps.py:nothing'}", "no such function: steps.py:nothing"),
        ("{from: trades, python: 'steps.py:wrong'}", "Error: division by zero (steps.py:2)"),
        ("{from: trades, python: 'steps.py:late'}", "ValueError: no good: n=2"),
        ("{from: trades, python: 'steps.py:none'}", "steps.py:none returned no DataFrame: None"),
        (
            "{from: trades, expect: {small: {check: n < 2, action: fail}}}",
            "rule broken, nothing was written: pipeline=small step=step rules=small (2 rows)",
        ),
    ],
)  # fmt: skip
def test_what_fails_is_named_in_a_line_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, step: str, problem: str
) -> None:
    append(tmp_path, "trades", 1, 2, 3)
    (tmp_path / "steps.py").write_text(
        "def wrong(trades):\n    return 1 / 0\n\n"
        "def none(trades):\n    return None\n\n"
        "def fails(n):\n"
        "    if n == 2:\n        raise ValueError(f'no good: n={n}')\n    return n\n\n"
        "def late(trades):\n"
        "    from pyspark.sql.functions import udf\n"
        "    return trades.select(udf(fails, 'long')('n').alias('n'))\n"
    )
    report = run(spark, tmp_path, f"{TRADES}steps:\n  step: {step}\n{SINK}")

    (error,) = report.errors
    assert report.outcome == "failed"
    assert problem in error
    assert error.startswith(f"{tmp_path / 'pipeline.yaml'}:")
    assert "\n" not in error
    assert len(error) < 400
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_what_is_kept_of_keys_is_compacted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a dictionary of the last time of each key."""
    monkeypatch.setattr(micro_batch, "COMPACT_EVERY", 2)
    chance = random.Random(3)  # noqa: S311 - must repeat
    last: dict[int, int] = {}
    kept: list[int] = []
    again = 0
    (tmp_path / "in").mkdir()
    number = 0
    for part in range(5):
        rows: list[dict[str, int]] = []
        for _ in range(40):
            key = chance.randrange(12)
            rows.append({"number": number, "key": key, "at": 1_700_000_000 + number})
            if key in last and number - last[key] <= 5:
                again += 1
            else:
                kept.append(number)
            last[key] = number
            number += 1
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / "in" / f"{part}.json").write_text(text)
        os.utime(tmp_path / "in" / f"{part}.json", (part, part))
    report = run(
        spark,
        tmp_path,
        """\
pipeline: keys
schedule: available-now
sources:
  rows:
    format: json
    path: in
    stream: true
    schema: number long, key long, at long
    options: {maxFilesPerTrigger: 1}
steps:
  timed: {sql: "select *, timestamp_seconds(at) as time from {rows}"}
  once:
    from: timed
    order: number
    watermark: {column: time, delay: 2s}
    deduplicate: {by: key, within: 5s, action: drop}
sinks: [{from: once, format: parquet, path: out}]
""",
    )
    assert report.errors == ()
    assert len(report.batches) == 5
    assert sorted(row.number for row in spark.read.parquet(str(tmp_path / "out")).collect()) == kept
    assert report.steps[-1].dropped == again
    keys = sorted(it.name for it in (tmp_path / "state/keys/kept/once-keys").iterdir())
    assert keys == ["000000002.full", "000000003.delta", "000000004.full"]
    remembered = spark.read.parquet(str(tmp_path / "state/keys/kept/once-keys/000000004.full"))
    assert remembered.count() == sum(number - 1 - it <= 2 + 5 for it in last.values())


def test_one_run_at_a_time_has_the_state(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, "trades", 1)
    with (
        State(tmp_path / "state" / "small").opened(),
        pytest.raises(PipelineError, match=f"the pipeline is running: .* pid={os.getpid()}"),
    ):
        run(spark, tmp_path, f"{TRADES}sinks: [{{from: trades, format: parquet, path: out}}]\n")


def test_a_package_that_is_missing_is_reported_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = "sinks: [{from: trades, format: delta, path: out}]\n"
    with pytest.raises(PipelineError, match=r"pipeline.yaml:4: .* pip install delta-spark"):
        run(spark, tmp_path, TRADES + sink)


def test_a_schedule_runs_until_it_is_stopped(tmp_path: Path) -> None:
    append(tmp_path, "trades", 1, 2, 3)
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"{TRADES}sinks: [{{from: trades, format: parquet, path: out}}]\n")
    arguments = ["pipeline", "run", str(file), "--schedule", "every 1s", "--report", "report"]
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        written = tmp_path / "report" / "report.json"
        for count in (3, 4):
            while not written.exists() or Report.read(written).rows_out < count:
                assert running.poll() is None, running.communicate()
                time.sleep(0.1)  # another process is at work
            append(tmp_path, "trades", 4) if count == 3 else None
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate()

    report = Report.read(written)
    assert (running.returncode, report.outcome, report.rows_out) == (0, "stopped", 4)
    assert b"small: stopped" in out
    assert b"Traceback" not in err
    assert {it.name for it in (tmp_path / "report").iterdir()} == {
        *("report.json", "report.txt", "report.html"),
    }
    assert [step.rows_out for step in report.steps] == [4]
