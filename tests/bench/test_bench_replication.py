"""The part `replication` of bench/: every system hands on each message, at a tiny volume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import harness, replicated, targets
from bench.harness import Result
from bench.replicated_scenarios import REPLICATION
from bench.scenarios import QUICK, Amount, Operation, Replication

TINY = Replication(
    pairs=1,
    seconds=0.2,
    caught_up=Amount(2000, 0),
    cost=Amount(2000, 1000),
    waits=Amount(1000, 0),
    flights=Amount(2000, 1000),
)


def _measured(kind: str, folder: Path, wanted: list[Operation]) -> Result:
    """Return one scenario of a kind, measured."""
    what, scenario, setting = next(
        each
        for each in replicated.settings([folder], replace(QUICK, replication=TINY))
        if each[0]["kind"] == kind
    )
    with setting() as measure:
        runs = {one.key: measure(one) for one in wanted}
    return {**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]}


@pytest.mark.check
def test_every_system_that_is_here_hands_on_each_message(tmp_path: Path) -> None:
    """The rounds compare the numbers of all messages; Java's part has a test of its own."""
    every = [one for one in REPLICATION["latency"] if one.system != "replicated_java"]
    found, missing = harness.versions([one.system for one in every])
    wanted = [one for one in every if one.system in found]

    scenario = _measured("latency", tmp_path, wanted)

    shown = replicated.text({"replication": {"scenarios": [scenario]}})
    assert "TCP alone (limit)" in shown
    assert len([line for line in shown.splitlines() if line.startswith("| ")]) == 1 + len(wanted)
    assert all("PATH" in reason or "installed" in reason for reason in missing.values())


@pytest.mark.java
@pytest.mark.check
def test_java_hands_on_each_message(tmp_path: Path) -> None:
    scenario = _measured("latency", tmp_path, [Operation("replicated_java", "latency")])

    assert scenario["rounds"][0]["runs"]["replicated_java.latency"]["begin"]["p50"] > 0


@pytest.mark.check
def test_what_a_sink_costs_and_what_it_keeps_up_with_is_measured(tmp_path: Path) -> None:
    kinds = ("catch-up", "cost", "waits", "flights")
    scenarios = [_measured(kind, tmp_path, [*REPLICATION[kind]]) for kind in kinds]

    results: dict[str, Result] = {"replication": {"scenarios": scenarios}}
    shown = replicated.text(results)
    assert "a sink that catches up" in shown
    assert "with a source and a sink" in shown
    assert {one.what for one in targets.verdicts(results)} == {
        "replicate: one connection",
        "replicate: CPU time of the appender's thread",
        "replicate: an append that waits for a replica, against one for the disk",
        "replicate: 64 messages under way",
        "replicate: 64 messages under way, busy threads",
    }


@pytest.mark.parametrize(("ours", "is_met"), [(90.0, True), (110.0, False)])
def test_each_peer_must_be_later(ours: float, *, is_met: bool) -> None:
    runs = {
        key: {"begin": {"p50": delay, "p99": delay}, "foreign_cores": 0.0}
        for key, delay in (("replicated.latency", ours), ("replicated_redis.latency", 100.0))
    }
    rounds = [{"kept": True, "runs": runs}]
    scenario: Result = {"file_system": "tmpfs", "rate": 10_000, "size": 40, "rounds": rounds}

    found = targets.verdicts({"replication": {"scenarios": [scenario]}})

    assert [(one.what, one.is_met) for one in found] == [
        (f"replicate: {name} at 10,000/s, Redis Streams, a replica", is_met)
        for name in ("p50", "p99")
    ]
