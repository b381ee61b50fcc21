"""Whatever contradicts a walk over a file keeps a repair from writing where messages may be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import quire
from damages import break_message, fill, patch, positions
from journal_damages import DEAD_PID
from queues import APPEND_LOCK, START_MS, poke, problems_of
from reference import Store, read_queue

COUNT, DAY_MS = 120, 86_400_000


def word_of(file: Path, position: int) -> int:
    return int.from_bytes(file.read_bytes()[position : position + 4], "little")


def put_word(file: Path, position: int, word: int) -> None:
    patch(file, position, word.to_bytes(4, "little"))


def whole_messages(file: Path, places: dict[int, bytes]) -> int:
    data = file.read_bytes()
    return sum(data[at : at + len(message)] == message for at, message in places.items())


@pytest.mark.parametrize("number", [0, 5, 7, COUNT - 3, COUNT - 2])
def test_a_message_that_only_lacks_its_mark_is_marked(path: Path, number: int) -> None:
    (file,) = fill(path, 1, COUNT)
    whole, before = read_queue(path), file.read_bytes()
    place = positions(file)[number]
    put_word(file, place, word_of(file, place) | 0x8000_0000)
    found = quire.verify(path).findings
    assert (found[0].kind, found[0].position) == ("unmarked-message", place)
    report = quire.repair(path, dry_run=False)
    assert [(it.kind, it.position) for it in report.actions] == [("unmarked-message", place)]
    assert (report.ok, file.read_bytes()) == (True, before)
    assert read_queue(path) == whole


def test_messages_after_a_damaged_one_near_the_end_are_not_cut_off(path: Path) -> None:
    (file,) = fill(path, 1, COUNT)
    break_message(file, COUNT - 3)
    before = file.read_bytes()
    report = quire.repair(path, dry_run=False)
    assert [it.kind for it in report.after.findings] == ["gap"]
    assert (report.actions, file.read_bytes()) == ((), before)


def test_messages_that_nothing_leads_to_are_not_cut_off(path: Path) -> None:
    (file,) = fill(path, 1, COUNT)
    places = positions(file)
    break_message(file, COUNT - 4)
    put_word(file, places[-1], 0)  # what the write position names is lost
    before = file.read_bytes()
    report = quire.repair(path, dry_run=False)
    assert [it.kind for it in report.after.findings] == ["gap"]
    assert (report.actions, file.read_bytes()) == ((), before)


@pytest.mark.parametrize("number", [0, 3, 64, COUNT - 2])
def test_no_bit_of_a_header_has_other_messages_overwritten(
    path: Path, tmp_path: Path, number: int
) -> None:
    (file,) = fill(path, 1, COUNT)
    store = Store(file.read_bytes())
    places = {
        it.position: store.data[it.position : it.end]
        for it in store.documents
        if not it.is_metadata
    }
    place = positions(file)[number]
    word = word_of(file, place)
    for bit in range(32):
        copy = tmp_path / str(bit)
        shutil.copytree(path, copy)
        damaged = copy / file.name
        put_word(damaged, place, word ^ 1 << bit)
        found = whole_messages(damaged, places)
        report = quire.repair(copy, dry_run=False)
        assert whole_messages(damaged, places) >= found == COUNT - 1, (bit, report.actions)
        shutil.rmtree(copy)


def test_a_file_made_ahead_of_its_time_is_no_later_one(path: Path) -> None:
    clock = quire.ManualClock(START_MS // DAY_MS * DAY_MS + DAY_MS - 1000)
    with quire.open(path, clock=clock, roll_cycle="TEST4_DAILY", block_bytes=1) as queue:
        appender = queue.appender()
        first = appender.write_bytes(b"one")
        with queue.pretoucher(early_acquire_next_cycle=True, preroll_time_s=2) as pretoucher:
            pretoucher.execute()
            assert len([*path.glob("*.cq4")]) == 2
            assert quire.verify(path).findings == ()
            assert quire.repair(path, dry_run=False).actions == ()
            assert appender.write_bytes(b"two") == first + 1
            poke(path, APPEND_LOCK, DEAD_PID)  # another damage
            assert [it.kind for it in quire.repair(path, dry_run=False).actions] == ["stale-lock"]
            assert appender.write_bytes(b"three") == first + 2
        clock.advance(2000)
        last = appender.write_bytes(b"four")
        assert queue.roll_cycle.to_cycle(last) == queue.roll_cycle.to_cycle(first) + 1
    assert quire.verify(path).findings == ()
    assert problems_of(path) == []
