"""Who has files open, which of them may go, the listing, and the arithmetic of roll cycles."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

import quire
from cli_runs import Cli, run
from queues import DAY_MS, START_MS

HOLDER = """\
import sys, quire
with quire.open(sys.argv[1], read_only=True) as queue, queue.tailer() as tailer:
    tailer.read_bytes()
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def files(path: Path) -> list[Path]:
    """Four days of one message each; the first three are finished."""
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="FAST_DAILY", clock=clock) as queue,
        queue.appender() as appender,
    ):
        for day in range(4):
            appender.write_map({"day": day})
            clock.advance(DAY_MS)
        return [Path(queue.file_for_cycle(cycle)) for cycle in queue.cycles]


@contextmanager
def reading(path: Path) -> Generator[int]:
    """Another process that has the first file of a queue open; its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process.pid


def test_a_file_says_who_has_it_open(path: Path, files: list[Path]) -> None:
    assert quire.file_state(files[0])[:2] == ("closed", ())
    with reading(path) as pid:
        state = quire.file_state(files[0])
        assert (state.state, [user.pid for user in state.users]) == ("open", [pid])
        assert str(path) in state.users[0].command
        assert quire.file_state(files[3]).state == "closed"
    assert quire.file_state(files[0]).state == "closed"
    assert quire.file_state(path / "nothing") == ("missing", (), 0)


def test_a_file_that_is_only_mapped_is_open(files: list[Path]) -> None:
    with files[0].open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ)
    assert [user.pid for user in quire.file_state(files[0]).users] == [os.getpid()]
    mapped.close()
    assert quire.file_state(files[0]).state == "closed"


def test_the_oldest_files_that_nobody_needs(cli: Cli, path: Path, files: list[Path]) -> None:
    assert quire.removable(path) == files[:3]
    with reading(path):
        assert quire.removable(path) == []
    with quire.open(path) as queue, queue.tailer("late") as tailer:
        for _ in range(3):
            tailer.read_bytes()
    assert quire.removable(path) == files[:2]
    rows = [json.loads(line) for line in cli.ok("removable", path, "--format", "jsonl").lines]
    assert [row["file"] for row in rows] == [str(it) for it in files[:2]]
    assert run("removable", path).out.count(".cq4") == 2


def test_an_unread_tailer_and_an_unfinished_file_keep_all(path: Path, files: list[Path]) -> None:
    with files[0].open("r+b") as file:
        data = file.read()
        end = data.rindex(b"\0\0\0\xc0")
        file.seek(end)
        file.write(b"\0\0\0\0")
    assert quire.removable(path) == []
    with files[0].open("r+b") as file:
        file.seek(end)
        file.write(b"\0\0\0\xc0")
    assert quire.removable(path) == files[:3]
    with quire.open(path) as queue:
        queue.tailer("never").close()
    assert quire.removable(path) == []


def test_stat_says_who_has_the_files_open(cli: Cli, path: Path, files: list[Path]) -> None:
    assert "open in      no process\n" in run("stat", path).out
    with reading(path) as pid:
        facts = json.loads(cli.ok("stat", path, "--json").out)
        assert [(it["pid"], str(path) in it["command"]) for it in facts["processes"]] == [
            (pid, True)
        ]
        assert facts["processes"][0]["files"] >= 1
        assert f"open in      process {pid} (" in cli.ok("stat", path).out
    assert len(files) == 4


def test_the_listing_is_refreshed(cli: Cli, path: Path, files: list[Path]) -> None:
    files[0].unlink()
    ran = cli.ok("refresh", path)
    assert ran.out == f"files=3 first={files[1].name} last={files[3].name}\n"
    with quire.open(path, read_only=True) as queue:
        assert queue.table_value("listing.lowestCycle") == queue.cycles[0]
    assert run("refresh", path).out == ran.out


@pytest.mark.parametrize("style", ["vanilla", "quick-queue"])
def test_other_formats_are_refused(
    cli: Cli, tmp_path: Path, style: Literal["vanilla", "quick-queue"]
) -> None:
    with quire.open(tmp_path / "q", format=style) as queue, queue.appender() as appender:
        appender.write_bytes(b"x")
    for options in (["removable"], ["refresh"], ["roll-cycles", "--queue"]):
        ran = cli(*options, tmp_path / "q")
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("verb", [["removable"], ["refresh"], ["roll-cycles", "--queue"]])
def test_what_is_no_queue_is_refused(cli: Cli, tmp_path: Path, verb: list[str]) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        ran = cli(*verb, place)
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert not [*tmp_path.iterdir()]


def test_the_table_of_roll_cycles(cli: Cli) -> None:
    rows = [json.loads(it) for it in cli.ok("roll-cycles", "--format", "jsonl").lines]
    assert [row["name"] for row in rows] == [it.name for it in quire.RollCycle.all()]
    (daily,) = [row for row in rows if row["name"] == "FAST_DAILY"]
    assert (daily["max_messages"], daily["hexadecimal"]) == (4_294_967_295, "0xffffffff")
    assert daily["per_second"] == 4_294_967_295 // 86_400
    assert run("roll-cycles", "FAST_DAILY").lines[1].split()[0] == "FAST_DAILY"


@pytest.mark.parametrize(
    "options",
    [
        ("--index", "0x4d1900000005"),
        ("--cycle", "19737", "--sequence", "5"),
        ("--time", "2024-01-15T10:30:00Z"),
        ("--file", "some/where/20240115F.cq4"),
    ],
)
def test_all_points_of_a_cycle_agree(cli: Cli, options: tuple[str, ...]) -> None:
    (row,) = map(
        json.loads, cli.ok("roll-cycles", "FAST_DAILY", *options, "--format", "jsonl").lines
    )
    sequence = 5 if options[0] in {"--index", "--cycle"} else 0
    assert row == {
        "roll_cycle": "FAST_DAILY",
        "cycle": 19737,
        "sequence": sequence,
        "index": f"{0x4D1900000000 + sequence:#x}",
        "from": "2024-01-15T00:00:00Z",
        "to": "2024-01-16T00:00:00Z",
        "file": "20240115F.cq4",
    }


def test_a_queue_gives_its_roll_cycle_and_epoch(cli: Cli, path: Path) -> None:
    hour_ms = 3_600_000
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="HOURLY", epoch_ms=hour_ms // 2, clock=clock) as queue:
        index = queue.appender().write_bytes(b"x")
        name = Path(queue.current_file).name
    options = ("--queue", path, "--index", index, "--format", "jsonl")
    row = json.loads(cli.ok("roll-cycles", *options).out)
    assert (row["file"], row["from"]) == (name, "2024-01-15T10:30:00Z")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["NOTHING"], "NOTHING"),
        (["--index", "1"], "give the NAME of a roll cycle"),
        (["FAST_DAILY", "--index", "1", "--cycle", "1"], "give one of"),
        (["FAST_DAILY", "--sequence", "1"], "--sequence goes with --cycle"),
        (["FAST_DAILY", "--time", "5"], "--time takes a time"),
        (["FAST_DAILY", "--file", "x.cq4"], "x.cq4"),
        (["FAST_DAILY", "--cycle", "x"], "--cycle"),
        (["FAST_DAILY", "--queue", "x"], "--queue does not go with"),
    ],
)
def test_bad_points_are_refused(cli: Cli, options: list[str], text: str) -> None:
    ran = cli("roll-cycles", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert text in ran.err


def test_a_cycle_that_no_queue_has_is_refused(cli: Cli) -> None:
    ran = cli("roll-cycles", "FAST_DAILY", "--cycle", "-1")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
