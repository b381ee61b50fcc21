"""The small measuring scripts of bench/ run, and print a row for each thing they measure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT
from quire import pausers


def table(*command: str) -> list[list[str]]:
    ran = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stdout.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.slow
def test_every_pauser_has_a_row() -> None:
    rows = table("bench.pausers", "--count", "3", "--idle-s", "0.02")
    names = {row[0].strip("`").split("(")[0] for row in rows}
    assert names == set(pausers.__all__) - {"Pauser"}
    assert all(row[1].endswith("%") and row[2].endswith("us") for row in rows)


@pytest.mark.slow
def test_services_are_measured_end_to_end(tmp_path: Path) -> None:
    options = ("--count", "300", "--rate", "2000", "--ways", "thread", "--dir", str(tmp_path))
    (row,) = table("bench.services", *options)
    p50, p90, p99, *_ = map(float, row[2:])
    assert 0 < p50 <= p90 <= p99
