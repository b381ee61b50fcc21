"""What is set from outside, and queues that are made of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS


def indexes(path: Path) -> list[int]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [excerpt.index for excerpt in tailer]


def messages_of_three_weeks(path: Path, **options: Any) -> None:  # noqa: ANN401
    clock = quire.ManualClock(START_MS)
    open_any: Any = quire.open
    with open_any(path, clock=clock, **options) as queue, queue.appender() as appender:
        for number in range(3):
            appender.write_map({"n": number, "at": clock.now_ms})
            clock.now_ms += 7 * DAY_MS


def test_what_is_made_of_a_queue_takes_no_setting_for_appends_of_now(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    messages_of_three_weeks(path)
    monkeypatch.setenv("QUIRE_TIME_INDEX", "1")
    monkeypatch.setenv("QUIRE_MAX_CLOCK_AHEAD_S", "60")
    monkeypatch.setenv("QUIRE_TIME_ZONE", "Asia/Tokyo")
    outs = [tmp_path / name for name in ("merged", "converted", "replayed", "split/all")]

    cli.ok("merge", path, outs[0], "--by", "n")
    cli.ok("convert", path, outs[1], "--into", "chronicle")
    quire.replay(path, out=outs[2])
    quire.maintenance.split_queue(path, outs[3].parent, lambda _: "all")

    for out in outs:
        assert indexes(out) == indexes(path)
        ran = cli("read", out, "--from", "2024-01-15T00:00:00.001")
        assert (ran.code, "without a time index" in ran.err) == (2, True)


def test_what_is_made_of_a_queue_begins_its_cycles_where_that_does(
    path: Path, tmp_path: Path, cli: Cli
) -> None:
    messages_of_three_weeks(path, time_zone="Asia/Tokyo")

    cli.ok("merge", path, tmp_path / "merged", "--by", "n")
    cli.ok("split", path, tmp_path / "split", "--by", "cycle")

    assert indexes(tmp_path / "merged") == indexes(path)
    parts = [file.stem for file in (tmp_path / "split").glob("*/*.cq4")]
    assert sorted(parts) == sorted(it.name for it in (tmp_path / "split").iterdir())


def test_what_is_made_of_a_queue_has_what_no_replica_acknowledged(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    messages_of_three_weeks(path)
    outs = [tmp_path / name for name in ("merged", "converted", "replayed", "split/all")]
    quire.replay(path, out=outs[2])
    monkeypatch.setenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED", "1")

    cli.ok("merge", path, outs[0], "--by", "n")
    cli.ok("convert", path, outs[1], "--into", "chronicle")
    cli.ok("split", path, outs[3].parent, "--where", "n >= 0")
    assert cli("diff", path, tmp_path / "merged").code == 0
    assert cli("diff", path, tmp_path / "split/matching").code == 0
    pruned = cli.ok("prune", path, "--max-cycles", "1", "--archive", tmp_path / "archive")

    assert pruned.out.count("archived") == 2
    monkeypatch.delenv("QUIRE_READ_AFTER_REPLICA_ACKNOWLEDGED")
    assert len(indexes(outs[0])) == len(indexes(outs[1])) == 3
    assert indexes(tmp_path / "split/matching") == indexes(outs[0])
