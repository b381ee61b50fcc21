"""`quire time-index`, and ranges of times within a cycle that has an index of append times."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run
from converted import fill as fill_older
from queues import DAY_MS, START_MS

TIMES = [10, 20, 20, 40, DAY_MS + 10, DAY_MS + 30]
POINTS = [0, 5, 10, 15, 20, 21, 41, DAY_MS + 5, DAY_MS + 30, DAY_MS + 31]
COLUMNS = ("messages", "indexed", "built")


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


def write(path: Path, *, time_index: bool) -> Path:
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, clock=clock, time_index=time_index) as queue,
        queue.appender() as appender,
    ):
        for ms in TIMES:
            clock.now_ms = START_MS + ms
            appender.write_map({"ms": ms, "at": START_MS + ms})
    return path


@pytest.fixture
def noted(path: Path) -> Path:
    return write(path, time_index=True)


@pytest.fixture
def plain(path: Path) -> Path:
    return write(path, time_index=False)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(milliseconds=ms)


def rows(cli: Cli, path: Path, *arguments: str) -> list[tuple[object, ...]]:
    found = cli.ok("time-index", path, "--format", "jsonl", *arguments).lines
    return [tuple(json.loads(line)[name] for name in COLUMNS) for line in found]


@pytest.mark.parametrize(
    ("verb", "more"), [("read", []), ("replay", []), ("tail", ["--no-follow"]), ("dump", [])]
)
def test_times_within_a_cycle_are_points_of_each_verb(
    cli: Cli, noted: Path, verb: str, more: list[str]
) -> None:
    for start in POINTS:
        for end in (it for it in POINTS if it >= start):
            bounds = ("--from", f"{START_MS + start}ms", "--to", f"{START_MS + end}ms")
            shown = [
                int(it)
                for it in re.findall(r"(?m)^ms: (\d+)$", cli.ok(verb, noted, *bounds, *more).out)
            ]
            assert shown == [ms for ms in TIMES if start <= ms < end], (start, end)


def test_times_within_a_cycle_are_points_of_the_library(noted: Path) -> None:
    for start, end in ((15, 40), (21, DAY_MS + 20), (41, DAY_MS + 31), (DAY_MS + 31, DAY_MS * 2)):
        wanted = [ms for ms in TIMES if start <= ms < end]
        found = [it.to_dict()["ms"] for it in quire.replayed(noted, start=at(start), end=at(end))]
        assert found == wanted
        with quire.open(noted, read_only=True) as queue:
            table = queue.to_arrow({"ms": "int64"}, start=at(start), end=at(end))
            assert table["ms"].to_pylist() == wanted


def test_a_cycle_without_an_index_needs_a_field(cli: Cli, plain: Path) -> None:
    bounds = ("--from", f"{START_MS + 15}ms", "--to", f"{START_MS + 40}ms")
    ran = cli("read", plain, *bounds)
    assert (ran.code, ran.out) == (2, "")
    assert "cannot seek inside a cycle without a time index" in ran.err
    assert "(--time-field NAME on the command line)" in ran.err
    assert "quire time-index QUEUE --time-field NAME" in ran.err
    by_field = cli.ok("read", plain, *bounds, "--time-field", "at").out
    cli.ok("time-index", plain, "--time-field", "at")
    assert cli.ok("read", plain, *bounds).out == by_field
    assert by_field.count("ms: 20") == 2


def test_a_time_in_a_cycle_without_messages_is_that_of_the_next(cli: Cli, plain: Path) -> None:
    shown = cli.ok(
        "read", plain, "--from", f"{START_MS - DAY_MS + 1}ms", "--to", "2024-02-01T10:30"
    )
    assert shown.out.count("ms: ") == len(TIMES)


def test_the_rows_say_how_much_is_indexed_and_built(cli: Cli, plain: Path) -> None:
    assert rows(cli, plain) == [(4, None, False), (2, None, False)]
    first, last = sorted(plain.glob("*.cq4"))
    assert rows(cli, first, "--time-field", "at") == [(4, 4, True)]
    assert rows(cli, plain) == [(4, 4, False), (2, None, False)]
    assert rows(cli, plain, "--time-field", "at") == [(4, 4, False), (2, 2, True)]
    clock = quire.ManualClock(START_MS + DAY_MS + 50)
    with quire.open(plain, clock=clock) as queue:
        queue.appender().write_map({"ms": DAY_MS + 50})
    assert rows(cli, plain) == [(4, 4, False), (3, 2, False)]
    last.with_suffix(".times.quire").write_bytes(b"rubbish!" * 16)
    assert rows(cli, plain)[1] == (3, None, False)
    assert rows(cli, plain, "--time-field", "at")[1] == (3, 2, True)


def test_a_queue_of_an_older_format_has_no_such_index(cli: Cli, tmp_path: Path) -> None:
    fill_older(tmp_path / "old", "vanilla", [[b"one"]])
    for more in ([], ["--time-field", "at"]):
        ran = cli("time-index", tmp_path / "old", *more)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert "only a Chronicle Queue has an index of append times: format=vanilla" in ran.err


def test_as_a_process(plain: Path) -> None:
    done = run("time-index", plain, "--time-field", "at", "--format", "csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "cycle,file,messages,indexed,built"
