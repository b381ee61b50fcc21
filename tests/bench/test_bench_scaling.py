"""The part `scaling` of bench/: every operation does its work at each amount."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import contention, plots, scaling
from bench.harness import Failed, Result
from bench.scenarios import QUICK, SCALING, Scaling
from bench.task import Task

TINY = Scaling(
    pairs=1,
    messages=(1000, 3000),
    cycles=(2, 5),
    processes=(1, 2),
    sizes=(8, 3_000_000),
    read=3000,
    written=1_000_000,
    bytes=10_000,
)
VOLUME = replace(QUICK, scaling=TINY, contention_ms=20, contention_warm_up=1000)


def measured(place: Path) -> dict[str, Result]:
    found: list[Result] = []
    for what, scenario, setting in scaling.settings(place, VOLUME):
        with setting() as measure:
            runs = {one.key: measure(one) for one in SCALING[what["kind"]]}
        assert all(run["nanos"] > 0 for run in runs.values())
        found.append({**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]})
    return {"scaling": {"scenarios": found}}


@pytest.mark.check
def test_every_amount_is_measured_shown_and_drawn(tmp_path: Path) -> None:
    results = measured(tmp_path)
    shown = scaling.text(results)
    for title in scaling.KINDS.values():
        assert shown.count(f"By {title}:") == 1
    lines = [line for line in shown.splitlines() if line.startswith("| ")]
    assert len(lines) == 3 * len(SCALING)  # a head and two amounts each
    (picture,) = plots.draw(results, tmp_path / "plots")["How it grows"]
    assert picture.stat().st_size > 10_000


@pytest.mark.check
def test_readers_that_miss_messages_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = contention.run

    def without_one(asked: Task, writers: int) -> list[Result]:
        return known(asked, writers)[1:]

    monkeypatch.setattr(contention, "run", without_one)
    every = scaling.settings(tmp_path, VOLUME)
    setting = next(it for what, _, it in every if (what["kind"], what["amount"]) == ("tailers", 2))
    with setting() as measure, pytest.raises(Failed, match="count=3000 expected=6000"):
        measure(SCALING["tailers"][0])
