"""Tailers: what they deliver, in which order, in which state, and how they wait for more."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

import quire
from queues import DAY_MS, payloads

TEXTS = [b"0", b"1", b"2", b"3", b"4", b"5"]


@pytest.fixture
def indexes(appender: quire.JournalAppender, clock: quire.ManualClock) -> list[int]:
    """Six messages, three a day."""
    found = [appender.write_bytes(text) for text in TEXTS[:3]]
    clock.advance(DAY_MS)
    return found + [appender.write_bytes(text) for text in TEXTS[3:]]


def test_every_way_of_reading_delivers_the_same(
    queue: quire.JournalQueue, indexes: list[int]
) -> None:
    excerpts = [quire.Excerpt(*pair) for pair in zip(indexes, TEXTS, strict=True)]
    tailers = [queue.tailer() for _ in range(6)]

    assert list(tailers[0]) == excerpts
    assert list(tailers[1].payloads()) == TEXTS
    assert [tailers[2].read() for _ in TEXTS] == excerpts
    assert [tailers[3].read_bytes() for _ in TEXTS] == TEXTS
    assert tailers[4].read_many(100) == TEXTS
    for excerpt in excerpts:
        with tailers[5].reading_document() as document:
            assert document.is_present
            assert not document.is_metadata
            assert quire.Excerpt(document.index, bytes(document.bytes)) == excerpt


def test_nothing_yet_is_none_an_empty_list_or_an_end(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    def nothing_there() -> None:
        assert list(tailer) == []
        assert list(tailer.payloads()) == []
        assert tailer.read() is None
        assert tailer.read_bytes() is None
        assert tailer.read_text() is None
        assert tailer.read_map() is None
        assert tailer.read_many(3) == []
        assert list(tailer.follow(timeout_s=0)) == []
        with tailer.reading_document() as document:
            assert not document.is_present
            assert not document.is_metadata
            with pytest.raises(quire.errors.ClosedError):
                _ = document.bytes

    nothing_there()
    index = appender.write_text("now")
    assert tailer.read_text() == "now"
    nothing_there()
    assert tailer.index == index + 1
    assert queue.last_index == index


def test_an_iterator_that_ended_goes_on_when_there_is_more(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    messages = tailer.payloads()
    appender.write_bytes(b"one")
    assert list(messages) == [b"one"]
    appender.write_bytes(b"two")
    assert list(messages) == [b"two"]
    appender.write_bytes(b"three")
    assert [excerpt.data for excerpt in tailer] == [b"three"]


def test_tailers_of_a_queue_do_not_disturb_one_another(
    queue: quire.JournalQueue, indexes: list[int]
) -> None:
    tailers = [queue.tailer() for _ in range(1000)]
    for place, tailer in enumerate(tailers):
        assert tailer.move_to_index(indexes[place % 6])
    assert [tailer.read_bytes() for tailer in tailers] == [TEXTS[i % 6] for i in range(1000)]


def test_threads_that_share_a_tailer_get_every_message_once(path: Path) -> None:
    messages = [b"%d" % number for number in range(3000)]
    with quire.open(path, block_bytes=1) as queue, queue.tailer() as tailer:
        queue.appender().write_many(messages)

        def read(_: int) -> list[bytes]:
            return [*tailer.payloads()]

        with ThreadPoolExecutor(4) as pool:
            found = [message for part in pool.map(read, range(4)) for message in part]

    assert sorted(found, key=int) == messages


@pytest.mark.parametrize("count", [0, 1, 2, 4, 6, 7, 1000])
def test_many_are_at_most_as_many_as_asked_for(
    tailer: quire.JournalTailer, indexes: list[int], count: int
) -> None:
    assert tailer.read_many(count) == TEXTS[:count]
    assert tailer.index == (indexes[count] if count < 6 else indexes[-1] + 1)


def test_a_negative_count_is_refused(tailer: quire.JournalTailer, indexes: list[int]) -> None:
    for read in (tailer.read_many, tailer.read_batch):
        with pytest.raises(ValueError, match="invalid count"):
            read(-1)
    assert tailer.index == indexes[0]


def test_the_wrong_type_raises_and_leaves_the_position(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_bytes(b"\xa1")
    appender.write_text("text")
    appender.write_map({"a": 1})

    for read in (tailer.read_text, tailer.read_map):
        with pytest.raises(quire.errors.WireError):
            read()
    assert tailer.read_bytes() == b"\xa1"
    with pytest.raises(quire.errors.WireError):
        tailer.read_map()
    assert tailer.read_text() == "text"
    with pytest.raises(quire.errors.WireError):
        tailer.read_text()
    with tailer.reading_document() as document, pytest.raises(quire.errors.WireError):
        document.text()
    assert tailer.read_bytes() is None


def test_a_null_text_is_not_mistaken_for_nothing_yet(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    for null in (b"\xbb", b"\xb8\x80\x00"):
        appender.write_bytes(null)
        with pytest.raises(quire.errors.WireError):
            tailer.read_text()
        with tailer.reading_document() as document, pytest.raises(quire.errors.WireError):
            document.text()


def test_an_open_document_is_stepped_over_when_it_closes(
    tailer: quire.JournalTailer, indexes: list[int]
) -> None:
    with tailer.reading_document() as document:
        assert tailer.index == document.index == indexes[0]
    assert tailer.index == indexes[1]

    with tailer.reading_document() as document:
        document.rollback_on_close()
    assert tailer.index == indexes[1]

    with pytest.raises(LookupError), tailer.reading_document():
        raise LookupError
    assert tailer.read_bytes() == TEXTS[1]

    by_hand = tailer.reading_document()
    by_hand.close()
    by_hand.close()
    assert tailer.index == indexes[2] + 1  # it has not looked for the next day yet
    assert tailer.read_bytes() == TEXTS[3]


def test_a_view_raises_once_its_document_is_closed_and_its_slices_stay(
    queue: quire.JournalQueue, appender: quire.JournalAppender, path: Path
) -> None:
    appender.write_bytes(b"a message read in place")
    tailer = queue.tailer()
    with tailer.reading_document() as document:
        view = document.bytes
        assert view.readonly
        assert (view.format, view.itemsize, view.contiguous) == ("B", 1, True)
        part = view[2:9]
    with pytest.raises(quire.errors.ClosedError):
        _ = document.bytes
    with pytest.raises(quire.errors.ClosedError):
        document.map()

    tailer.close()
    appender.write_many([bytes(60_000)] * 20)
    queue.close()
    for file in path.iterdir():
        file.unlink()
    assert bytes(part) == b"message"
    with pytest.raises(TypeError):
        part[0] = 0


def test_an_excerpt_is_equal_by_value_and_pickles() -> None:
    excerpt = quire.Excerpt(7, b"data")

    assert excerpt == quire.Excerpt(7, b"data")
    assert hash(excerpt) == hash(quire.Excerpt(7, b"data"))
    assert excerpt not in [quire.Excerpt(8, b"data"), quire.Excerpt(7, b"other")]
    assert {excerpt, quire.Excerpt(7, b"data")} == {excerpt}
    assert pickle.loads(pickle.dumps(excerpt)) == excerpt
    assert repr(excerpt) == "Excerpt(index=0x7, 'data')"
    with pytest.raises(AttributeError):
        excerpt.index = 8  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("other", ["x", 7, None, (7, b"data")], ids=repr)
def test_an_excerpt_differs_from_anything_else(other: object) -> None:
    assert (quire.Excerpt(7, b"data") == other) is False
    assert (quire.Excerpt(7, b"data") != other) is True


def test_following_waits_for_more_and_ends_after_the_time_given(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_bytes(b"already there")
    waited = threading.Event()

    def write() -> None:
        waited.wait(300)
        queue.appender().write_many([b"later", b"and later"])

    writer = threading.Thread(target=write)
    writer.start()
    found: list[bytes] = []
    for excerpt in tailer.follow(timeout_s=30):
        found.append(excerpt.data)
        waited.set()
        if len(found) == 3:
            break
    writer.join()

    assert found == [b"already there", b"later", b"and later"]
    assert list(tailer.follow(timeout_s=0.05)) == []


def test_waiting_ends_with_a_message_or_an_error(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    start = time.monotonic()
    with pytest.raises(quire.errors.WaitTimeoutError, match=r"timeout_s=0\.05") as caught:
        tailer.wait(0.05)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - start >= 0.05

    index = appender.write_bytes(b"there")
    tailer.wait(0)
    tailer.wait()
    assert tailer.index == index
    assert tailer.read_bytes() == b"there"


def test_async_iteration_waits_without_holding_up_the_loop(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        async for excerpt in tailer:
            found.append(excerpt.data)
            if len(found) == 3:
                break
        return found

    async def write() -> None:
        for text in (b"one", b"two", b"three"):
            await asyncio.sleep(0.01)
            appender.write_bytes(text)

    async def both() -> list[bytes]:
        return (await asyncio.gather(read(), write()))[0]

    assert asyncio.run(both()) == [b"one", b"two", b"three"]
    assert payloads(queue) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("direction", ["forward", "backward", "none"])
def test_a_direction_is_kept(
    tailer: quire.JournalTailer, direction: Literal["forward", "backward", "none"]
) -> None:
    assert tailer.direction == "forward"
    tailer.direction = direction
    assert tailer.direction == direction
    with pytest.raises(ValueError, match="known=forward, backward, none"):
        tailer.direction = "sideways"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    assert tailer.direction == direction
