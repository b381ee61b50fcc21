"""`quire bench`: every part runs, and nothing is left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_runs import COMMAND, ENVIRONMENT, Cli
from quire.cli.benchmarks import Result

PARTS = ["append", "read", "append_many", "read_many", "append_sync", "latency"]


def test_every_part_runs_and_nothing_is_left(cli: Cli, tmp_path: Path) -> None:
    ran = cli.ok("bench", tmp_path, "--seconds", "0.05", "--disk", "--format", "json")
    rows = json.loads(ran.out)
    assert [it["part"] for it in rows] == [*PARTS, "disk", "disk_sync"]
    assert all(it["messages"] > 0 and it["mb_per_second"] > 0 for it in rows)
    with_latency = {it["part"] for it in rows if it["worst_us"] is not None}
    assert with_latency == {"append_sync", "latency", "disk_sync"}
    found = {it["part"]: it["messages"] for it in rows}
    assert found["read"] <= found["append"]
    assert found["read_many"] <= found["append_many"]
    assert [*tmp_path.iterdir()] == []


def test_a_row_has_rates_and_percentiles() -> None:
    row = Result("latency", 1000, 100, 2.0, [*range(1000, 1_001_000, 1000)]).row()
    assert (row["per_second"], row["mb_per_second"]) == (500, 0.05)
    assert (row["p50_us"], row["p99_us"], row["p99.9_us"]) == (500, 990, 999)
    assert row["worst_us"] == 1000
    assert Result("append", 10, 100, 2.0).row()["worst_us"] is None


def test_a_reading_process_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, quire\n"
        f"path = {str(tmp_path / 'queue')!r}\n"
        "quire.open(path).close()\n"
        "run = 'import sys; from quire.cli import benchmarks as b; b.read_latencies(sys.argv[1])'\n"
        "reader = subprocess.Popen([sys.executable, '-c', run, path], stdout=subprocess.PIPE)\n"
        "assert reader.stdout.readline() == b'ready\\n'\n"
        "import os; os._exit(0)\n"
    )
    # The reader has the other end of stderr: this returns when it has ended too.
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_nothing_is_left_after_sigterm(tmp_path: Path) -> None:
    command = [*COMMAND, "bench", str(tmp_path), "--seconds", "60"]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        while not [*tmp_path.glob("*/*")]:  # until it measures
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        assert process.wait(300) == 143
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("option", [("--size", "7"), ("--seconds", "0"), ("--rate", "0")])
def test_what_cannot_be_measured_is_refused(
    cli: Cli, tmp_path: Path, option: tuple[str, str]
) -> None:
    assert cli("bench", tmp_path, *option).code == 2
    assert cli("bench", tmp_path / "none").code == 2


def test_a_full_disk_is_not_filled_further(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.cli.verbs.bench._NEEDED", 1 << 80)
    ran = cli("bench", tmp_path)
    assert ran.code == 1
    assert "not enough space for a benchmark: free=" in ran.err
