"""The verb `quire prune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS, payloads, snapshot


@pytest.fixture
def orders(path: Path) -> Path:
    """Four days of one message."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock, block_bytes=2**16) as queue,
        queue.appender() as appender,
    ):
        for day in range(4):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)
    return path


def days_in(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue:
        return payloads(queue)


def test_a_dry_run_shows_what_a_run_does(cli: Cli, orders: Path) -> None:
    before = snapshot(orders)
    dry = cli.ok("prune", orders, "--max-cycles", "2", "--dry-run", "--format", "jsonl")
    assert snapshot(orders) == before
    done = cli.ok("prune", orders, "--max-cycles", "2", "--format", "jsonl")
    planned, rows = ([json.loads(line) for line in ran.lines] for ran in (dry, done))
    assert [row.pop("done") for row in planned] == ["to be deleted"] * 2 + ["kept"] * 2
    assert [row.pop("done") for row in rows] == ["deleted"] * 2 + ["kept"] * 2
    assert planned == rows
    assert rows[0]["reason"] == "beyond max_cycles=2"
    assert days_in(orders) == [b"2", b"3"]


def test_the_same_as_text(cli: Cli, orders: Path) -> None:
    lines = cli.ok("prune", orders, "--keep", "7d").lines
    assert lines[0].split() == ["cycle", "file", "on_disk", "done", "reason"]
    assert [line.split()[3] for line in lines[1:]] == ["deleted"] * 3 + ["kept"]
    assert "kept as the newest" in lines[4]


def test_a_run_that_fails_shows_what_is_gone(cli: Cli, orders: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "20240117F.cq4").write_bytes(b"something else")
    ran = cli("prune", orders, "--max-cycles", "1", "--move", tmp_path / "old", "--format", "jsonl")
    assert (ran.code, "another file has the name" in ran.err) == (1, True)
    rows = [json.loads(line) for line in ran.lines]
    assert [(Path(row["file"]).name, row["done"]) for row in rows] == [
        ("20240115F.cq4", "moved"),
        ("20240116F.cq4", "moved"),
    ]
    assert days_in(orders) == [b"2", b"3"]


def test_moving_archiving_and_stale_tailers(cli: Cli, orders: Path, tmp_path: Path) -> None:
    with quire.open(orders) as queue:
        queue.tailer("late").close()
    assert "tailer=late" in cli.ok("prune", orders, "--max-cycles", "3").out
    stale = ("--stale-after", "1d")
    ran = cli("prune", orders, "--max-cycles", "3", "--move", tmp_path / "old", *stale)
    assert (ran.code, "moved" in ran.out) == (0, True)
    assert ran.err == "quire: a stale reader loses messages: name=late\n"
    assert days_in(tmp_path / "old") == [b"0"]
    archive = ("--archive", tmp_path / "archive")
    cli.ok("tailers", orders, "--delete", "late")
    assert "archived" in cli.ok("prune", orders, "--max-cycles", "2", *archive).out
    assert cli.ok("archive", "--verify", tmp_path / "archive").out.startswith("verified=2")
    assert days_in(orders) == [b"2", b"3"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "give at least one of --keep, --max-bytes and --max-cycles"),
        (["--keep", "soon"], "invalid keep: expected a duration such as 7d"),
        (["--max-bytes", "x"], "invalid max_bytes: expected a size such as 10GB"),
        (["--max-cycles", "0"], "max-cycles"),
        (
            ["--keep", "1d", "--move", "a", "--archive", "b"],
            "give at most one of --move, --archive and --compress",
        ),
    ],
)
def test_wrong_use_is_refused(cli: Cli, orders: Path, options: list[str], text: str) -> None:
    ran = cli("prune", orders, *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert text in ran.err
    assert len(days_in(orders)) == 4


def test_what_is_no_queue_is_refused(cli: Cli, tmp_path: Path) -> None:
    ran = cli("prune", tmp_path / "nothing", "--keep", "1d")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
