"""Arrow columns in and out: what they hold is written and read without a Python object each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quire
from queues import DAY_MS, UNLOCKED, WRITE_LOCK, payloads, problems_of

WORDS = ["one", "zwei", "três", "四", "x" * 40]
BYTES = [word.encode() for word in WORDS]
BINARY = [pa.binary(), pa.large_binary()]
STRINGS = [pa.string(), pa.large_string()]
OTHERS: list[Any] = [
    pa.array([1, 2]),
    pa.array([[b"x"]]),
    pa.array([b"ab"], type=pa.binary(2)),
    pa.array([b"x"]).dictionary_encode(),
    pa.chunked_array([[1.5]]),
]


def text(word: str) -> bytes:
    """Return a text value as it is stored."""
    data = word.encode()
    return bytes([0xE0 + len(data)]) + data if len(data) < 32 else b"\xb8%c" % len(data) + data


def payload_column(batch: pa.RecordBatch) -> pa.Array[Any]:
    return batch.column("payload")  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.parametrize("kind", BINARY, ids=str)
def test_a_binary_column_is_written_as_it_is(
    queue: quire.JournalQueue, appender: quire.JournalAppender, kind: pa.DataType
) -> None:
    last = appender.write_batch(pa.array(BYTES, type=kind))

    assert payloads(queue) == BYTES
    assert last == queue.last_index == appender.last_index_appended


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_a_string_column_is_written_as_text(
    queue: quire.JournalQueue, appender: quire.JournalAppender, kind: pa.DataType
) -> None:
    appender.write_batch(pa.array(["", *WORDS, "😀"], type=kind))

    with queue.tailer() as tailer:
        assert [tailer.read_text() for _ in range(7)] == ["", *WORDS, "😀"]
        assert tailer.read_text() is None
    assert payloads(queue)[:-1] == [text(word) for word in ["", *WORDS]]


@pytest.mark.parametrize("kind", BINARY, ids=str)
def test_of_a_slice_only_its_elements_are_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender, kind: pa.DataType
) -> None:
    column = pa.array([b"", *BYTES, b""], type=kind)

    appender.write_batch(column.slice(1, 3))
    appender.write_batch(column[2:4])

    assert payloads(queue) == [*BYTES[:3], *BYTES[1:3]]


def test_a_batch_of_payloads_ends_before_it_has_too_many_bytes(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many([b"x" * 10] * 5 + [b"y" * 30])

    sizes = [tailer.read_batch(max_bytes=29).num_rows for _ in range(5)]

    assert sizes == [2, 2, 1, 1, 0]


def test_a_column_of_chunks_is_written_chunk_by_chunk(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    column = pa.chunked_array([BYTES[:2], [], BYTES[2:]], type=pa.binary())

    last = appender.write_batch(column)

    assert payloads(queue) == BYTES
    assert last == queue.last_index
    appender.write_batch(column.slice(1, 3))
    assert payloads(queue)[5:] == BYTES[1:4]


def test_a_column_without_elements_writes_nothing(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    assert appender.write_batch(pa.array([], type=pa.binary())) is None
    assert appender.write_batch(pa.array(BYTES).slice(2, 0)) is None
    assert appender.write_batch(pa.chunked_array([], type=pa.string())) is None
    assert queue.cycles == []


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pa.array([b"one", None], type=pa.binary()), "null_count=1"),
        (pa.array([None, "two"], type=pa.string()), "null_count=1"),
        (pa.chunked_array([[b"one"], [b"two", None]], type=pa.binary()), "null_count=1"),
        (pa.array([b"one", b"", b"three"], type=pa.binary()), "at least one byte"),
        (pa.array([b"one", b""], type=pa.large_binary()), "at least one byte"),
        (pa.chunked_array([[b"one"], [b"two", b""]], type=pa.binary()), "at least one byte"),
    ],
    ids=["null", "null string", "null in a chunk", "empty", "empty in large", "empty in a chunk"],
)
def test_a_column_with_a_null_or_an_empty_element_is_refused_whole(
    queue: quire.JournalQueue, appender: quire.JournalAppender, column: pa.Array[Any], names: str
) -> None:
    with pytest.raises(ValueError, match=names):
        appender.write_batch(column)

    assert payloads(queue) == []
    assert queue.table_value(WRITE_LOCK) == UNLOCKED


@pytest.mark.parametrize("column", OTHERS, ids=lambda column: str(column.type))
def test_a_column_of_something_else_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender, column: pa.Array[Any]
) -> None:
    with pytest.raises(TypeError, match="binary or string"):
        appender.write_batch(column)

    assert payloads(queue) == []


def test_the_very_first_index_is_returned_too(path: Path) -> None:
    with quire.open(path, clock=quire.ManualClock(0)) as queue, queue.appender() as appender:
        assert appender.write_batch(pa.array([b"in cycle 0"])) == 0
        assert (queue.first_index, queue.last_index, queue.entry_count) == (0, 0, 1)


def test_offsets_that_leave_the_data_are_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    offsets = [[0, 9], [4, 2], [-1, 2], [0]]
    for pair in offsets:
        ends = pa.array(pair, type=pa.int32()).buffers()[1]
        assert ends
        with pytest.raises(ValueError, match="row=0"):
            appender._write_column(ends, b"data", count=1, start=0, wide=False, text=False)

    assert payloads(queue) == []


def test_a_batch_longer_than_its_cycle_leaves_the_messages_that_fit(
    path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with pytest.raises(quire.errors.CycleFullError):
        appender.write_batch(pa.array([b"%d" % number for number in range(5000)]))

    written = payloads(queue)
    assert written == [b"%d" % number for number in range(len(written))]
    assert queue.last_index == appender.last_index_appended
    assert problems_of(path) == []


def test_a_batch_that_was_read_holds_indexes_and_payloads(
    queue: quire.JournalQueue,
    appender: quire.JournalAppender,
    clock: quire.ManualClock,
    tailer: quire.JournalTailer,
) -> None:
    appender.write_many(BYTES[:2])
    clock.advance(DAY_MS)
    appender.write_many(BYTES[2:])
    expected = [(excerpt.index, excerpt.data) for excerpt in queue.tailer()]

    batch = tailer.read_batch()

    assert batch.schema.names == ["index", "payload"]
    assert batch.schema.types == [pa.uint64(), pa.binary()]
    batch.validate(full=True)
    assert list(zip(*batch.to_pydict().values(), strict=True)) == expected
    assert tailer.read_batch().num_rows == 0


def test_batches_are_no_larger_than_asked_for(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many(BYTES)

    rows = [tailer.read_batch(count).num_rows for count in (2, 0, 1, 100, 100)]

    assert rows == [2, 0, 1, 2, 0]


def test_a_batch_outlives_its_queue(path: Path, queue: quire.JournalQueue) -> None:
    with queue.appender() as appender, queue.tailer() as tailer:
        appender.write_many(BYTES)
        batch = tailer.read_batch()
    queue.close()
    for file in path.iterdir():
        file.unlink()

    assert batch.column("payload").to_pylist() == BYTES


def test_what_was_read_as_a_batch_can_be_written_as_one(
    queue: quire.JournalQueue, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many(BYTES)
    appender.write_batch(payload_column(tailer.read_batch()))

    assert payloads(queue) == BYTES * 2


def test_a_batch_may_be_read_backward(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many(BYTES)
    tailer.direction = "backward"
    tailer.to_end()

    assert tailer.read_batch(3).column("payload").to_pylist() == BYTES[:1:-1]
    assert tailer.read_many(9) == BYTES[1::-1]
