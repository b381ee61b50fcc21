"""Where tailers go: every row of docs/protocol.md §9.4, directions, rolls, files without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS
from reference import Store, open_queue

TEXTS = [b"%d" % number for number in range(10)]
MASK = 2**32 - 1
CYCLE = START_MS // DAY_MS


def at(day: int, sequence: int) -> int:
    """Return the index of a message so many days after the start."""
    return quire.RollCycle("TEST4_DAILY").to_index(CYCLE + day, sequence)


INDEXES = [
    *(at(0, i) for i in range(3)),
    *(at(1, i) for i in range(3)),
    *(at(3, i) for i in range(4)),
]


@pytest.fixture
def appender(queue: quire.JournalQueue, clock: quire.ManualClock) -> quire.JournalAppender:
    """Three, three and four messages; the third day has none."""
    appender = queue.appender()
    appender.write_many(TEXTS[:3])
    clock.advance(DAY_MS)
    appender.write_many(TEXTS[3:6])
    clock.advance(2 * DAY_MS)
    appender.write_many(TEXTS[6:])
    return appender


@pytest.fixture
def tailer(queue: quire.JournalQueue, appender: quire.JournalAppender) -> quire.JournalTailer:
    """A tailer of those ten messages."""
    assert appender.last_index_appended == INDEXES[-1]
    return queue.tailer()


def place(tailer: quire.JournalTailer) -> tuple[str, int]:
    return tailer.state, tailer.index


def test_a_tailer_of_an_empty_queue_has_no_place(queue: quire.JournalQueue) -> None:
    tailer = queue.tailer()
    assert place(tailer) == ("UNINITIALISED", 0)
    tailer.to_end()
    assert tailer.read() is None
    assert place(tailer) == ("UNINITIALISED", 0)
    tailer.to_start()
    assert tailer.read() is None
    assert place(tailer) == ("UNINITIALISED", 0)

    index = queue.appender().write_bytes(b"first")
    assert tailer.read() == quire.Excerpt(index, b"first")
    assert place(tailer) == ("FOUND_IN_CYCLE", index + 1)


def test_a_new_tailer_reads_from_the_first_message_to_the_last(tailer: quire.JournalTailer) -> None:
    assert tailer.index == INDEXES[0]
    assert [excerpt.index for excerpt in tailer] == INDEXES
    assert place(tailer) == ("FOUND_IN_CYCLE", INDEXES[-1] + 1)


@pytest.mark.parametrize("number", range(10))
def test_a_tailer_moves_to_any_message(tailer: quire.JournalTailer, number: int) -> None:
    assert tailer.move_to_index(INDEXES[number])
    assert place(tailer) == ("FOUND_IN_CYCLE", INDEXES[number])
    assert list(tailer.payloads()) == TEXTS[number:]


def test_one_past_the_last_of_an_ended_file_leads_to_the_next(tailer: quire.JournalTailer) -> None:
    assert not tailer.move_to_index(at(0, 3))
    assert place(tailer) == ("END_OF_CYCLE", at(0, 3))
    assert tailer.read() == quire.Excerpt(INDEXES[3], TEXTS[3])

    assert not tailer.move_to_index(at(1, 3))
    assert tailer.read_bytes() == TEXTS[6]


@pytest.mark.parametrize("beyond", [4, 5, 100, 127, 128, 1000, 4095])
def test_further_after_an_ended_file_is_never_reached(
    tailer: quire.JournalTailer, beyond: int
) -> None:
    assert not tailer.move_to_index(at(0, beyond))
    assert place(tailer) == ("NOT_REACHED_IN_CYCLE", at(0, beyond))
    assert [tailer.read(), tailer.read()] == [None, None]
    assert place(tailer) == ("NOT_REACHED_IN_CYCLE", at(0, beyond))


def test_one_past_the_last_of_the_open_file_waits_there(
    tailer: quire.JournalTailer, appender: quire.JournalAppender
) -> None:
    assert not tailer.move_to_index(INDEXES[-1] + 1)
    assert place(tailer) == ("FOUND_IN_CYCLE", INDEXES[-1] + 1)
    assert tailer.read() is None

    index = appender.write_bytes(b"next")
    assert tailer.read() == quire.Excerpt(index, b"next")


def test_further_after_the_open_file_is_reached_when_it_is_written(
    tailer: quire.JournalTailer, appender: quire.JournalAppender
) -> None:
    assert not tailer.move_to_index(INDEXES[-1] + 3)
    assert place(tailer) == ("NOT_REACHED_IN_CYCLE", INDEXES[-1] + 3)
    appender.write_many([b"a", b"b"])
    assert tailer.read() is None
    appender.write_many([b"c", b"d"])

    assert list(tailer.payloads()) == [b"c", b"d"]


@pytest.mark.parametrize("day", [2, 4, 1000, -1])
def test_a_cycle_without_file_leaves_the_tailer_where_it_was(
    tailer: quire.JournalTailer, day: int
) -> None:
    assert not tailer.move_to_index(at(day, 0))
    assert place(tailer) == ("CYCLE_NOT_FOUND", INDEXES[0])
    assert tailer.read() == quire.Excerpt(INDEXES[0], TEXTS[0])

    assert tailer.move_to_index(INDEXES[4])
    assert not tailer.move_to_index(at(day, 0))
    assert place(tailer) == ("CYCLE_NOT_FOUND", INDEXES[4])
    assert tailer.read() == quire.Excerpt(INDEXES[4], TEXTS[4])


@pytest.mark.parametrize("index", [-1, -(2**63), 2**63 - 1, 2**63, -(2**63) - 1, 2**80])
def test_what_can_be_no_index_is_an_error_and_moves_nothing(
    tailer: quire.JournalTailer, index: int
) -> None:
    assert tailer.move_to_index(INDEXES[4])
    with pytest.raises((quire.errors.IndexOutOfRangeError, ValueError)):
        tailer.move_to_index(index)
    assert tailer.read_bytes() == TEXTS[4]


def test_the_end_is_after_the_last_message(
    tailer: quire.JournalTailer, appender: quire.JournalAppender
) -> None:
    tailer.to_end()
    assert place(tailer) == ("FOUND_IN_CYCLE", INDEXES[-1] + 1)
    assert tailer.read() is None

    appender.write_bytes(b"next")
    assert tailer.read_bytes() == b"next"
    tailer.to_start()
    assert list(tailer.payloads()) == [*TEXTS, b"next"]


def test_the_end_of_an_ended_file_is_the_end_of_its_cycle(
    queue: quire.JournalQueue, path: Path, tailer: quire.JournalTailer
) -> None:
    (path / queue.roll_cycle.file_name(CYCLE + 3)).unlink()
    queue.refresh()

    tailer.to_end()

    assert place(tailer) == ("END_OF_CYCLE", at(1, 3))
    assert tailer.read() is None
    assert place(tailer) == ("END_OF_CYCLE", at(1, 3))


def test_the_end_backward_is_the_last_message(tailer: quire.JournalTailer) -> None:
    tailer.direction = "backward"
    tailer.to_end()

    assert place(tailer) == ("FOUND_IN_CYCLE", INDEXES[-1])
    assert [excerpt.index for excerpt in tailer] == INDEXES[::-1]


def test_turning_at_the_end_keeps_the_place(tailer: quire.JournalTailer) -> None:
    tailer.to_end()
    tailer.direction = "backward"

    assert tailer.index == INDEXES[-1] + 1
    assert tailer.read() == quire.Excerpt(INDEXES[-1], TEXTS[-1])
    assert tailer.index == INDEXES[-2]


def test_backward_past_the_first_message_is_beyond_the_start(tailer: quire.JournalTailer) -> None:
    assert tailer.move_to_index(INDEXES[1])
    tailer.direction = "backward"
    assert list(tailer.payloads()) == [TEXTS[1], TEXTS[0]]
    assert [tailer.read(), tailer.read()] == [None, None]
    assert place(tailer) == ("BEYOND_START_OF_CYCLE", at(-1, MASK))

    tailer.direction = "forward"
    assert tailer.read() is None
    assert list(tailer.payloads()) == TEXTS
    assert tailer.state == "FOUND_IN_CYCLE"


def test_without_direction_the_same_message_comes_again(tailer: quire.JournalTailer) -> None:
    assert tailer.move_to_index(INDEXES[4])
    tailer.direction = "none"

    assert [tailer.read_bytes() for _ in range(3)] == [TEXTS[4]] * 3
    assert place(tailer) == ("FOUND_IN_CYCLE", INDEXES[4])
    tailer.direction = "forward"
    assert list(tailer.payloads()) == TEXTS[4:]


@pytest.mark.parametrize("number", range(10))
def test_a_tailer_may_turn_anywhere(tailer: quire.JournalTailer, number: int) -> None:
    assert tailer.read_many(number) == TEXTS[:number]
    tailer.direction = "backward"
    met = TEXTS[number] if tailer.index == INDEXES[number] else TEXTS[number - 1]  # a file's end
    assert tailer.read_bytes() == met
    turned = TEXTS.index(met)
    assert tailer.read_many(2) == TEXTS[max(0, turned - 2) : turned][::-1]

    tailer.direction = "forward"
    if turned < 3:  # it went past the first message
        assert tailer.read() is None
    assert list(tailer.payloads()) == TEXTS[max(0, turned - 3) :]


def test_messages_in_a_new_file_are_read_on(
    tailer: quire.JournalTailer, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    for day in (1, 1, 5, 400):
        tailer.read_many(100)
        clock.advance(day * DAY_MS)
        index = appender.write_bytes(b"new")
        assert tailer.read() == quire.Excerpt(index, b"new")
        assert tailer.read() is None


def test_files_removed_by_hand_are_passed_over(
    queue: quire.JournalQueue, path: Path, tailer: quire.JournalTailer
) -> None:
    assert tailer.read_many(3) == TEXTS[:3]
    (path / queue.roll_cycle.file_name(CYCLE)).unlink()
    (path / queue.roll_cycle.file_name(CYCLE + 1)).unlink()
    queue.refresh()

    assert list(tailer.payloads()) == TEXTS[6:]
    assert (queue.first_index, queue.entry_count) == (INDEXES[6], 4)
    assert queue.table_value("listing.lowestCycle") == CYCLE + 3


def erase_marker(path: Path, day: int) -> tuple[Path, int]:
    """Take a file's end-of-file marker away, as if its writer had died before it rolled."""
    roll_cycle, _ = open_queue(path)
    file = path / roll_cycle.file_name(CYCLE + day)
    tail = Store(file.read_bytes()).tail
    patch(file, tail, bytes(8))
    return file, tail


def patch(file: Path, position: int, data: bytes) -> None:
    handle = os.open(file, os.O_RDWR)
    os.pwrite(handle, data, position)
    os.close(handle)


@pytest.mark.parametrize("grace_s", [0.0, 0.1])
def test_a_file_without_end_is_left_after_the_grace_time(
    path: Path, tailer: quire.JournalTailer, caplog: pytest.LogCaptureFixture, grace_s: float
) -> None:
    tailer.close()
    erase_marker(path, 0)
    erase_marker(path, 1)

    with (
        quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=grace_s)) as queue,
        queue.tailer() as reader,
    ):
        followed = reader.follow(timeout_s=300)
        assert [next(followed).data for _ in TEXTS] == TEXTS

    assert [record.message for record in caplog.records if "without end-of-file" in record.message]
    assert len(caplog.records) == 2


def test_without_grace_time_a_file_without_end_is_never_left(
    path: Path, tailer: quire.JournalTailer
) -> None:
    tailer.close()
    erase_marker(path, 1)

    with (
        quire.open(path, read_only=True, wait=quire.WaitOptions(eof_grace_s=None)) as queue,
        queue.tailer() as reader,
    ):
        assert [excerpt.data for excerpt in reader.follow(timeout_s=0.3)] == TEXTS[:6]
