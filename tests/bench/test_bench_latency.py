"""Latencies in bench/: what a run keeps of each message, and which rounds decide a p99.9."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest
from bench import latency, live_tables, targets
from bench.harness import Failed, Result, Scenario
from bench.scenarios import Operation
from bench.task import Task

SIZE, RATE = 96, 50_000


def measured(system: str, folder: Path) -> Result:
    """Return a run of a few messages."""
    with latency.tailing_live(Scenario(folder, SIZE, 2000, 1000), RATE) as measure:
        return measure(Operation(system, "latency"))


@pytest.mark.check
@pytest.mark.parametrize("system", ["quire", "ring"])
def test_a_run_says_how_long_its_threads_waited_for_a_cpu(system: str, tmp_path: Path) -> None:
    found = measured(system, tmp_path)

    assert found["run_delay"].keys() == {"reader", "writer"}
    assert all(share >= 0 for share in found["run_delay"].values())
    assert 0 < found["begin"]["p50"] <= found["begin"]["p99.9"]


@pytest.mark.check
def test_a_ring_that_is_full_waits_for_its_reader(tmp_path: Path) -> None:
    """Overtaken, the reader would wait for ever for what is no longer there."""
    scenario = Scenario(tmp_path, 40, 300_000, 0)
    with latency.tailing_live(scenario, rate=1_000_000_000) as measure:
        assert measure(Operation("ring", "latency"))["rate"] > 0


@pytest.mark.java
@pytest.mark.check
def test_java_says_how_long_its_threads_waited_for_a_cpu(tmp_path: Path) -> None:
    assert measured("chronicle", tmp_path)["run_delay"].keys() == {"reader", "writer"}


def _task(folder: Path) -> Task:
    return Task("quire", "latency", str(folder), SIZE, 3, 1, out=str(folder / "records"))


def _write(task: Task, had: list[int], numbers: list[int] | None = None) -> None:
    """Write what both processes keep: a message each 1,000 ns, whose append took 100."""
    begins = [number * 1000 for number in range(len(had))]
    appends = [value for begin in begins for value in (begin, 100)]
    rows = zip(numbers or range(len(had)), begins, had, strict=True)
    Path(f"{task.out}-appends").write_bytes(array("q", appends).tobytes())
    Path(task.out).write_bytes(array("q", [value for row in rows for value in row]).tobytes())


def test_a_latency_counts_from_the_append_and_leaves_the_warm_up_out(tmp_path: Path) -> None:
    task = _task(tmp_path)
    _write(task, [99_000_000, 1300, 2400, 33_500])
    Path(f"{task.out}-delay").write_text("20", "ascii")

    found = latency.evaluate(task)

    assert (found["begin"]["min"], found["begin"]["p50"], found["begin"]["max"]) == (0.3, 0.4, 30.5)
    assert (found["below"]["30"], found["below"]["40"]) == (2 / 3, 1)
    assert found["append"]["p50"] == 0.1
    assert found["rate"] == 1e6
    assert found["run_delay"] == {"reader": 0.01}


def test_a_message_that_came_before_it_was_sent_or_not_at_all_is_refused(tmp_path: Path) -> None:
    task = _task(tmp_path)
    _write(task, [1, 1300, 1999, 3500])
    with pytest.raises(Failed, match="before it was sent"):
        latency.evaluate(task)
    _write(task, [1, 1300, 2400, 3500], numbers=[0, 1, 3, 3])
    with pytest.raises(Failed, match="other messages"):
        latency.evaluate(task)


def test_a_window_shorter_than_its_length_is_taken_as_one() -> None:
    assert latency.of_windows([1, 9, 2, 8, 7], 2)["max"] == 8.5
    assert latency.of_windows([1, 9], 3)["max"] == 9


def _run(p999: float, waited: float, **more: object) -> dict[str, Any]:
    shares = {"p50": 1.0, "p90": 1.0, "p98": 1.0, "p99": 1.0, "p99.9": p999}
    return {
        **dict.fromkeys(("begin", "due", "windows", "append"), shares),
        "below": {"40": 0.999},
        "rate": RATE,
        "run_delay": {"reader": waited, "writer": 0.0},
        "foreign_cores": 0.0,
        **more,
    }


def _scenario(*rounds: tuple[dict[str, Any], dict[str, Any]]) -> Result:
    runs = [{"quire.latency": ours, "chronicle.latency": java} for ours, java in rounds]
    kept = [{"kept": True, "runs": one} for one in runs]
    return {"file_system": "ext4", "size": SIZE, "rate": RATE, "rounds": kept}


def test_rounds_with_preemption_count_in_one_of_two_rows() -> None:
    java = _run(50, 0)
    results: dict[str, Result] = {
        "latency": {"scenarios": [_scenario((_run(900, 0.01), java), (_run(20, 0.0005), java))]}
    }

    p999 = {one.what: one for one in targets.verdicts(results) if "p99.9" in one.what}

    raw, quiet = (p999[f"latency p99.9{how}, 50,000/s"] for how in ("", " without preemption"))
    assert (raw.is_met, quiet.is_met) == (False, True)
    assert quiet.reached == "20.00 us (20.00 - 20.00)"
    _, shown = live_tables.latencies(results).split(live_tables.TAILS)
    [row] = [line for line in shown.splitlines() if "Quire" in line]
    assert "| 1 of 2 " in row
    assert "99.900%" in row


def test_rounds_of_a_system_that_does_not_say_how_long_it_waited_are_none_without() -> None:
    silent = _run(20, 0, run_delay={})
    results: dict[str, Result] = {"latency": {"scenarios": [_scenario((silent, _run(50, 0)))]}}
    assert not [one for one in targets.verdicts(results) if "without" in one.what]
    assert "0 of 1" in live_tables.latencies(results)
