"""Retention of Vanilla Chronicles, and what consumer groups keep, in each format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest

import quire
from any_format import open_as
from queues import DAY_MS, START_MS

DAYS = 5
LATER = quire.ManualClock(START_MS + (DAYS - 1) * DAY_MS)


def write_days(path: Path, format_: Literal["chronicle", "vanilla"], **options: Any) -> None:  # noqa: ANN401
    clock = quire.ManualClock(START_MS)
    if format_ == "chronicle":
        options = {"roll_cycle": "FAST_DAILY", "block_bytes": 2**16}
    with (
        open_as(format_, path, clock=clock, **options) as queue,
        queue.appender() as appender,
    ):
        for day in range(DAYS):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)


def days_in(path: Path) -> list[int]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [int(it.data) for it in tailer]


SMALL = {"index_block_bytes": 2**16, "data_block_bytes": 2**16}


@pytest.mark.parametrize("cycle_format", ["yyyyMMdd", "yyyy/MM/dd"])
def test_directories_go_by_the_same_limits(path: Path, cycle_format: str) -> None:
    write_days(path, "vanilla", cycle_format=cycle_format, cycle_length_ms=DAY_MS, **SMALL)
    dry = quire.prune(path, keep="2d", clock=LATER, dry_run=True)
    assert days_in(path) == [0, 1, 2, 3, 4]
    report = quire.prune(path, keep="2d", clock=LATER)
    assert (report.removed, report.kept) == (dry.removed, dry.kept)
    assert days_in(path) == [2, 3, 4]
    assert all(it.bytes > 0 for it in report.removed)
    assert not [it for it in path.rglob("*") if it.name.endswith(".tmp")]
    quire.prune(path, max_cycles=1, clock=LATER)
    assert days_in(path) == [4]


def test_hidden_files_of_others_stay(path: Path) -> None:
    write_days(path, "vanilla", cycle_format="yyyyMMdd", cycle_length_ms=DAY_MS, **SMALL)
    (path / ".mine.tmp").write_bytes(b"mine")
    left = path / f".20240101.{'0' * 16}.tmp"
    left.mkdir()
    quire.prune(path, max_cycles=1, clock=LATER)
    assert (path / ".mine.tmp").read_bytes() == b"mine"
    assert not left.exists()


def test_a_cycle_that_slow_writers_may_be_in_stays(path: Path) -> None:
    write_days(path, "vanilla", cycle_format="yyyyMMdd", cycle_length_ms=DAY_MS, **SMALL)
    midnight = START_MS // DAY_MS * DAY_MS + (DAYS - 1) * DAY_MS
    report = quire.prune(path, max_cycles=1, clock=quire.ManualClock(midnight + 59_000))
    assert (len(report.removed), report.kept[0].reason) == (
        DAYS - 2,
        "kept as slow writers could still append to it",
    )
    assert len(quire.prune(path, max_cycles=1, clock=LATER).removed) == 1


def test_a_named_tailer_of_a_vanilla_chronicle_keeps_its_cycle(path: Path) -> None:
    write_days(path, "vanilla", cycle_format="yyyyMMdd", cycle_length_ms=DAY_MS, **SMALL)
    name = "Risk \u00e4/1"
    with quire.open(path, format="vanilla") as queue:
        queue.tailer(name).close()
    assert quire.prune(path, max_cycles=1, clock=LATER).removed == []
    with quire.open(path, format="vanilla") as queue, queue.tailer(name) as tailer:
        for _ in range(3):
            tailer.read_bytes()
    report = quire.prune(path, max_cycles=1, clock=LATER)
    assert f"tailer={name}" in report.kept[0].reason
    assert days_in(path)[0] in {1, 2}  # the one before is needed while slow writers may append
    with (
        quire.open(path, format="vanilla") as queue,
        queue.tailer(name, on_missing="raise") as tailer,
    ):
        assert tailer.read_bytes() == b"3"


def test_a_vanilla_cycle_that_a_process_has_open_stays(path: Path) -> None:
    write_days(path, "vanilla", cycle_format="yyyyMMdd", cycle_length_ms=DAY_MS, **SMALL)
    with quire.open(path, format="vanilla", read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.read_bytes() == b"0"
        report = quire.prune(path, max_cycles=1, clock=LATER)
        assert report.kept[0].reason == f"kept as a process has it open: pid={os.getpid()}"


def test_vanilla_cycles_are_archived_and_not_moved(path: Path, tmp_path: Path) -> None:
    import quire.archive

    write_days(path, "vanilla", cycle_format="yyyyMMdd", cycle_length_ms=DAY_MS, **SMALL)
    with pytest.raises(quire.errors.UnsupportedError, match="cannot be moved"):
        quire.prune(path, max_cycles=1, action="move", dest=tmp_path / "old", clock=LATER)
    dest = tmp_path / "archive"
    report = quire.prune(path, max_cycles=2, action="archive", dest=dest, clock=LATER)
    assert len(report.removed) == DAYS - 2
    assert days_in(path) == [3, 4]
    assert quire.archive.verify(dest).messages >= DAYS - 2


def test_a_consumer_group_keeps_what_it_has_not_acknowledged(path: Path) -> None:
    write_days(path, "chronicle")
    with quire.open(path) as queue, queue.group("billing").consumer("c1") as consumer:
        batch = consumer.read_many(3)
        consumer.ack_many(batch[:2])
    report = quire.prune(path, max_cycles=1, clock=LATER)
    assert "group=billing" in report.kept[0].reason
    assert days_in(path) == [2, 3, 4]
    stale = quire.prune(path, max_cycles=1, clock=LATER, stale_after="1d")
    assert stale.overtaken == ["billing"]
    assert days_in(path) == [4]
    with quire.open(path) as queue, queue.group("billing").consumer("c2") as consumer:
        assert [int(it.data) for it in consumer] == [4]
