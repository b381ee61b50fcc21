"""The datasets of a pipeline in Spark Declarative Pipelines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pipeline_outputs import ids, rewritten, run
from quire.spark.sessions import java
from trades_recorded import QUEUE_SINK, record

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DEAR = """\
  dear:
    python: steps.py:dear
    from: [clean, names]
sinks:
  - {from: dear, format: parquet, path: out/dear}
"""
STEPS = """\
def dear(clean, names):
    return clean.join(names, "symbol").where("price > 1").select("id", "name", "price")
"""
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
}


def test_declared_datasets_are_those_of_a_full_run(spark: SparkSession, tmp_path: Path) -> None:
    recorded = record(tmp_path, 300)
    (tmp_path / "steps.py").write_text(STEPS, "utf-8")
    rewritten(
        tmp_path,
        ("schedule: available-now", "mode: full"),
        (QUEUE_SINK, ""),
        ("sinks:\n", DEAR),
    )
    run(spark, tmp_path)
    _declared(tmp_path)

    assert ids(spark, tmp_path) == sorted(it[0] for it in recorded.good)
    for name in ("clean", "hourly", "dear", "quarantine"):
        written = spark.read.parquet(str(tmp_path / "out" / name)).drop("run", "batch")
        table = "trades_quarantine" if name == "quarantine" else name
        made = spark.read.parquet(str(tmp_path / "spark-warehouse" / table))
        assert sorted(made.columns) == sorted(written.columns)
        expected = _rows(written, written.columns)
        assert len(expected) > 1
        assert _rows(made, written.columns) == expected, name


def _declared(folder: Path) -> None:
    """Run a project of Declarative Pipelines, in another time zone than the pipeline's."""
    (folder / "spark-pipeline.yml").write_text(
        f"name: trades\nstorage: {(folder / 'storage').as_uri()}\n"
        "libraries:\n  - glob: {include: definitions/**}\n"
    )
    (folder / "definitions").mkdir()
    (folder / "definitions" / "trades.py").write_text(
        "import quire.pipeline\n\nquire.pipeline.declare('pipeline.yaml')\n"
    )
    java.use()
    command = [str(Path(sys.executable).parent / "spark-pipelines"), "run", "--remote", "local[2]"]
    command += [word for it in SETTINGS.items() for word in ("--conf", "=".join(it))]
    kept = {name: value for name, value in os.environ.items() if name != "PYSPARK_GATEWAY_PORT"}
    environment = kept | {"PYSPARK_PYTHON": sys.executable, "TZ": "Asia/Kolkata"}
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _rows(frame: DataFrame, columns: Sequence[str]) -> Counter[str]:
    """Return the rows as JSON; sums may differ in their last digits."""
    rounded = [
        F.round(name, 6).alias(name) if kind == "double" else F.col(name)
        for name, kind in frame.select(*columns).dtypes
    ]
    rows = frame.select(F.to_json(F.struct(*rounded)).alias("row")).collect()
    return Counter(row["row"] for row in rows)
