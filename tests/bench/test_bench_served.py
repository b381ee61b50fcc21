"""The part `serve` of bench/: every operation does its work, at a tiny volume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import harness, served, targets
from bench.harness import Result
from bench.scenarios import QUICK, SERVED, Amount, Served

TINY = Served(
    added=Amount(2000, 1000),
    appended=Amount(20_000, 10_000),
    calls=Amount(50, 10),
    flown=Amount(2000, 0),
    seen=Amount(300, 100),
    quiet_ms=Amount(200, 200),
)


@pytest.mark.check
@pytest.mark.parametrize("kind", SERVED)
def test_every_operation_does_its_work(kind: str, tmp_path: Path) -> None:
    found, missing = harness.versions([one.system for one in SERVED[kind]])
    wanted = [one for one in SERVED[kind] if one.system in found]
    for what, scenario, setting in served.settings([tmp_path], replace(QUICK, served=TINY)):
        if what["kind"] != kind:
            continue
        with setting() as measure:
            runs = {one.key: measure(one) for one in wanted}
        described = {**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]}
        results: dict[str, Result] = {"serve": {"scenarios": [described]}}
        shown = served.text(results)
        assert len([it for it in shown.splitlines() if it.startswith("| ")]) == 1 + len(wanted)
        assert list(targets.verdicts(results)) or kind == "seen"
    assert all("PATH" in reason or "installed" in reason for reason in missing.values())


def _verdicts(**nanos: float) -> list[tuple[str, bool]]:
    runs = {
        key.replace("_at_", "@").replace("__", "."): {
            "nanos": it,
            "cpu_nanos": it,
            "bytes_per_s": it,
            "cpu": it,
            "foreign_cores": 0.0,
        }
        for key, it in nanos.items()
    }
    scenario: Result = {"file_system": "tmpfs", "rounds": [{"kept": True, "runs": runs}]}
    found = targets.verdicts({"serve": {"scenarios": [scenario]}})
    return [(one.what, one.is_met) for one in found]


@pytest.mark.parametrize(("ours", "is_met"), [(1000, True), (1001, False)])
def test_pipelines_are_held_against_redis(ours: float, *, is_met: bool) -> None:
    found = _verdicts(served__xadd=ours, served_redis__xadd=1000)
    assert found == [("serve: XADD in pipelines : Redis", is_met)]


@pytest.mark.parametrize(("ours", "is_met"), [(150, True), (151, False)])
def test_a_call_is_held_against_that_of_redis(ours: float, *, is_met: bool) -> None:
    found = _verdicts(served__call_at_socket=ours, served_redis__call_at_socket=100)
    assert found == [("serve: XADD by a bare socket : Redis", is_met)]


@pytest.mark.parametrize(
    ("flight", "loopback", "is_met"),
    [(1e9, 3e9, True), (0.9e9, 3e9, False), (0.8e9, 0.8e9, True)],
)
def test_flight_is_held_against_what_the_loopback_does(
    flight: float, loopback: float, *, is_met: bool
) -> None:
    [(_, found)] = _verdicts(served__flight=flight, served__loopback=loopback)
    assert found is is_met


@pytest.mark.parametrize(("cpu", "is_met"), [(0.049, True), (0.06, False)])
def test_rest_is_held_against_a_part_of_a_core(cpu: float, *, is_met: bool) -> None:
    assert _verdicts(served__page_at_100=cpu)[0][1] is is_met
