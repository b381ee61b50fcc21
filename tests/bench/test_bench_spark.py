"""The part of bench/ on Spark: its data, what it refuses, and what it makes of results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench import machine, report, scenarios, spark_data, spark_session, targets

import quire


@pytest.fixture
def lab(tmp_path: Path) -> spark_session.Lab:
    spark_data.fill(tmp_path / "queue", 3000, closed=True)
    return spark_session.Lab(tmp_path, 3000)


@pytest.mark.parametrize("name", ["decode_columns", "decode_payloads"])
def test_everything_is_decoded(lab: spark_session.Lab, name: str) -> None:
    found = lab.run(name)

    assert found["count"] == 3000
    assert found["nanos"] > 0
    lab.count = 2999
    with pytest.raises(AssertionError, match="other messages: count=3000 expected=2999"):
        lab.run(name)


def test_the_archived_day_holds_what_the_queue_does(lab: spark_session.Lab) -> None:
    files = [*lab.archive().glob("*.parquet")]

    assert len(files) == 1
    with quire.open(lab.queue, read_only=True) as queue:
        assert (len(queue.cycles), queue.entry_count) == (1, 3000)


def test_what_was_written_is_compared_with_the_messages(tmp_path: Path) -> None:
    spark_data.fill(tmp_path / "whole", 2000)
    spark_data.verify(tmp_path / "whole", 2000)

    with pytest.raises(AssertionError, match="other messages: count=2000"):
        spark_data.verify(tmp_path / "whole", 3000)


def test_the_cpu_time_of_a_process_has_that_of_its_children() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", busy]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.pid in machine.descendants(os.getpid())
        assert len(machine.descendants(process.pid)) == 1
        assert machine.tree_s(process.pid) >= 0.25
        process.communicate(b"\n")


def _result(kind: str, runs: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    full = {
        key: {"cpu_nanos": 1.0, "foreign_cores": 0.0, "load": 0.0, "messages": 10, **run}
        for key, run in runs.items()
    }
    one = {"kind": kind, "file_system": "ext4", "size": 100}
    return one | {"rounds": [{"kept": True, "runs": full}]}


@pytest.mark.parametrize(
    ("kind", "runs", "wanted"),
    [
        ("decode", {"quire.decode_columns": {"nanos": 199}}, ("5 M/s", True)),
        ("decode", {"quire.decode_payloads": {"nanos": 41}}, ("25 M/s", False)),
        (
            "query",
            {"quire.count": {"nanos": 101}, "spark.map_in_arrow_count": {"nanos": 100}},
            ("1.0 x", False),
        ),
        ("query", {"quire.sum@one": {"nanos": 10}, "quire.sum": {"nanos": 20}}, ("2.0 x", True)),
        (
            "trigger",
            {
                "quire.trigger": {"nanos": 121, "whole_ms": 3},
                "spark.rate": {"nanos": 100, "whole_ms": 2},
            },
            ("at most 1.20 x", False),
        ),
        (
            "memory",
            {
                "quire.worker_memory@small": {"nanos": 1, "peak_bytes": 100},
                "quire.worker_memory@large": {"nanos": 1, "peak_bytes": 120},
            },
            ("at most 1.25 x", True),
        ),
    ],
)
def test_targets_are_held_against_the_medians(
    kind: str, runs: Mapping[str, Mapping[str, float]], wanted: tuple[str, bool]
) -> None:
    results = {"spark": {"scenarios": [_result(kind, runs)]}}

    (verdict,) = targets.verdicts(results)

    assert (verdict.wanted, verdict.is_met) == wanted


def test_the_page_shows_each_operation_and_what_is_lost() -> None:
    one = {"nanos": 10.0, "whole_ms": 2.0, "peak_bytes": 1 << 20}
    kinds = {
        kind: {it.key: one | {"nanos": 20.0} if it.system == "quire" else one for it in wanted}
        for kind, wanted in scenarios.SPARK.items()
    }
    found: dict[str, Any] = {
        "scenarios": [_result(kind, runs) for kind, runs in kinds.items()],
        "quick": True,
        "date": "today",
        "commit": "none",
    }

    text = report.text({"spark": found})

    for wanted in scenarios.SPARK.values():
        for it in wanted:
            assert it.name in text or it.system == "spark" or "memory" in it.name, it.key
    assert "Quire count: 0.50 x Spark mapInArrow, count" in text
    assert "Quire trigger: 0.50 x Spark rate source" in text
