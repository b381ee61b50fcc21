"""Replays and comparisons of Vanilla Chronicles and Quick-Queues."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from converted import Into, fill, messages
from queues import DAY_MS, START_MS

OLDER: tuple[Into, ...] = ("vanilla", "quick-queue")
DAYS = [[b"%d of day %d" % (number, day) for number in range(30)] for day in range(3)]


@pytest.fixture(params=OLDER)
def kind(request: pytest.FixtureRequest) -> Into:
    kind: Into = request.param
    return kind


@pytest.fixture
def source(tmp_path: Path, kind: Into) -> Path:
    fill(tmp_path / "source", kind, DAYS)
    return tmp_path / "source"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_a_replay_is_the_same_queue(source: Path, out: Path, kind: Into) -> None:
    done = quire.replay(source, out)
    assert messages(out) == messages(source)
    assert (done.messages, done.written, done.last) == (90, 90, messages(source)[-1][0])
    with quire.open(source) as one, quire.open(out) as other:
        names = {
            "vanilla": ("cycles", "cycle_format", "entries_per_cycle"),
            "quick-queue": ("page_bytes",),
        }
        for name in names[kind]:
            assert getattr(one, name) == getattr(other, name)


def test_a_replay_goes_on_where_another_one_ended(source: Path, out: Path) -> None:
    everything = messages(source)
    quire.replay(source, out, end=everything[40][0])
    done = quire.replay(source, out)
    assert (done.messages, done.written) == (90, 50)
    assert messages(out) == everything


def test_a_range_is_replayed(source: Path, out: Path, kind: Into) -> None:
    everything = messages(source)
    quire.replay(source, out, start=everything[10][0], end=everything[70][0])
    found = messages(out)
    assert [payload for _, payload in found] == [payload for _, payload in everything[10:70]]
    if kind == "vanilla":
        assert found[20:] == everything[30:70]


def test_a_queue_that_holds_something_else_is_refused(source: Path, out: Path) -> None:
    quire.replay(source, out)
    with quire.open(out) as queue:
        queue.appender().write_bytes(b"a stranger")
    with pytest.raises(quire.errors.ReplayError, match="more than the replay"):
        quire.replay(source, out)


def test_a_queue_of_another_format_is_refused(source: Path, out: Path) -> None:
    fill(out, "chronicle", DAYS)
    with pytest.raises(quire.errors.NotAQueueError, match="another format"):
        quire.replay(source, out)


def test_days_of_a_vanilla_chronicle_can_become_hours(tmp_path: Path, out: Path) -> None:
    fill(tmp_path / "source", "vanilla", DAYS)
    quire.replay(tmp_path / "source", out, roll_cycle="HOURS")
    with quire.open(out) as queue:
        assert queue.cycles == [24 * (START_MS // DAY_MS + day) for day in (0, 2, 4)]


def test_a_quick_queue_has_no_roll_cycle(tmp_path: Path, out: Path) -> None:
    fill(tmp_path / "source", "quick-queue", DAYS)
    with pytest.raises(ValueError, match="a Quick-Queue has no cycles"):
        quire.replay(tmp_path / "source", out, roll_cycle="HOURS")


def test_messages_that_hold_a_time_set_the_pace(tmp_path: Path, kind: Into) -> None:
    with quire.open(tmp_path / "timed") as queue, queue.appender() as appender:
        for second in (0, 5, 60):
            appender.write_map({"time": START_MS + 1000 * second})
    quire.convert(tmp_path / "timed", tmp_path / "older", into=kind)
    now, waits = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        now[0] += seconds
        waits.append(seconds)

    replayed = quire.replayed(
        tmp_path / "older", speed=10, time_field="time", now=lambda: now[0], sleep=sleep
    )
    assert [excerpt.to_dict()["time"] for excerpt in replayed][-1] == START_MS + 60_000
    assert waits == [0.5, 5.5]


def test_what_cannot_be_replayed_says_why(cli: Cli, tmp_path: Path) -> None:
    for name in OLDER:
        fill(tmp_path / name, name, DAYS)
        ran = cli("replay", tmp_path / name, "--speed", "1x")
        assert ran.code == 2
        assert "the first message has no history" in ran.err
    ran = cli("replay", tmp_path / "quick-queue", "--from", "2024-01-15")
    assert ran.code == 2
    assert "a Quick-Queue has no cycles, so no time is known" in ran.err


def test_the_verbs_show_them(cli: Cli, source: Path, out: Path) -> None:
    everything = messages(source)
    lines = cli.ok("replay", source, "--format", "text", "--to", everything[2][0]).lines
    assert lines == [f"{index:#x}: {payload.decode()}" for index, payload in everything[:2]]
    ran = cli.ok("replay", source, "--to-queue", out)
    assert ran.out == f"written=90 last={everything[-1][0]:#x}\n"
    assert cli.ok("diff", source, out, "--by", "index").lines[-1].startswith("alike=90 changed=0")
    with quire.open(out) as queue:
        queue.appender().write_bytes(b"more")
    ran = cli("diff", source, out, "--json")
    assert ran.code == 1
    difference, counts = [json.loads(line) for line in ran.lines]
    assert difference["kind"] == "right"
    assert counts == {"alike": 90, "changed": 0, "left": 0, "right": 1}


def test_queues_of_different_formats_are_compared(source: Path, out: Path) -> None:
    quire.convert(source, out, into="chronicle")
    comparison = quire.compare(source, out)
    assert list(comparison) == []
    assert comparison.alike == 90
