"""Documents: published whole or not at all, alone in the queue meanwhile, read in place."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS, UNLOCKED, WRITE_LOCK, payloads, poke, problems_of

HIDDEN = b"invisible until it closes"


class BoomError(Exception):
    """What a caller's code raises."""


def is_locked(queue: quire.JournalQueue) -> bool:
    return queue.table_value(WRITE_LOCK) != UNLOCKED


def write_and_fail(appender: quire.JournalAppender) -> None:
    with appender.writing_document() as document:
        document.write_bytes(HIDDEN)
        raise BoomError


def test_a_document_appears_when_it_closes_and_not_before(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with appender.writing_document() as document:
        document.write_bytes(b"first ")
        document.write_bytes(b"second")
        assert payloads(queue) == []
        assert is_locked(queue)

    assert payloads(queue) == [b"first second"]
    assert not is_locked(queue)


def test_a_document_knows_its_index_before_and_after(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    before = appender.write_bytes(b"before")
    with appender.writing_document() as document:
        document.write_bytes(b"x")
        assert document.index == before + 1
    assert document.index == before + 1 == appender.last_index_appended == queue.last_index
    assert not document.is_metadata


def test_an_exception_rolls_back_and_goes_through(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_bytes(b"before")
    files = {file.name: file.read_bytes() for file in path.glob("*.cq4")}

    with pytest.raises(BoomError):
        write_and_fail(appender)

    assert not is_locked(queue)
    assert {file.name: file.read_bytes() for file in path.glob("*.cq4")} == files
    appender.write_bytes(b"after")
    assert payloads(queue) == [b"before", b"after"]
    assert problems_of(path) == []


def test_a_document_rolls_back_when_asked_to(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    with appender.writing_document() as document:
        document.write_bytes(HIDDEN)
        document.rollback_on_close()
        index = document.index

    assert payloads(queue) == []
    assert appender.last_index_appended is None
    with pytest.raises(quire.errors.ClosedError):
        _ = document.index
    assert appender.write_bytes(b"takes its place") == index
    assert HIDDEN not in b"".join(file.read_bytes() for file in path.glob("*.cq4"))


def test_a_document_closed_by_hand_is_closed_once(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    document = appender.writing_document()
    document.write_bytes(b"by hand")
    document.close()
    document.close()

    assert payloads(queue) == [b"by hand"]
    with pytest.raises(quire.errors.ClosedError):
        document.write_bytes(b"more")
    with pytest.raises(quire.errors.ClosedError):
        document.write("more", 1)


def test_a_document_that_nobody_closes_is_dropped(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    document = appender.writing_document()
    document.write_bytes(HIDDEN)
    del document
    gc.collect()

    assert not is_locked(queue)
    appender.write_bytes(b"after")
    assert payloads(queue) == [b"after"]


def test_a_document_without_content_is_one_padding_byte(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with appender.writing_document():
        pass

    assert payloads(queue) == [b"\x8f"]


def test_while_a_document_is_open_its_thread_cannot_append(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    with quire.open(path) as same, appender.writing_document() as document:
        for other in (appender, queue.appender(), same.appender()):
            with pytest.raises(quire.errors.DocumentOpenError, match="a document is open"):
                other.write_bytes(b"x")
            with pytest.raises(quire.errors.DocumentOpenError, match="a document is open"):
                other.write_many([b"x"])
            with pytest.raises(quire.errors.DocumentOpenError, match="a document is open"):
                other.writing_document()
            with pytest.raises(quire.errors.DocumentOpenError, match="a document is open"):
                other.normalise_eofs()
        document.write_bytes(b"undisturbed")

    assert payloads(queue) == [b"undisturbed"]
    appender.write_bytes(b"after")
    assert payloads(queue) == [b"undisturbed", b"after"]


def test_while_a_document_is_open_another_task_cannot_append(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    async def write(other: quire.JournalAppender) -> None:
        with pytest.raises(quire.errors.DocumentOpenError, match="a document is open"):
            other.write_bytes(b"x")

    async def hold() -> None:
        with appender.writing_document() as document:
            document.write_bytes(b"held")
            await asyncio.gather(write(appender), write(queue.appender()))

    asyncio.run(hold())
    assert payloads(queue) == [b"held"]


def test_while_a_document_is_open_other_threads_wait(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with appender.writing_document() as document:
            waiting = pool.submit(queue.appender().write_bytes, b"second")
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.1)
            document.write_bytes(b"first")
        assert waiting.result(timeout=300) == document.index + 1

    assert payloads(queue) == [b"first", b"second"]


def test_another_thread_may_close_a_document(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    document = appender.writing_document()
    document.write_bytes(b"handed over")
    thread = threading.Thread(target=document.close)
    thread.start()
    thread.join()

    appender.write_bytes(b"after")
    assert payloads(queue) == [b"handed over", b"after"]


def test_a_reader_reads_on_while_a_document_is_open(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many([b"one", b"two"])
    with appender.writing_document():
        assert tailer.read_bytes() == b"one"
        assert tailer.read_many(5) == [b"two"]


def test_closing_the_queue_ends_an_open_document(path: Path, clock: quire.ManualClock) -> None:
    queue = quire.open(path, clock=clock)
    document = queue.appender().writing_document()
    document.write_bytes(HIDDEN)
    queue.close()
    with pytest.raises(quire.errors.ClosedError):
        document.close()

    with quire.open(path, clock=clock, timeout_s=0.1) as again:
        again.appender().write_bytes(b"after")
        assert payloads(again) == [b"after"]


def test_a_document_whose_lock_was_taken_away_is_not_published(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    for word in (UNLOCKED, 1):
        document = appender.writing_document()
        document.write_bytes(HIDDEN)
        poke(path, WRITE_LOCK, word)
        with pytest.raises(quire.errors.LockLostError):
            document.close()
        assert queue.table_value(WRITE_LOCK) == word
        poke(path, WRITE_LOCK, UNLOCKED)

    appender.write_bytes(b"after")
    assert payloads(queue) == [b"after"]


def test_a_document_that_is_not_there_yet_says_so(queue: quire.JournalQueue) -> None:
    with queue.tailer() as tailer, tailer.reading_document() as document:
        assert not document.is_present
        with pytest.raises(
            quire.errors.ClosedError, match="there is no document: is_present=False"
        ):
            document.map()
        with pytest.raises(
            quire.errors.ClosedError, match="there is no document: is_present=False"
        ):
            _ = document.bytes


def test_metadata_is_seen_by_those_who_ask_for_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    first = appender.write_bytes(b"one")
    with appender.writing_document(metadata=True) as document:
        assert document.is_metadata
        document.write("key", "value")
    appender.write_bytes(b"two")

    assert appender.last_index_appended == queue.last_index == first + 1
    assert payloads(queue) == [b"one", b"two"]
    with queue.tailer() as tailer:
        seen: list[tuple[bytes, bool, int]] = []
        tailer.move_to_index(first)
        for _ in range(3):
            with tailer.reading_document(include_metadata=True) as read:
                seen.append((bytes(read.bytes[:4]), read.is_metadata, read.index))
                if read.is_metadata:
                    assert read.map() == {"key": "value"}
    assert [row[1:] for row in seen] == [(False, first), (True, first + 1), (False, first + 1)]
    assert problems_of(path) == []


def test_double_buffering_builds_a_document_while_another_is_open(
    path: Path, clock: quire.ManualClock
) -> None:
    with quire.open(
        path, clock=clock, wait=quire.WaitOptions(double_buffer=True), roll_cycle="TEST4_DAILY"
    ) as queue:
        holder, buffered = queue.appender().writing_document(), queue.appender().writing_document()
        buffered.write_bytes(b"second")
        with pytest.raises(quire.errors.IndexNotAvailableError):
            _ = buffered.index
        holder.write_bytes(b"first")
        holder.close()
        buffered.close()

        assert buffered.index == holder.index + 1
        with queue.appender().writing_document() as direct:
            assert direct.index == holder.index + 2  # the lock was free: nothing to wait for
            direct.write_bytes(b"third")
        assert payloads(queue) == [b"first", b"second", b"third"]


def test_a_buffered_document_rolls_back_too(path: Path) -> None:
    with (
        quire.open(path, wait=quire.WaitOptions(double_buffer=True)) as queue,
        queue.appender() as appender,
    ):
        with appender.writing_document() as holder:
            holder.write_bytes(b"kept")
            with pytest.raises(BoomError):
                write_and_fail(appender)
            with appender.writing_document() as dropped:
                dropped.write_bytes(HIDDEN)
                dropped.rollback_on_close()
        assert payloads(queue) == [b"kept"]


def test_a_document_stays_in_the_cycle_in_which_it_began(
    queue: quire.JournalQueue, appender: quire.JournalAppender, clock: quire.ManualClock
) -> None:
    with appender.writing_document() as document:
        clock.advance(DAY_MS)
        document.write_bytes(b"yesterday")
    appender.write_bytes(b"today")

    today = queue.roll_cycle.cycle_at(START_MS) + 1
    assert [queue.roll_cycle.to_cycle(e.index) for e in queue.tailer()] == [today - 1, today]
