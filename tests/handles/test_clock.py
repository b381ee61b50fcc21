"""The clock decides the cycle and nothing else: rolls, bulk writes over a roll, clocks set back."""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS, UNLOCKED, WRITE_LOCK, payloads, poke, problems_of
from reference import END_OF_DATA, Store, open_queue, read_queue

SECOND_MS = 1000


def cycles_of(queue: quire.JournalQueue) -> list[int]:
    return [queue.roll_cycle.to_cycle(excerpt.index) for excerpt in queue.tailer()]


def test_a_manual_clock_moves_when_told_to() -> None:
    clock = quire.ManualClock(5)
    assert (clock.now_ms, clock()) == (5, 5)
    assert clock.advance(10) == 15
    assert clock.advance(-20) == -5
    clock.now_ms = START_MS
    assert clock() == START_MS
    assert quire.ManualClock().now_ms == 0
    assert pickle.loads(pickle.dumps(clock)).now_ms == START_MS
    assert repr(clock) == f"ManualClock(now_ms={START_MS})"


def test_the_clock_decides_the_cycle(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock, path: Path
) -> None:
    first = queue.roll_cycle.cycle_at(START_MS)
    start_of_day_ms = first * DAY_MS
    for now_ms in (start_of_day_ms, start_of_day_ms + DAY_MS - 1, start_of_day_ms + DAY_MS):
        clock.now_ms = now_ms
        appender.write_bytes(b"x")
    clock.advance(9 * DAY_MS)
    appender.write_bytes(b"x")

    assert cycles_of(queue) == [first, first, first + 1, first + 10]
    assert queue.cycles == [first, first + 1, first + 10]
    _, stores = open_queue(path)
    assert [stores[cycle].has_eof for cycle in sorted(stores)] == [True, True, False]
    assert problems_of(path) == []


def test_the_clock_of_the_machine_is_the_default(path: Path) -> None:
    before_s = int(time.time())
    with quire.open(path, roll_cycle="TEST_SECONDLY", block_bytes=1) as queue:
        queue.appender().write_bytes(b"now")
        (cycle,) = cycles_of(queue)

    assert before_s - 1 <= cycle <= int(time.time())


def test_a_callable_may_be_the_clock(path: Path) -> None:
    times = itertools.count(START_MS, SECOND_MS)
    with quire.open(
        path, roll_cycle="TEST_SECONDLY", clock=lambda: next(times), block_bytes=1
    ) as queue:
        appender = queue.appender()
        appender.write_bytes(b"0")
        appender.write_text("1")
        with appender.writing_document() as document:
            document.write_bytes(b"2")
        first = START_MS // SECOND_MS
        assert cycles_of(queue) == [first, first + 1, first + 2]


def test_an_exception_of_the_clock_goes_through_and_nothing_is_written(path: Path) -> None:
    def broken() -> int:
        raise LookupError("no time")

    with quire.open(path, clock=broken) as queue, queue.appender() as appender:
        with pytest.raises(LookupError, match="no time"):
            appender.write_bytes(b"x")
        with pytest.raises(LookupError):
            appender.writing_document()
        assert queue.table_value(WRITE_LOCK) == UNLOCKED
        assert payloads(queue) == []


@pytest.mark.parametrize("answer", ["now", None, 1.5, 2**70], ids=repr)
def test_a_clock_that_gives_no_number_of_milliseconds_is_an_error(path: Path, answer: int) -> None:
    with quire.open(path, clock=lambda: answer) as queue, queue.appender() as appender:
        with pytest.raises((TypeError, ValueError)):
            appender.write_bytes(b"x")
        assert payloads(queue) == []


def test_a_clock_set_back_never_writes_into_the_past(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock, path: Path
) -> None:
    first = appender.write_bytes(b"day 0")
    clock.advance(3 * DAY_MS)
    newest = appender.write_bytes(b"day 3")
    clock.advance(-2 * DAY_MS)
    assert appender.write_bytes(b"set back") == newest + 1
    clock.advance(-10 * DAY_MS)
    assert appender.write_many([b"further", b"back"]) == newest + 3
    with quire.open(path, clock=clock, block_bytes=2**16) as again:
        assert again.appender().write_bytes(b"opened again") == newest + 4
        with again.appender().writing_document() as document:
            document.write_bytes(b"document")
    clock.now_ms = START_MS + 4 * DAY_MS
    appender.write_bytes(b"day 4")

    texts = [b"day 0", b"day 3", b"set back", b"further", b"back", b"opened again", b"document"]
    assert payloads(queue) == [*texts, b"day 4"]
    assert len(queue.cycles) == 3
    assert queue.first_index == first
    assert problems_of(path) == []


def test_normalising_leaves_the_newest_file_open(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock, path: Path
) -> None:
    appender.write_bytes(b"before")
    clock.advance(DAY_MS)
    appender.normalise_eofs()
    (store,) = open_queue(path)[1].values()
    assert not store.has_eof
    clock.advance(-DAY_MS)
    appender.write_bytes(b"set back")

    assert payloads(queue) == [b"before", b"set back"]


def test_after_a_newest_file_that_was_ended_the_next_cycle_is_used(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock, path: Path
) -> None:
    appender.write_bytes(b"before")
    (cycle,) = queue.cycles
    clock.advance(DAY_MS)
    appender.write_bytes(b"taken away again")
    queue.close()
    (path / queue.roll_cycle.file_name(cycle + 1)).unlink()
    clock.advance(-DAY_MS)

    with quire.open(path, clock=clock, block_bytes=2**16) as again:
        for text in (b"one", b"two"):
            again.appender().write_bytes(text)
        again.appender().write_many([b"three", b"four"])
        with again.appender().writing_document() as document:
            document.write_bytes(b"five")
        assert payloads(again) == [b"before", b"one", b"two", b"three", b"four", b"five"]
        assert again.cycles == [cycle, cycle + 1]
    assert problems_of(path) == []


def test_a_bulk_write_after_an_ended_file_stays_in_the_next_cycle(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_bytes(b"before")
    (cycle,) = queue.cycles
    end(path / queue.roll_cycle.file_name(cycle))
    appender.write_many([b"%d" % number for number in range(200)])

    assert queue.cycles == [cycle, cycle + 1]
    assert cycles_of(queue) == [cycle] + [cycle + 1] * 200
    assert problems_of(path) == []


def test_an_appender_goes_past_ended_files_that_the_listing_does_not_tell_of(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock, path: Path
) -> None:
    appender.write_bytes(b"before")
    (cycle,) = queue.cycles
    with quire.open(path, clock=clock, block_bytes=2**16) as other:
        for _ in range(3):
            clock.advance(DAY_MS)
            other.appender().write_bytes(b"other")
    clock.now_ms = START_MS
    poke(path, "listing.highestCycle", cycle)
    appender.write_bytes(b"behind")

    assert cycles_of(queue) == [cycle, cycle + 1, cycle + 2, cycle + 3, cycle + 3]
    assert problems_of(path) == []


def test_who_appends_to_a_file_that_the_listing_does_not_tell_of_tells_of_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_bytes(b"before")
    (cycle,) = queue.cycles
    ahead = quire.ManualClock(START_MS + DAY_MS)
    with quire.open(path, clock=ahead, block_bytes=2**16) as other:
        document = other.appender().writing_document()  # makes the file
        document.rollback_on_close()
        document.close()
        poke(path, "listing.highestCycle", cycle)  # as if its maker had died before
        other.appender().write_bytes(b"ahead")
    appender.write_bytes(b"behind")

    assert cycles_of(queue) == [cycle, cycle + 1, cycle + 1]


def end(file: Path) -> None:
    """Write the end marker, as a writer does that dies before it makes the next file."""
    tail = Store(file.read_bytes()).tail
    with file.open("r+b") as handle:
        handle.seek(tail)
        handle.write(END_OF_DATA.to_bytes(4, "little") + b"\xc3EOF")


@pytest.mark.parametrize(
    "now_ms", [2**31 * SECOND_MS, 4_102_444_800_000, 2**62, -SECOND_MS, -(2**62)]
)
def test_a_time_that_no_cycle_number_reaches_is_refused(path: Path, now_ms: int) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="TEST_SECONDLY", clock=clock, block_bytes=1) as queue:
        clock.now_ms = now_ms
        with pytest.raises((quire.errors.IndexOutOfRangeError, ValueError)):
            queue.appender().write_bytes(b"x")
        assert queue.table_value(WRITE_LOCK) == UNLOCKED
        clock.now_ms = START_MS
        queue.appender().write_bytes(b"good")

        assert payloads(queue) == [b"good"]
        assert queue.cycles == [START_MS // SECOND_MS]


def roll_while_writing(queue: quire.JournalQueue, clock: quire.ManualClock, count: int) -> None:
    """Write many from a list while another thread moves the clock, a second at a time."""
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.000_1):
            clock.advance(SECOND_MS)

    ticker = threading.Thread(target=tick)
    ticker.start()
    queue.appender().write_many([b"%d" % number for number in range(count)])
    done.set()
    ticker.join()


def test_a_bulk_write_splits_where_the_clock_crosses_a_roll(path: Path) -> None:
    clock, count, turns = quire.ManualClock(START_MS), 20_000, 0
    with quire.open(path, roll_cycle="TEST_SECONDLY", clock=clock, block_bytes=1) as queue:
        while len(queue.cycles) <= turns < 20:  # more cycles than calls: one of them was split
            clock.advance(SECOND_MS)
            roll_while_writing(queue, clock, count)
            turns += 1
        found = [int(payload) for payload in payloads(queue)]
        assert len(queue.cycles) > turns

    assert found == list(range(count)) * turns
    assert [data for _, data in read_queue(path)] == [b"%d" % number for number in found]


@pytest.mark.parametrize("as_list", [True, False], ids=["list", "generator"])
def test_a_bulk_write_splits_by_a_callable_too(path: Path, *, as_list: bool) -> None:
    times, count = itertools.count(START_MS, 50), 20_000
    messages = (b"%d" % number for number in range(count))
    with quire.open(
        path, roll_cycle="TEST_SECONDLY", clock=lambda: next(times), block_bytes=1
    ) as queue:
        queue.appender().write_many(list(messages) if as_list else messages)

        assert len(queue.cycles) > 1
        assert [int(payload) for payload in payloads(queue)] == list(range(count))


def test_a_generator_may_move_the_clock(path: Path) -> None:
    clock = quire.ManualClock(START_MS)

    def events() -> Iterator[bytes]:
        for second in range(10):
            yield b"%d" % second
            clock.advance(SECOND_MS)

    with quire.open(path, roll_cycle="TEST_SECONDLY", clock=clock, block_bytes=1) as queue:
        queue.appender().write_many(events())

        assert payloads(queue) == [b"%d" % second for second in range(10)]
        assert queue.cycles == sorted(set(cycles_of(queue)))


def test_waits_do_not_use_the_clock(path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(
            path, clock=clock, timeout_s=0.1, wait=quire.WaitOptions(eof_grace_s=0.1)
        ) as queue,
        pytest.raises(quire.errors.WaitTimeoutError),
    ):
        queue.tailer().wait(0.1)
