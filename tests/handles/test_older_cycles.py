"""The files of older cycles, at the first append of an appender: each gets its end-of-file marker,
and nobody waits for the look at those that have it.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

import quire
from damages import DAYS, PER_DAY, age, erase_marker, fill
from pause_points import NotStoppedError, Party
from queues import DAY_MS, START_MS, poke, problems_of
from reference import Store

KEY = "normalisedEOFsTo"
TODAY_MS = START_MS + DAYS * DAY_MS
APPENDING = f"""
path, = sys.argv[1:]
queue = quire.open(path, clock=quire.ManualClock({TODAY_MS}))
appender = queue.appender()
arm()
say(appender.write_text("first"))
say(appender.write_text("second"))
queue.close()
"""
POINTS = ("lock.take.cas", "eof.header.cas", "eof.mark.store", "eof.normalised.cas")
HELD = ("eof.header", "eof.mark")
"""The write lock is held there."""


def opened(path: Path, now_ms: int = TODAY_MS) -> quire.JournalQueue:
    return quire.open(path, clock=quire.ManualClock(now_ms))


def known_to(path: Path) -> int | None:
    """The last cycle of those that are known to have their markers."""
    table = Store((path / "metadata.cq4t").read_bytes())
    return table.entries()[KEY][1] if KEY in table.entries() else None


def all_ended(files: list[Path]) -> bool:
    return all(Store(file.read_bytes()).has_eof for file in files)


@pytest.fixture
def files(path: Path) -> list[Path]:
    """A queue of some days, of which the table knows that the first is ended."""
    files = fill(path)
    with opened(path) as queue, queue.appender() as appender:
        appender.normalise_eofs()
        poke(path, KEY, queue.cycles[0])
    erase_marker(files[-1])
    return files


def test_the_first_append_ends_every_older_file(
    path: Path, files: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "quire")
    erase_marker(files[1])

    with opened(path) as queue, queue.appender() as appender:
        appender.write_text("today")
        cycles = queue.cycles
        assert queue.entry_count == DAYS * PER_DAY + 1

    assert all_ended(files)
    assert known_to(path) in cycles[-3:-1]
    assert caplog.messages == [f"an older cycle had no end-of-file marker: cycle={cycles[1]}"]
    assert not problems_of(path)


def test_files_may_lose_their_markers_in_a_power_cut(path: Path, files: list[Path]) -> None:
    with opened(path) as queue, queue.appender() as appender:
        appender.write_text("today")
        appender.normalise_eofs()
    erase_marker(files[-1])
    for file in path.glob("*.cq4"):
        age(file)

    with opened(path) as queue, queue.appender() as appender:
        appender.write_text("after the restart")

    assert all_ended(files)
    assert not problems_of(path)


@pytest.mark.slow
def test_others_append_while_older_files_are_looked_at(path: Path, files: list[Path]) -> None:
    with Party(APPENDING, path, point="eof.normalised.cas") as party:
        party.wait_until_stopped()
        with quire.open(
            path, clock=quire.ManualClock(TODAY_MS), timeout_s=0, force_unlock="never"
        ) as queue:
            index = queue.appender().write_text("in between")
        party.go_on()
        assert party.result() == [index + 1, index + 2]
    assert all_ended(files)
    assert not problems_of(path)


@pytest.mark.slow
def test_a_process_that_dies_at_any_step_leaves_the_rest_to_the_next(
    path: Path, tmp_path: Path, files: list[Path]
) -> None:
    for file in files[1:]:
        erase_marker(file)
    for point in POINTS:
        for nth in range(1, 20):
            copy = tmp_path / f"{point}-{nth}"
            shutil.copytree(path, copy)
            with Party(APPENDING, copy, point=point, nth=nth) as party:
                try:
                    party.wait_until_stopped()
                except NotStoppedError:
                    assert nth > 1, point
                    break
                party.kill()
            marked = [Store(file.read_bytes()).has_eof for file in sorted(copy.glob("*.cq4"))]
            with opened(copy) as queue, queue.appender() as appender:
                known = known_to(copy) or -1
                assert all(
                    is_marked
                    for cycle, is_marked in zip(queue.cycles, marked, strict=True)
                    if cycle <= known
                ), (point, nth)
                appender.write_text("later")
                assert queue.entry_count >= DAYS * PER_DAY + 1
            assert all_ended(sorted(copy.glob("*.cq4"))[:DAYS]), (point, nth)
            assert not problems_of(copy)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_two_processes_that_start_together_end_each_file_once(
    path: Path, files: list[Path], point: str
) -> None:
    for file in files[1:]:
        erase_marker(file)
    with Party(APPENDING, path, point=point) as one:
        one.wait_until_stopped()
        with Party(APPENDING, path) as other:
            if not point.startswith(HELD):
                said = other.result()
                one.go_on()
                said += one.result()
            else:
                one.go_on()
                said = one.result() + other.result()
    assert len(set(said)) == 4
    assert all_ended(files)
    with opened(path) as queue:
        assert queue.entry_count == DAYS * PER_DAY + 4
    assert not problems_of(path)
