"""A damaged file is reported and closes no other one: seeking, counting, and appending after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from damages import (
    DAYS,
    PER_DAY,
    WHOLE,
    age,
    break_message,
    empty,
    erase_marker,
    fill,
    lose_header,
    lose_page,
    patch,
    positions,
    spoil,
)
from queues import DAY_MS, START_MS

CYCLE = START_MS // DAY_MS
INDEX = quire.RollCycle("TEST4_DAILY").to_index
CUT = 100  # within the first header


def cut(file: Path) -> None:
    os.truncate(file, CUT)


UNREADABLE = [spoil, lose_header, lose_page, cut]
Damage = Callable[[Path], None]


@pytest.fixture(params=UNREADABLE, ids=lambda damage: damage.__name__)
def files(request: pytest.FixtureRequest, path: Path) -> list[Path]:
    """Four days of messages; the oldest file cannot be read."""
    files = fill(path)
    request.param(files[0])
    return files


def test_other_files_are_reached(
    path: Path, files: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.move_to_index(INDEX(CYCLE + 1, 7))
        assert tailer.read_map() == {"n": PER_DAY + 7}
        assert queue.first_index == INDEX(CYCLE + 1, 0)
        assert queue.entry_count == (DAYS - 1) * PER_DAY
        assert queue.last_index == INDEX(CYCLE + DAYS - 1, PER_DAY - 1)
        tailer.to_end()
        tailer.direction = "backward"
        assert tailer.read_map() == WHOLE[-1]
    (warning,) = caplog.messages  # once, however often it is met
    assert files[0].name in warning


def test_the_damaged_file_itself_is_an_error(path: Path, files: list[Path]) -> None:
    with (
        quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=0.0)) as queue,
        queue.tailer() as tailer,
    ):
        for _ in range(2):
            with pytest.raises(quire.errors.CorruptError, match=files[0].name):
                tailer.read()
        with pytest.raises(quire.errors.CorruptError, match=files[0].name):
            list(tailer)
        with pytest.raises(quire.errors.CorruptError, match=files[0].name):
            queue.end_of_cycle(CYCLE)


@pytest.mark.parametrize("damage", [*UNREADABLE, empty], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "reopened"])
def test_producers_go_on(
    path: Path, damage: Damage, caplog: pytest.LogCaptureFixture, *, is_open: bool
) -> None:
    files = fill(path)
    clock = quire.ManualClock(START_MS + (DAYS - 1) * DAY_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        if is_open:
            appender.write_map({"n": 1})
        for file in files[:2]:
            damage(file)
        for _ in range(3):
            clock.advance(2 * DAY_MS)
            appender.write_map({"n": 2})
        with queue.appender() as another:
            clock.advance(DAY_MS)
            another.write_map({"n": 3})
            another.normalise_eofs()
        assert queue.last_index == INDEX(CYCLE + DAYS - 1 + 7, 0)
    if not is_open:
        assert files[0].name in caplog.text
    if damage not in {cut, empty}:  # of a file that ends in its header nothing is left
        assert files[0].exists()
        assert not [*path.glob("*.discard")]


@pytest.mark.parametrize("number", [10, 12, 13])
def test_what_lies_after_a_damaged_message_is_reached_by_the_index(path: Path, number: int) -> None:
    """TEST4 indexes each fourth message."""
    (file,) = fill(path, days=1, per_day=30)
    expected = {"n": 16}
    break_message(file, number)
    for what in ("damaged", "lost"):
        with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
            assert queue.entry_count == 30
            for sequence in (16, 17, 20, 29):
                assert tailer.move_to_index(INDEX(CYCLE, sequence)), what
                assert tailer.read_map() == {"n": sequence}
            assert tailer.move_to_index(INDEX(CYCLE, 16))
            assert tailer.read_map() == expected
            assert [found["n"] for found in iter(tailer.read_map, None) if found] == [
                *range(17, 30)
            ]
            tailer.direction = "backward"
            tailer.to_end()
            assert tailer.read_map() == {"n": 29}
            assert tailer.move_to_index(INDEX(CYCLE, 9))
            assert tailer.read_map() == {"n": 9}
        patch(file, positions_of(file, number), bytes(4))


def positions_of(file: Path, number: int) -> int:
    """Where a damaged message lies: behind those before it."""
    found = positions(file)
    return found[number] if number < len(found) else _tail(file)


def _tail(file: Path) -> int:
    from reference import Store

    return Store(file.read_bytes()).tail


def test_an_older_file_that_holds_messages_is_never_put_aside(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = fill(path)
    lose_header(files[1])
    empty(files[2])
    before = files[1].read_bytes()
    clock = quire.ManualClock(START_MS + (DAYS + 5) * DAY_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.write_map({"n": 0})
    assert files[1].read_bytes() == before
    (aside,) = path.glob("*.discard")
    assert aside.name.startswith(files[2].name)
    for file in files[1:3]:
        assert file.name in caplog.text


def test_a_file_of_another_user_stops_no_producer(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the administrator may read everything")
    files = fill(path)
    files[0].chmod(0)
    clock = quire.ManualClock(START_MS + (DAYS + 5) * DAY_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.write_map({"n": 0})
        assert queue.entry_count == (DAYS - 1) * PER_DAY + 1


def test_a_damaged_file_before_a_quiet_one_is_an_error_and_not_passed_over(path: Path) -> None:
    files = fill(path)
    erase_marker(files[0])
    age(files[0])
    spoil(files[1])
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert len(tailer.read_many(10_000)) == PER_DAY
        with pytest.raises(quire.errors.CorruptError, match=files[1].name):
            tailer.read()


@pytest.mark.parametrize("lose", [lose_header, lose_page])
def test_a_newest_file_that_lost_its_header_is_not_begun_again(path: Path, lose: Damage) -> None:
    (file,) = fill(path, days=1)
    lose(file)
    left = file.read_bytes()

    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=1) as queue,
        queue.appender() as appender,
        pytest.raises(quire.errors.CorruptError, match="holds messages has no complete header"),
    ):
        appender.write_bytes(b"over it")
    assert file.read_bytes() == left
