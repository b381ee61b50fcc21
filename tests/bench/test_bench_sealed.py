"""The part `sealed` of bench/: every operation does its work, at a tiny volume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import sealed, targets
from bench.harness import Result
from bench.scenarios import QUICK, SEALED, Amount

from parameters import some


@pytest.mark.parametrize("kind", some(SEALED, keep=[0]))
def test_every_operation_does_its_work(kind: str, tmp_path: Path) -> None:
    volume = replace(QUICK, sealed=Amount(10_000, 5000))
    for what, scenario, setting in sealed.settings([tmp_path], volume):
        if what["kind"] != kind:
            continue
        with setting() as measure:  # the crate's own program takes long to compile
            wanted = [one for one in SEALED[kind] if one.system == "sealed"]
            runs = {one.key: measure(one) for one in wanted}
        assert all(run["nanos"] > 0 for run in runs.values())
        described = {**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]}
        shown = sealed.text({"sealed": {"scenarios": [described]}})
        assert len([line for line in shown.splitlines() if line.startswith("| ")]) > len(wanted)


@pytest.mark.parametrize(("encrypted", "is_met"), [(600, True), (601, False)])
def test_encryption_is_held_against_the_cipher(encrypted: int, *, is_met: bool) -> None:
    nanos = {
        "sealed.append@plain": 100,
        "sealed.append@encrypted": encrypted,
        "seal_crate.seal": 400,
    }
    runs = {key: {"nanos": it, "foreign_cores": 0.0} for key, it in nanos.items()}
    scenario: Result = {"file_system": "tmpfs", "rounds": [{"kept": True, "runs": runs}]}
    [found] = targets.verdicts({"sealed": {"scenarios": [scenario]}})
    assert found.is_met is is_met
