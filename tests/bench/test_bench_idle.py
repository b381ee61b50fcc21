"""The part `idle` of bench/: every reader waits, is woken and read all, at a tiny volume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench import idle
from bench.scenarios import IDLE, QUICK, Amount, Idle

TINY = Idle(quiet_ms=Amount(20, 10), wakes=Amount(10, 5))


@pytest.mark.slow
def test_every_operation_does_its_work(tmp_path: Path) -> None:
    described: list[dict[str, Any]] = []
    for what, scenario, setting in idle.settings([tmp_path], replace(QUICK, idle=TINY)):
        with setting() as measure:
            runs = {one.key: measure(one) for one in IDLE[what["kind"]]}
        described.append({**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]})
    idle_cpu, woken = described
    assert all(run["woken_ns"] > 0 for run in idle_cpu["rounds"][0]["runs"].values())
    assert all(0 < run["begin"]["p50"] for run in woken["rounds"][0]["runs"].values())
    shown = idle.text({"idle": {"scenarios": described}})
    assert "1,000 tasks in `afollow()`, polling" in shown
    rows = [line for line in shown.splitlines() if line.startswith("| ")]
    assert len(rows) == len(IDLE["cpu"]) + len(IDLE["wake"]) + 2
