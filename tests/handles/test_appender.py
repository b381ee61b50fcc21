"""Appenders: what may be written, the index it gets, what is refused, and who may write at once."""

from __future__ import annotations

import array
import ctypes
import mmap
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

import quire
from queues import APPEND_LOCK, DAY_MS, UNLOCKED, WRITE_LOCK, payloads, poke, problems_of
from reference import read_queue


class Buffer(Protocol):
    """`collections.abc.Buffer`, which Python has from 3.12 on."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


LIMIT = 2**16  # of a message, with the blocks of these tests
BUFFERS: dict[str, Any] = {
    "bytes": b"\0payload\xff",
    "bytearray": bytearray(b"\0payload\xff"),
    "memoryview": memoryview(b"\0payload\xff"),
    "slice of a memoryview": memoryview(b"__\0payload\xff__")[2:-2],
    "array of numbers": array.array("d", [0.5, -1.0]),
    "ctypes array": (ctypes.c_uint16 * 3)(1, 2, 3),
    "numpy array": np.arange(12, dtype=np.int32).reshape(3, 4),
}
EMPTIES = [b"", bytearray(), memoryview(b""), array.array("d"), np.empty(0)]
NOT_BUFFERS = ["text", 7, None, [b"x"], object()]


@pytest.mark.parametrize("buffer", BUFFERS.values(), ids=BUFFERS)
def test_any_contiguous_buffer_is_a_message(
    queue: quire.JournalQueue, appender: quire.JournalAppender, buffer: Buffer
) -> None:
    appender.write_bytes(buffer)
    appender.write_many([buffer, buffer])
    with appender.writing_document() as document:
        document.write_bytes(buffer)

    assert payloads(queue) == [bytes(buffer)] * 4


def test_a_mapped_file_is_a_message(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:5] = b"hello"
        appender.write_bytes(mapped)

    assert payloads(queue) == [b"hello" + bytes(4091)]


def test_a_buffer_may_change_once_it_was_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    buffer = bytearray(b"first")
    appender.write_bytes(buffer)
    buffer[:] = b"other"
    appender.write_many([buffer])
    buffer.clear()

    assert payloads(queue) == [b"first", b"other"]


def test_a_buffer_with_gaps_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with_gaps: list[Any] = [memoryview(b"abcdef")[::2], np.arange(9).reshape(3, 3)[:, 1]]
    for buffer in with_gaps:
        with pytest.raises((BufferError, TypeError, ValueError)):
            appender.write_bytes(buffer)

    assert payloads(queue) == []


@pytest.mark.parametrize("wrong", NOT_BUFFERS, ids=lambda it: type(it).__name__)
def test_what_is_no_buffer_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender, wrong: Buffer
) -> None:
    with pytest.raises(TypeError):
        appender.write_bytes(wrong)
    with pytest.raises(TypeError):
        appender.write_many([b"good", wrong])

    assert payloads(queue) == []


@pytest.mark.parametrize("empty", EMPTIES, ids=lambda empty: type(empty).__name__)
def test_an_empty_message_is_refused_and_nothing_is_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender, empty: Buffer
) -> None:
    with pytest.raises(ValueError, match="length=0"):
        appender.write_bytes(empty)
    with pytest.raises(ValueError, match="length=0"):
        appender.write_many([b"one", empty, b"two"])

    assert payloads(queue) == []
    assert queue.table_value(WRITE_LOCK) == UNLOCKED
    assert queue.cycles == []


def test_every_write_returns_the_next_index(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    cycle = queue.roll_cycle.cycle_at(clock.now_ms)
    first = queue.roll_cycle.to_index(cycle, 0)
    assert appender.last_index_appended is None

    assert appender.write_bytes(b"0") == first
    assert appender.write_text("1") == first + 1
    assert appender.write_map({"n": 2}) == first + 2
    assert appender.write_many([b"3", b"4", b"5"]) == first + 5
    with appender.writing_document() as document:
        assert document.index == first + 6
        document.write("n", 6)

    assert appender.last_index_appended == first + 6
    clock.advance(2 * DAY_MS)
    assert appender.write_bytes(b"next") == queue.roll_cycle.to_index(cycle + 2, 0)
    assert queue.last_index == appender.last_index_appended


def test_a_second_appender_goes_on_where_the_first_stopped(queue: quire.JournalQueue) -> None:
    first, second = queue.appender(), queue.appender()
    index = first.write_bytes(b"0")

    assert [second.write_bytes(b"1"), first.write_bytes(b"2"), second.write_bytes(b"3")] == [
        index + 1,
        index + 2,
        index + 3,
    ]
    assert (first.last_index_appended, second.last_index_appended) == (index + 2, index + 3)


@pytest.mark.parametrize("count", [1, 2, 100, 4096])
def test_many_are_written_from_a_list_a_tuple_and_a_generator(path: Path, count: int) -> None:
    messages = [f"message {number}".encode() for number in range(count)]
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=1) as queue:
        appender = queue.appender()
        last = [
            appender.write_many(messages),
            appender.write_many(tuple(messages)),
            appender.write_many(message for message in messages),
        ]
        first = queue.first_index

    assert first is not None
    assert last == [first + count * turn - 1 for turn in (1, 2, 3)]
    assert [data for _, data in read_queue(path)] == messages * 3
    assert problems_of(path) == []


def test_a_generator_longer_than_what_is_taken_at_a_time_is_written_whole(path: Path) -> None:
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=1) as queue:
        queue.appender().write_many(number.to_bytes(4, "big") for number in range(25_001))

    assert [int.from_bytes(data, "big") for _, data in read_queue(path)] == list(range(25_001))


@pytest.mark.parametrize("kind", ["chronicle", "vanilla", "quick-queue"])
def test_of_many_the_wrong_one_is_named(path: Path, kind: str) -> None:
    wrong: Any = [b"one", "two"]
    late: Any = (b"one" if number < 10_001 else 3 for number in range(10_002))
    open_any: Any = quire.open
    with open_any(path, format=kind) as queue, queue.appender() as appender:
        for payloads, note, count in (
            (wrong, "payloads[1]; appended: 0", 0),
            (late, "payloads[10001]; appended: 10000", 10_000),
        ):
            with pytest.raises(TypeError, match="a bytes-like object is needed") as caught:
                appender.write_many(payloads)
            assert caught.value.__notes__ == [note]
            assert queue.entry_count == count


def test_many_of_none_is_none(queue: quire.JournalQueue, appender: quire.JournalAppender) -> None:
    assert appender.write_many([]) is None
    assert appender.write_many(()) is None
    assert appender.write_many(iter([])) is None
    assert appender.last_index_appended is None
    assert (queue.entry_count, queue.cycles) == (0, [])


def test_an_exception_of_the_generator_goes_through(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    def failing() -> Iterator[bytes]:
        yield b"one"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        appender.write_many(failing())

    assert payloads(queue) in ([], [b"one"])
    assert queue.table_value(WRITE_LOCK) == UNLOCKED


def test_the_longest_message_is_written_and_one_byte_more_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    longest = os.urandom(LIMIT)
    appender.write_bytes(longest)

    with pytest.raises(
        quire.errors.MessageTooLargeError, match=f"length={LIMIT + 1} limit={LIMIT}"
    ):
        appender.write_bytes(longest + b"x")
    with pytest.raises(
        quire.errors.MessageTooLargeError, match=f"length={LIMIT + 1} limit={LIMIT}"
    ):
        appender.write_many([longest + b"x"])
    with pytest.raises(ValueError, match="message too large"):
        appender.write_text("x" * LIMIT)
    with pytest.raises(quire.errors.MessageTooLargeError), appender.writing_document() as document:
        document.write_bytes(longest + b"x")

    appender.write_bytes(b"after")
    assert payloads(queue) == [longest, b"after"]
    assert problems_of(path) == []


def test_a_message_too_large_among_many_leaves_those_before_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with pytest.raises(quire.errors.MessageTooLargeError):
        appender.write_many([b"one", b"two", bytes(LIMIT + 1), b"three"])

    written = payloads(queue)
    assert written == [b"one", b"two"][: len(written)]
    assert queue.last_index == appender.last_index_appended


def test_sync_tells_how_far_messages_are_on_the_medium(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    appender.sync()
    assert queue.table_value("chronicle.lastIndexMSynced") == -1

    for _ in range(3):
        index = appender.write_bytes(b"x")
        clock.advance(DAY_MS)
        appender.sync()
        assert queue.table_value("chronicle.lastIndexMSynced") == index


def test_an_append_lock_refuses_messages_until_it_is_given_back(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_bytes(b"before")
    poke(path, APPEND_LOCK, 1)

    with pytest.raises(quire.errors.AppendLockedError, match="append lock"):
        appender.write_bytes(b"x")
    with pytest.raises(quire.errors.AppendLockedError, match="append lock"):
        appender.write_many([b"x"])
    with pytest.raises(quire.errors.AppendLockedError, match="append lock"):
        appender.writing_document()

    poke(path, APPEND_LOCK, UNLOCKED)
    appender.write_bytes(b"after")
    assert payloads(queue) == [b"before", b"after"]


@pytest.mark.parametrize("appenders", [1, 6])
def test_threads_write_every_message_once_and_in_their_order(path: Path, appenders: int) -> None:
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=1) as queue:
        shared = [queue.appender() for _ in range(appenders)]
        indexes: dict[int, bytes] = {}

        def write(thread: int) -> None:
            appender = shared[thread % appenders]
            for number in range(0, 400, 4):
                texts = [f"{thread} {number + turn}".encode() for turn in range(4)]
                indexes[appender.write_bytes(texts[0])] = texts[0]
                last = appender.write_many(texts[1:3])
                assert last is not None
                indexes.update({last - 1: texts[1], last: texts[2]})
                with appender.writing_document() as document:
                    document.write_bytes(texts[3])
                indexes[document.index] = texts[3]

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        found = {excerpt.index: excerpt.data for excerpt in queue.tailer()}

    assert found == indexes
    for thread in range(6):
        own = [data for data in found.values() if data.startswith(b"%d " % thread)]
        assert own == [b"%d %d" % (thread, number) for number in range(400)]
    assert problems_of(path) == []


def test_an_interrupt_ends_the_wait_for_the_lock(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_bytes(b"before")
    poke(path, WRITE_LOCK, 1)  # held by a living process
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    patient = quire.open(path, timeout_s=3600).appender()

    def write() -> None:
        timer.start()
        patient.write_bytes(b"interrupted")

    with pytest.raises(KeyboardInterrupt):
        write()

    timer.join()
    assert queue.table_value(WRITE_LOCK) == 1
    poke(path, WRITE_LOCK, UNLOCKED)
    appender.write_bytes(b"after")
    assert payloads(queue) == [b"before", b"after"]
