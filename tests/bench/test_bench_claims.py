"""The part `claims` of bench/: every operation does its work, at a tiny volume."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bench import claim_rows, claims, harness, losses, replicated, targets
from bench.adapters import quire_contending
from bench.harness import Result
from bench.replicated_scenarios import ACCEPTABLE
from bench.scenarios import CLAIMS, QUICK, Amount, Claims, Operation

TINY = Claims(pairs=1, seconds=0.02, paced_ms=100, passed=Amount(60, 20))
VOLUME = replace(QUICK, claims=TINY, contention_warm_up=2000)


def _measured(kind: str, folder: Path, wanted: list[Operation]) -> Iterator[Result]:
    """Measure the first and the last scenario of a kind."""
    every = [it for it in claims.settings(folder, VOLUME) if it[0]["kind"] == kind]
    for what, scenario, setting in {id(it): it for it in (every[0], every[-1])}.values():
        with setting() as measure:
            runs = {one.key: measure(one) for one in wanted}
        yield {**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]}


@pytest.mark.check
@pytest.mark.parametrize("kind", ["rates", "sizes", "writers", "services"])
def test_every_operation_does_its_work(kind: str, tmp_path: Path) -> None:
    wanted = [one for one in CLAIMS[kind] if one.system in ("quire", "ring")]

    scenarios = [*_measured(kind, tmp_path, wanted)]

    shown = claims.text({"claims": {"scenarios": scenarios}})
    assert len([it for it in shown.splitlines() if it.startswith("| ")]) > len(wanted)


@pytest.mark.java
@pytest.mark.check
def test_java_appends_at_a_rate_beside_another(tmp_path: Path) -> None:
    """The numbers of all messages of both writers are compared."""
    wanted = [one for one in CLAIMS["writers"] if one.system == "chronicle"]

    [_, large] = _measured("writers", tmp_path, wanted)

    for run in large["rounds"][0]["runs"].values():
        assert all(0 < one["p50"] <= one["p99.7"] <= one["max"] for one in run["writers"])


@pytest.mark.java
@pytest.mark.check
def test_a_broker_of_kafka_hands_on_each_message(tmp_path: Path) -> None:
    latency = [Operation("kafka", "latency")]
    [scenario, _] = _measured("broker", tmp_path, latency)
    assert scenario["rounds"][0]["runs"]["kafka.latency"]["begin"]["p50"] > 0
    with harness.Scenario(tmp_path, 96, 2000, 1000).streaming() as measure:
        assert measure(Operation("kafka", "stream"))["nanos"] > 0


@pytest.mark.check
def test_batches_have_all_messages_that_are_due(tmp_path: Path) -> None:
    [_, fast] = _measured("rates", tmp_path, [Operation("quire", "batches")])
    assert fast["rounds"][0]["runs"]["quire.batches"]["at_once"] > 1


@pytest.mark.check
def test_a_writer_at_a_rate_writes_documents_in_pieces(tmp_path: Path) -> None:
    [_, large] = _measured("writers", tmp_path, [Operation("quire", "double_buffer")])
    [run] = large["rounds"][0]["runs"].values()
    assert len(run["writers"]) == claims.WRITERS
    assert large["size"] % quire_contending.PIECE_BYTES == 0


def _rates(rate: int, held: float) -> Result:
    shares = {"p50": 1.0, "p90": 1.0, "p98": 1.0, "p99": 2.0, "p99.9": 3.0}
    run = {
        **dict.fromkeys(("begin", "windows", "append"), shares),
        "below": {"20": 0.5, "40": 0.75},
        "run_delay": {"reader": 0.0, "writer": 0.0},
        "rate": held,
        "at_once": 4.0,
        "foreign_cores": 0.5,
    }
    runs = dict.fromkeys(("quire.latency", "quire.batches", "chronicle.latency"), run)
    rounds = [{"kept": True, "runs": runs}]
    return {"kind": "rates", "file_system": "tmpfs", "size": 40, "rate": rate, "rounds": rounds}


def test_it_is_said_from_which_rate_on_messages_must_be_batches() -> None:
    held = [_rates(10_000, 9999), _rates(1_000_000, 900_000), _rates(2_000_000, 900_000)]
    said = claims.needing_batches(held)
    assert said.startswith("From 1,000,000 messages a second on they must be batches")
    assert "have 4.0 messages" in said
    assert claims.needing_batches(held[:1]).startswith("Single appends hold each of these rates")
    run = held[0]["rounds"][0]["runs"]["quire.latency"]
    run["begin"] = run["begin"] | {"p50": 1001.0}
    assert claims.needing_batches(held).startswith("From 10,000 messages a second on")


def test_claims_stand_beside_what_was_measured_and_nothing_else() -> None:
    assert claim_rows.text({}) == ""
    results: dict[str, Result] = {"claims": {"scenarios": [_rates(1_000_000, 900_000)]}}
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in claim_rows.text(results).splitlines()[2:]
    ]
    assert rows == [
        [
            "p99 of 40 B at 60 M a minute",
            "0.78 us",
            "2.00 us at 900.0 k/s *",
            "2.00 us at 900.0 k/s *; in batches 2.00 us at 900.0 k/s *",
        ],
        [
            "p99.9 of 40 B at 60 M a minute",
            "1.3 us",
            "3.00 us at 900.0 k/s *",
            "3.00 us at 900.0 k/s *; in batches 3.00 us at 900.0 k/s *",
        ],
        [
            "below 20 us at a million a second",
            "1 to 20 us",
            "50.00% at 900.0 k/s *",
            "50.00% at 900.0 k/s *",
        ],
        [
            "held of a million a second, single appends",
            "over 1 M/s",
            "900.0 k/s *",
            "900.0 k/s *",
        ],
    ]


def test_a_latency_later_than_javas_misses_and_is_listed() -> None:
    scenario = _rates(1_000_000, 1_000_000)
    runs = scenario["rounds"][0]["runs"]
    java = runs["chronicle.latency"]
    runs["chronicle.latency"] = java | {"begin": java["begin"] | {"p99": 1.5}}
    results: dict[str, Result] = {"claims": {"scenarios": [scenario]}}

    missed = [one.what for one in targets.verdicts(results) if not one.is_met]

    assert missed == ["latency p99, 40 B, 1,000,000/s"]
    [said] = losses.losses(results)
    assert said == "latency p99, 40 B at 1,000,000/s on tmpfs: 2.00 us, Java 1.50 us"


def test_a_writer_that_waits_longer_than_javas_is_listed() -> None:
    quick, slow = ([dict.fromkeys(claims.WRITER_PERCENTILES, us)] * 2 for us in (2.0, 3.0))
    runs = {
        "quire.document": {"writers": [quick[0], slow[0]], "foreign_cores": 0.0},
        "chronicle.writingDocument": {"writers": quick, "foreign_cores": 0.0},
    }
    rounds = [{"kept": True, "runs": runs}]
    scenario: Result = {"kind": "writers", "size": 1024, "rounds": rounds}

    listed = [*losses.losses({"claims": {"scenarios": [scenario]}})]

    assert len(listed) == len(claims.WRITER_PERCENTILES)
    assert all("1,024 B, writer 2 of two" in one for one in listed)


@pytest.mark.check
def test_acceptable_latencies_are_those_of_a_replica(tmp_path: Path) -> None:
    volume = replace(QUICK, replication=replace(QUICK.replication, seconds=0.005))
    every = [it for it in replicated.settings([tmp_path], volume) if it[0]["kind"] == "acceptable"]
    assert len(every) == len(ACCEPTABLE)
    what, scenario, setting = every[0]
    with setting() as measure:
        runs = {"replicated.latency": measure(Operation("replicated", "latency"))}
    found = {**what, **scenario.describe(), "rounds": [{"kept": True, "runs": runs}]}
    results: dict[str, Result] = {"replication": {"scenarios": [found]}}
    assert "below 30 us, 7 M a minute" in claim_rows.text(results)
    assert "million messages a minute" in replicated.text(results)
