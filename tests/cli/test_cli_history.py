"""`quire history`: percentiles of what the histories of messages say."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

import quire
from cli_runs import Cli
from queues import DAY_MS, START_MS
from quire.cli.verbs.history import percentile, steps_of


def write(path: Path, *timings: list[int], method: str = "buy") -> None:
    """Write calls with histories that say these times."""
    with quire.open(path) as queue, queue.appender() as appender:
        for it in timings:
            history = {"sources": [1, 5], "timings": it}
            appender.write_map({"history": history, method: "EURUSD"})


def rows(cli: Cli, *arguments: str | Path | int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cli.ok("history", *arguments, "--format", "json").out)
    return found


def test_the_steps_of_a_message_are_told_apart() -> None:
    history = quire.MessageHistory(sources=[(1, 0), (2, 0)], timings=[10, 25, 30, 100, 150])
    assert [*steps_of(history)] == [
        ("startTo1", 15),
        ("1", 5),
        ("1to2", 70),
        ("2", 50),
        ("endToEnd", 140),
    ]
    unwritten = quire.MessageHistory(sources=[(1, 0), (2, 0)], timings=[10, 25, 30, 100])
    assert [*steps_of(unwritten)] == [("startTo1", 15), ("1", 5), ("1to2", 70)]


def test_a_percentile_needs_enough_messages() -> None:
    assert percentile([7], 50) == 7
    assert percentile([*range(1, 101)], 50) == 50
    assert percentile([*range(1, 101)], 99) == 99
    assert percentile([*range(1, 100)], 99) is None
    assert percentile([*range(1, 1001)], 99.9) == 999


def test_a_row_for_each_source_and_step(cli: Cli, path: Path) -> None:
    write(path, *([0, 1_000, 1_000 + 1_000 * n] for n in range(1, 101)))
    assert [(it["source"], it["count"]) for it in rows(cli, path)] == [
        ("startTo1", 100),
        ("1", 100),
    ]
    (_, own) = rows(cli, path, "--unit", "ns")
    assert (own["50"], own["90"], own["99"], own["99.9"]) == (50_000, 90_000, 99_000, None)
    assert own["worst"] == 100_000
    assert rows(cli, path)[1]["worst"] == 100.0
    assert rows(cli, path, "--skip", 90)[0]["count"] == 10


def test_rows_have_the_order_of_the_way_of_messages(cli: Cli, path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for sources in ([20, 0, 3, 0], [20, 0, 100, 0, 3, 0]):
            timings = [*range(len(sources) + 1)]
            appender.write_map({"history": {"sources": sources, "timings": timings}, "a": 1})
    assert [it["source"] for it in rows(cli, path)] == [
        "startTo20", "20", "20to100", "100", "100to3", "20to3", "3", "endToEnd",
    ]  # fmt: skip


def test_rows_by_method_and_by_period(cli: Cli, path: Path) -> None:
    write(path, [0, 10, 20], [0, 10, 30])
    write(path, [0, 10, 3_000_000_020], method="sell")
    found = rows(cli, path, "--by-method", "--unit", "ns")
    assert [(it["source"], it["method"], it["count"]) for it in found] == [
        ("startTo1", "buy", 2),
        ("startTo1", "sell", 1),
        ("1", "buy", 2),
        ("1", "sell", 1),
    ]
    found = rows(cli, path, "--window", 2)
    assert [(it["window"], it["count"]) for it in found] == [(0, 2), (0, 2), (2, 1), (2, 1)]


def test_queues_of_a_directory_have_rows_of_their_own(cli: Cli, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / "all" / name, [0, 10, 20])
    with quire.open(tmp_path / "all/aa", format="vanilla") as older, older.appender() as appender:
        appender.write_bytes(b"without a history")
    assert [it["queue"] for it in rows(cli, tmp_path / "all")] == ["a", "a", "b", "b"]


def test_a_page_with_a_plot_is_written(cli: Cli, path: Path, tmp_path: Path) -> None:
    write(path, [0, 10, 20], [0, 10, 30])
    ran = cli.ok("history", path, "--plot", tmp_path / "page.html")
    assert ran.lines[0].split()[:2] == ["source", "count"]
    assert "<svg" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("form", ["vanilla", "quick-queue"])
def test_a_format_without_histories_is_refused(
    cli: Cli, tmp_path: Path, form: Literal["vanilla", "quick-queue"]
) -> None:
    with quire.open(tmp_path / "queue", format=form) as queue, queue.appender() as appender:
        appender.write_bytes(b"one")
    ran = cli("history", tmp_path / "queue")
    assert (ran.code, "no history" in ran.err, ran.err.count("\n")) == (1, True, 1)


def test_messages_without_histories_are_one_clear_line(
    cli: Cli, path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_text("none")
    ran = cli("history", path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "no message has a history" in ran.err


def test_histories_of_one_timing_are_told_from_none(cli: Cli, path: Path) -> None:
    class Market:
        def price(self, symbol: str) -> None: ...

    with quire.open(path, source_id=1) as queue:
        writer = queue.appender().method_writer(Market)
        for symbol in ("EURUSD", "GBPUSD"):
            writer.price(symbol)
    ran = cli("history", path)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "the histories have one timing each" in ran.err
    assert "messages=2" in ran.err


@pytest.mark.parametrize("past", [0, 100])
def test_a_start_that_no_message_has_is_refused(cli: Cli, path: Path, past: int) -> None:
    write(path, [0, 1_000, 2_000])
    with quire.open(path, read_only=True) as queue:
        start = queue.last_index + past if past and queue.last_index else 0
    ran = cli("history", path, "--from", f"{start:#x}")
    assert ran.code == 1
    assert f"no message has this index: start={start:#x}" in ran.err


def test_a_range_of_times_has_its_messages_alone(
    cli: Cli, path: Path, clock: quire.ManualClock
) -> None:
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        for _ in range(3):
            history = {"sources": [1, 5], "timings": [0, 1_000, 2_000]}
            appender.write_map({"history": history, "buy": "EURUSD"})
            clock.advance(DAY_MS)
    start = datetime.fromtimestamp(START_MS / 1000, UTC).date()
    days = [(start + timedelta(days=number)).isoformat() for number in range(4)]
    assert rows(cli, path, "--from", days[1])[0]["count"] == 2
    assert rows(cli, path, "--from", days[1], "--to", days[2])[0]["count"] == 1
    assert "no message has a history" in cli("history", path, "--from", days[3]).err
