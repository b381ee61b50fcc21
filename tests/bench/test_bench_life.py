"""The part `life` of bench/: every operation does its work, at a tiny volume."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench import finding, life, life_tables, losses, targets
from bench.harness import Failed, Result
from bench.scenarios import LIFE, QUICK, Amount, Life, Operation
from bench.task import START_MS

from parameters import some

TINY = Life(
    groups=Amount(2000, 2000),
    held=Amount(2000, 1000),
    sought=(200, 4),
    rolls=3,
    polls=Amount(3000, 1000),
    records=Amount(50, 10),
    recorded=Amount(3000, 1000),
)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify, page faults of a thread")
@pytest.mark.parametrize("kind", some(LIFE, keep=[0]))
def test_every_operation_does_its_work(kind: str, tmp_path: Path) -> None:
    volume = replace(QUICK, life=TINY, latency_s=0.02)
    for what, scenario, setting in life.settings([tmp_path], volume):
        if what["kind"] != kind:
            continue
        with setting() as measure:
            wanted = [one for one in LIFE[kind] if one.system != "chronicle"]
            runs = {one.key: measure(one) for one in wanted}
        assert all(run["nanos"] > 0 for run in runs.values())
        described = {**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]}
        shown = life_tables.text({"life": {"scenarios": [described]}})
        assert len([line for line in shown.splitlines() if line.startswith("| ")]) > len(wanted)


def test_a_seek_that_finds_another_message_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding.fill(tmp_path, 4, 1)
    one = Operation("quire", "seek@field")
    assert finding.seek(tmp_path, 4, 1, one)["nanos"] > 0
    monkeypatch.setattr(finding, "START_MS", START_MS - 600_000)
    with pytest.raises(Failed, match="another message"):
        finding.seek(tmp_path, 4, 1, one)


def _verdicts(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    every = {key: {"cpu_nanos": 1, "foreign_cores": 0.0, **run} for key, run in runs.items()}
    scenario: Result = {"file_system": "tmpfs", "rounds": [{"kept": True, "runs": every}]}
    found = targets.verdicts({"life": {"scenarios": [scenario]}})
    return {one.what: one.is_met for one in found}


@pytest.mark.parametrize(("nanos", "is_met"), [(499, True), (501, False)])
def test_groups_are_held_against_a_rate(nanos: int, *, is_met: bool) -> None:
    (found,) = _verdicts({"quire.group@batches": {"nanos": nanos}}).values()
    assert found is is_met


@pytest.mark.parametrize(("listed", "is_met"), [(0, True), (1, False)])
def test_idle_tailers_must_not_read_the_directory(listed: int, *, is_met: bool) -> None:
    (found,) = _verdicts({"quire.idle@1000": {"nanos": 20, "listed": listed}}).values()
    assert found is is_met


@pytest.mark.parametrize(("warm", "is_met"), [(5.0, True), (5.2, False)])
def test_the_pretoucher_must_halve_the_window_max(warm: float, *, is_met: bool) -> None:
    cold = {"windows": {"max": 10.0}, "faults": 800}
    found = _verdicts(
        {
            "quire.paced": cold,
            "quire.paced@pretoucher": {"windows": {"max": warm}, "faults": 0},
        }
    )
    assert [*found.values()] == [is_met, True]


def test_paced_appends_that_take_longer_than_javas_are_listed() -> None:
    ours, java = ({"windows": {"max": it}, "faults": 9, "foreign_cores": 0} for it in (3, 2))
    rounds = [{"kept": True, "runs": {"quire.paced": ours, "chronicle.paced": java}}]
    scenario: Result = {"file_system": "ext4", "rounds": rounds}
    (line,) = losses.losses({"life": {"scenarios": [scenario]}})
    assert line == "Quire at 100,000/s on ext4, window max, us: 3.00, Java 2.00"


def test_a_log_handler_is_held_against_the_others_and_none() -> None:
    runs = {"none": 4000, "quire": 9500, "file": 9000, "queue": 9600}
    found = _verdicts({f"log_handlers.{name}": {"nanos": it} for name, it in runs.items()})
    assert [*found.values()] == [False, True, False]
