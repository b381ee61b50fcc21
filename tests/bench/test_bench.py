"""The harness in bench/: what it refuses, and what it makes of results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench import harness, parts, quire_queues, summary, tables, targets, tools
from bench import messages as objects
from bench.adapters import quire_contending, quire_messages
from bench.harness import Failed
from bench.scenarios import MESSAGES, QUICK, TOOLS, Amount, Operation
from bench.task import Task, checksum, messages

from parameters import some
from quire import _native


@pytest.mark.parametrize("part", ["idle", "sealed"])
def test_a_debug_build_is_refused(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "BUILD_PROFILE", "debug")
    with pytest.raises(Failed, match="release build is needed"):
        parts.run(part, QUICK, quick=True, say=lambda _: None)


@pytest.mark.parametrize("part", ["idle", "sealed", "serve", "replication", "claims"])
def test_a_part_says_which_build_was_measured_and_is_kept_for_that_alone(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = harness.versions

    def no_results(*_: object) -> Iterator[Any]:
        return iter(())

    def quire_alone(_: object) -> Any:  # noqa: ANN401
        return known(["quire"])

    monkeypatch.setattr(parts, "_PARTS", {part: no_results})
    monkeypatch.setattr(harness, "versions", quire_alone)

    result = json.loads(json.dumps(parts.run(part, QUICK, quick=True, say=lambda _: None)))

    one = {"kept": True, "runs": {"quire": {"foreign_cores": 0.0, "load": 0.0}}}
    shown = tables.surroundings({part: result | {"scenarios": [{"rounds": [one]}]}})
    assert result["binaries"]["quire"] in shown
    assert result["binaries"].keys() == {"quire"}
    assert parts.is_of_now(result, QUICK)
    assert not parts.is_of_now(result | {"binaries": {"quire": "another"}}, QUICK)


@pytest.mark.parametrize("wrong", [{"count": 999}, {"checksum": 1}])
def test_a_run_that_read_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, int]
) -> None:
    task = Task("quire", "payloads", "/nowhere", 40, 1000, 0)
    right = {"count": 1000, "checksum": checksum(1000), "nanos": 1000, "cpu_nanos": 1000}
    said = right

    def run_to_end(_: Task) -> str:
        return json.dumps(said)

    monkeypatch.setattr(harness, "run_to_end", run_to_end)
    assert harness.measure_rate(task)["nanos"] == 1
    said = right | wrong
    with pytest.raises(Failed, match="other messages"):
        harness.measure_rate(task)


def test_a_queue_with_another_byte_is_refused(tmp_path: Path) -> None:
    task = Task("quire", "write_bytes", str(tmp_path), 40, 2000, 1000)
    harness.run_to_end(task)
    quire_queues.verify(task.queue, 40, task.total)
    (file,) = task.queue.glob("*.cq4")
    content = bytearray(file.read_bytes())
    content[content.rindex(bytes(range(8, 40)))] ^= 1
    file.write_bytes(content)
    with pytest.raises(AssertionError, match="other messages"):
        quire_queues.verify(task.queue, 40, task.total)


def test_a_message_of_a_contending_writer_that_is_missing_is_noticed(tmp_path: Path) -> None:
    ours, theirs = (messages(96, writer) for writer in (0, 1))
    with quire_queues.open_queue(tmp_path) as queue, queue.appender() as appender:
        appender.write_many([ours[0], theirs[0], theirs[1], ours[1]])
        quire_contending.verify(tmp_path, 96, [2, 2])
        with pytest.raises(AssertionError, match="expected="):
            quire_contending.verify(tmp_path, 96, [2, 3])
        appender.write_bytes(ours[3])
        with pytest.raises(AssertionError, match="other messages: writer=0"):
            quire_contending.verify(tmp_path, 96, [3, 2])


@pytest.mark.parametrize("kind", some(MESSAGES, keep=[0]))
def test_every_operation_on_messages_does_its_work(kind: str, tmp_path: Path) -> None:
    dumped = dict.fromkeys(QUICK.dumped, (2000, Amount(2, 1)))
    volume = replace(QUICK, messages=Amount(10_000, 10_000), dumped=dumped)
    for what, _, setting in objects.settings(tmp_path, volume):
        if what["kind"] != kind:
            continue
        with setting() as measure:
            for one in MESSAGES[kind]:
                if one.system == "quire":
                    assert measure(one)["nanos"] > 0


def test_calls_with_another_byte_are_refused(tmp_path: Path) -> None:
    expected = quire_messages.calls(tmp_path / "expected")
    assert max(map(len, expected)) == objects.SIZE
    other = [*expected]
    other[500] = other[500].replace(b"side\xa1\0", b"side\xa1\1")
    assert other != expected
    for found, rounds in ((expected, 2), (expected, 1), (other, 2)):
        path = tmp_path / f"{rounds}{found is other}"
        quire_messages.fill(path, found, 2)
        if (found, rounds) == (expected, 2):
            quire_messages.verify(path, expected, rounds)
            continue
        with pytest.raises(AssertionError, match="messages: index="):
            quire_messages.verify(path, expected, rounds)


def test_a_dump_that_lacks_messages_is_refused(tmp_path: Path) -> None:
    for holds, make in quire_messages.DUMPED.items():
        path = tmp_path / holds
        quire_messages.fill(path, make(tmp_path / f"{holds}-made", 96), 1)
        assert quire_messages.dumped_bytes(path, 1000) > 96_000
        with pytest.raises(AssertionError, match="found=1000 count=2000"):
            quire_messages.dumped_bytes(path, 2000)


@pytest.mark.slow
def test_every_command_does_its_work(tmp_path: Path) -> None:
    for what, _, setting in tools.settings(tmp_path, replace(QUICK, tools=2000)):
        with setting() as measure:
            for one in TOOLS[what["kind"]]:
                if one.system == "quire":
                    assert measure(one)["nanos"] > 0


def test_a_command_that_prints_too_little_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(*_: object) -> list[str]:
        return [sys.executable, "-c", "print('symbol: EURUSD')"]

    monkeypatch.setattr(tools, "_line", line)
    every = tools.settings(tmp_path, replace(QUICK, tools=1000))
    _, _, setting = next(every)
    with setting() as measure, pytest.raises(Failed, match="found=1 expected=1000"):
        measure(TOOLS["read"][0])


def test_the_targets_of_commands_are_held() -> None:
    runs = [{"quire.read": 1, "chronicle.ChronicleReaderMain": 4}]
    (read,) = targets.verdicts({"tools": {"scenarios": [_scenario(runs, kind="read")]}})
    assert (read.is_met, read.wanted) == (False, "5.0 x")
    (stat,) = targets.verdicts({"tools": {"scenarios": [_scenario([{"quire.stat": 2e8}])]}})
    assert stat.is_met


def _scenario(runs: Sequence[Mapping[str, float]], **described: object) -> dict[str, Any]:
    rounds = [
        {
            "kept": True,
            "runs": {
                key: {"nanos": nanos, "cpu_nanos": nanos, "foreign_cores": 0.0}
                for key, nanos in run.items()
            },
        }
        for run in runs
    ]
    return {"file_system": "tmpfs", "size": 40, "rounds": rounds} | described


def test_a_ratio_is_taken_within_each_round() -> None:
    one = _scenario([{"a": 10, "b": 20}, {"a": 100, "b": 100}, {"a": 10, "b": 30}])
    found = summary.ratio(one, "a", "b")
    assert (found.median, found.least, found.greatest) == (2, 1, 3)


def test_a_target_is_reached_or_missed_by_the_median() -> None:
    for java, met in ((14, True), (12, False)):
        runs = [{"quire.write_bytes": 10, "chronicle.writingDocument": java}] * 3
        one = _scenario(runs)
        (verdict,) = targets.verdicts({"append": {"scenarios": [one]}})
        assert (verdict.wanted, verdict.is_met) == ("1.3 x", met)


def test_columns_are_held_against_the_method_reader_and_a_rate() -> None:
    runs = [{"quire.columns": 190, "quire.method_read": 500, "chronicle.method-read": 390}]
    one = _scenario(runs, size=objects.SIZE, kind="read")
    found = targets.verdicts({"messages": {"scenarios": [one]}})
    assert [(it.what, it.wanted, it.is_met) for it in found] == [
        ("method_read : method-read", "0.8 x", False),
        ("columns : method-read", "3.0 x", False),
        ("columns, 66 B", "5 M/s", True),
    ]


def test_what_grows_misses_its_target() -> None:
    for large, met in ((14, True), (16, False)):
        runs = [{"quire.open@10": 10, "quire.open@10000": large}]
        one = _scenario(runs, amounts=(10, 10000), names=("open",), kind="cycles")
        (verdict,) = targets.verdicts({"growth": {"scenarios": [one]}})
        assert verdict.is_met is met


def test_rounds_are_in_random_order_and_end_with_the_budget() -> None:
    order: list[str] = []

    def measure(one: Operation) -> dict[str, float]:
        order.append(one.name)
        return {"foreign_cores": 0.0}

    operations = [Operation("quire", name) for name in "abcdefgh"]
    volume = replace(QUICK, pairs=5, budget_s=60)
    assert len(harness.rounds(lambda: nullcontext(measure), operations, volume)) == 5
    assert sorted(order) == sorted("abcdefgh" * 5)
    assert len({"".join(order[at : at + 8]) for at in range(0, 40, 8)}) > 1
    hurried = replace(volume, budget_s=-1)
    assert len(harness.rounds(lambda: nullcontext(measure), operations, hurried)) == 2
