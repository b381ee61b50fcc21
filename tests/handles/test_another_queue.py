"""Readers and appenders that come to the next cycle after their directory was replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import quire
from quire.errors import TableLostError

DAY_MS: Final = 86_400_000
START_MS: Final = 1_700_000_000_000


def make(path: Path, name: str, days: int = 4) -> None:
    clock = quire.ManualClock(START_MS)
    opened = quire.open(path, clock=clock, roll_cycle="TEST4_DAILY")
    with opened as queue, queue.appender() as appender:
        for day in range(days):
            appender.write_many([b"%s %d.%d" % (name.encode(), day, it) for it in range(2)])
            clock.advance(DAY_MS)


@pytest.fixture
def replaced(tmp_path: Path) -> Callable[[], None]:
    make(tmp_path / "orders", "ours")
    make(tmp_path / "others", "theirs")

    def replace() -> None:
        (tmp_path / "orders").rename(tmp_path / "moved")
        (tmp_path / "others").rename(tmp_path / "orders")

    return replace


def by_one(tailer: quire.JournalTailer) -> list[bytes]:
    found = list[bytes]()
    try:
        while (message := tailer.read_bytes()) is not None:
            found.append(message)
    except TableLostError:
        found.append(b"lost")
    return found


def by_many(tailer: quire.JournalTailer) -> list[bytes]:
    found = list[bytes]()
    try:
        while batch := tailer.read_many(1):
            found += batch
    except TableLostError:
        found.append(b"lost")
    return found


def backward(tailer: quire.JournalTailer) -> list[bytes]:
    tailer.direction = "backward"
    return by_one(tailer)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("way", [by_one, by_many, backward])
def test_a_reader_does_not_go_on_in_another_queue(
    tmp_path: Path,
    replaced: Callable[[], None],
    way: Callable[[quire.JournalTailer], list[bytes]],
    read_only: bool,  # noqa: FBT001
) -> None:
    opened = quire.open(tmp_path / "orders", read_only=read_only)
    with opened as queue, queue.tailer(on_missing="raise") as tailer:
        for _ in range(3):
            tailer.read_bytes()
        replaced()
        found = way(tailer)
        assert not [it for it in found if it.startswith(b"theirs")]
        assert found[-1] == b"lost"


def test_a_move_to_another_cycle_does_not_lead_there(
    tmp_path: Path, replaced: Callable[[], None]
) -> None:
    with quire.open(tmp_path / "orders", read_only=True) as queue, queue.tailer() as tailer:
        last = queue.last_index
        assert last is not None
        tailer.read_bytes()
        replaced()
        with pytest.raises(TableLostError):
            tailer.move_to_index(last)


def test_what_is_made_of_a_queue_is_not_made_of_two(
    tmp_path: Path, replaced: Callable[[], None]
) -> None:
    def name(excerpt: quire.Excerpt) -> str:
        if excerpt.data == b"ours 0.1":
            replaced()
        return "all"

    with pytest.raises(TableLostError):
        quire.maintenance.split_queue(tmp_path / "orders", tmp_path / "split", name)
    assert not (tmp_path / "split").exists()


def test_an_appender_that_follows_the_listing_does_not_append_there(tmp_path: Path) -> None:
    path, late, early = tmp_path / "orders", *(quire.ManualClock(START_MS) for _ in range(2))
    with (
        quire.open(path, clock=late, roll_cycle="TEST4_DAILY") as ours,
        quire.open(path, clock=early, roll_cycle="TEST4_DAILY") as too,
    ):
        first, second = ours.appender(), too.appender()
        first.write_text("one")
        second.write_text("two")
        early.advance(DAY_MS)
        second.write_text("three, in the next cycle")
        path.rename(tmp_path / "moved")
        with quire.open(path, clock=early, roll_cycle="TEST4_DAILY") as theirs:
            theirs.appender().write_text("theirs")
        with pytest.raises(TableLostError):
            first.write_text("four")
    with quire.open(path, read_only=True) as theirs, theirs.tailer() as tailer:
        assert [tailer.read_text(), tailer.read_text()] == ["theirs", None]
