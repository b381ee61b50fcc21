"""Named tailers: at least once, resumed where the last reader of the name had finished."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS, exit_code, fork

TEXTS = [b"%d" % number for number in range(6)]
KEY = "index.risk"


@pytest.fixture
def indexes(queue: quire.JournalQueue, clock: quire.ManualClock) -> list[int]:
    """Six messages, three a day."""
    with queue.appender() as appender:
        found = [appender.write_bytes(text) for text in TEXTS[:3]]
        clock.advance(DAY_MS)
        return found + [appender.write_bytes(text) for text in TEXTS[3:]]


@pytest.fixture
def risk(queue: quire.JournalQueue, indexes: list[int]) -> Iterator[quire.JournalTailer]:
    """A named tailer of these messages."""
    assert queue.last_index == indexes[-1]
    with queue.tailer("risk") as tailer:
        yield tailer


def next_one(queue: quire.JournalQueue, name: str = "risk") -> bytes | None:
    """Return what a new reader of the name gets first, without finishing it."""
    tailer = queue.tailer(name, shared=True)
    return tailer.read_bytes()


WAYS: dict[str, Callable[[quire.JournalTailer], object]] = {
    "read": lambda tailer: tailer.read(),
    "read_bytes": lambda tailer: tailer.read_bytes(),
    "next": next,
    "payloads": lambda tailer: next(tailer.payloads()),
    "read_many": lambda tailer: tailer.read_many(1),
    "read_batch": lambda tailer: tailer.read_batch(1),
    "follow": lambda tailer: next(tailer.follow()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_message_is_finished_when_the_next_is_asked_for(
    queue: quire.JournalQueue, risk: quire.JournalTailer, way: str
) -> None:
    WAYS[way](risk)
    assert next_one(queue) == TEXTS[0]
    WAYS[way](risk)
    assert next_one(queue) == TEXTS[1]


def test_a_message_is_finished_when_its_document_closes(
    queue: quire.JournalQueue, risk: quire.JournalTailer, indexes: list[int]
) -> None:
    with risk.reading_document():
        assert next_one(queue) == TEXTS[0]
    assert queue.table_value(KEY) == indexes[1]
    assert next_one(queue) == TEXTS[1]


def test_a_document_that_is_not_closed_well_is_not_finished(
    queue: quire.JournalQueue, risk: quire.JournalTailer
) -> None:
    with risk.reading_document() as document:
        document.rollback_on_close()
    with pytest.raises(LookupError), risk.reading_document():
        raise LookupError
    risk.reading_document()

    assert next_one(queue) == TEXTS[0]


def test_a_commit_finishes_what_was_received(
    queue: quire.JournalQueue, risk: quire.JournalTailer, indexes: list[int]
) -> None:
    risk.commit()
    assert next_one(queue) == TEXTS[0]
    risk.read_many(4)
    risk.commit()
    risk.commit()

    assert queue.table_value(KEY) == indexes[4]
    assert next_one(queue) == TEXTS[4]


def test_waiting_for_the_next_finishes_the_last(
    queue: quire.JournalQueue, risk: quire.JournalTailer
) -> None:
    risk.read()
    risk.wait(0)
    assert next_one(queue) == TEXTS[1]
    risk.read_many(5)
    with pytest.raises(quire.errors.WaitTimeoutError):
        risk.wait(0)
    assert next_one(queue) is None


def test_a_batch_is_finished_when_the_next_is_asked_for(
    queue: quire.JournalQueue, risk: quire.JournalTailer
) -> None:
    assert risk.read_many(2) == TEXTS[:2]
    assert next_one(queue) == TEXTS[0]
    assert risk.read_batch(2).num_rows == 2
    assert next_one(queue) == TEXTS[2]
    assert risk.read_many(9) == TEXTS[4:]
    assert next_one(queue) == TEXTS[4]
    assert risk.read_many(9) == []
    assert next_one(queue) is None


def test_a_tailer_that_closes_well_has_finished(
    queue: quire.JournalQueue, indexes: list[int]
) -> None:
    with queue.tailer("risk") as tailer:
        assert tailer.read_many(2) == TEXTS[:2]
    assert queue.table_value(KEY) == indexes[2]

    by_hand = queue.tailer("risk")
    assert by_hand.read_bytes() == TEXTS[2]
    by_hand.close()
    by_hand.close()
    assert next_one(queue) == TEXTS[3]


def test_a_tailer_that_ends_in_an_exception_has_not(
    queue: quire.JournalQueue, indexes: list[int]
) -> None:
    def read_and_fail() -> None:
        with queue.tailer("risk") as tailer:
            assert [tailer.read_bytes(), tailer.read_bytes()] == TEXTS[:2]
            raise LookupError

    with pytest.raises(LookupError):
        read_and_fail()

    assert queue.table_value(KEY) == indexes[1]
    assert next_one(queue) == TEXTS[1]


def test_a_queue_that_is_closed_first_loses_no_message(
    path: Path, clock: quire.ManualClock
) -> None:
    with quire.open(path, clock=clock) as queue:
        queue.appender().write_many(TEXTS)
        tailer = queue.tailer("risk")
        tailer.read_many(2)
        tailer.read_many(1)
    tailer.close()

    with quire.open(path, clock=clock) as queue:
        assert next_one(queue) in TEXTS[2:4]


def test_a_wrong_type_is_not_finished(queue: quire.JournalQueue, risk: quire.JournalTailer) -> None:
    with pytest.raises(quire.errors.WireError):
        risk.read_map()
    with pytest.raises(quire.errors.WireError):
        risk.read_map()
    risk.commit()
    assert next_one(queue) == TEXTS[0]


def test_moving_stores_where_it_leads(
    queue: quire.JournalQueue, risk: quire.JournalTailer, indexes: list[int]
) -> None:
    for index in indexes:
        assert risk.move_to_index(index)
        assert queue.table_value(KEY) == index
    risk.to_start()
    assert queue.table_value(KEY) == indexes[0]
    risk.to_end()
    assert queue.table_value(KEY) == indexes[-1] + 1
    assert not risk.move_to_index(indexes[2] + 1)
    assert queue.table_value(KEY) == indexes[2] + 1


def test_a_tailer_resumes_in_another_process_day_and_direction(
    path: Path, queue: quire.JournalQueue, risk: quire.JournalTailer, clock: quire.ManualClock
) -> None:
    risk.read_many(3)
    risk.close()
    queue.close()
    clock.advance(DAY_MS)

    with quire.open(path, clock=clock) as again, again.tailer("risk") as tailer:
        again.appender().write_bytes(b"new")
        assert list(tailer.payloads()) == [*TEXTS[3:], b"new"]
    with quire.open(path, clock=clock) as again, again.tailer("risk") as tailer:
        assert tailer.read() is None
        tailer.direction = "backward"
        assert tailer.read_many(2) == [b"new", TEXTS[5]]


def test_a_tailer_waits_at_its_place_in_an_empty_queue(queue: quire.JournalQueue) -> None:
    with queue.tailer("risk") as tailer:
        assert tailer.read() is None
        assert tailer.index == 0
    assert queue.table_value(KEY) == 0
    queue.appender().write_bytes(TEXTS[0])
    assert next_one(queue) == TEXTS[0]


def test_a_place_whose_file_was_removed_leads_to_what_is_left(
    path: Path, queue: quire.JournalQueue, risk: quire.JournalTailer, indexes: list[int]
) -> None:
    risk.move_to_index(indexes[1])
    risk.close()
    (path / queue.roll_cycle.file_name(queue.roll_cycle.cycle_at(START_MS))).unlink()
    queue.refresh()

    with queue.tailer("risk") as tailer:
        assert [excerpt.data for excerpt in tailer.follow(timeout_s=0.05)] == TEXTS[3:]


def test_names_are_apart(queue: quire.JournalQueue, indexes: list[int]) -> None:
    names = ["risk", "book", "a b", "é", "x" * 100]
    for count, name in enumerate(names):
        with queue.tailer(name) as tailer:
            assert tailer.name == name
            tailer.read_many(count)
    stored = [queue.table_value(f"index.{name}") for name in names]
    assert stored == [0, indexes[1], indexes[2], indexes[2] + 1, indexes[4]]
    with queue.tailer() as unnamed:
        assert unnamed.name is None
        unnamed.commit()


@pytest.mark.parametrize("name", ["", "tab\t", "null\0", "€", "x" * 10_000], ids=ascii)
def test_a_name_that_no_key_can_have_is_refused(queue: quire.JournalQueue, name: str) -> None:
    with pytest.raises((ValueError, quire.QuireError)):
        queue.tailer(name)
    assert queue.entry_count == 0


def test_a_named_tailer_of_a_read_only_queue_is_refused(
    path: Path, queue: quire.JournalQueue, indexes: list[int]
) -> None:
    before = (path / "metadata.cq4t").read_bytes()
    with (
        quire.open(path, read_only=True) as again,
        pytest.raises(quire.errors.ReadOnlyError, match="read_only=True"),
    ):
        again.tailer("risk")
    assert (path / "metadata.cq4t").read_bytes() == before
    assert queue.last_index == indexes[-1]


def test_a_replicated_tailer_counts_its_changes(
    queue: quire.JournalQueue, indexes: list[int]
) -> None:
    key = "index.replicated:rep"
    with queue.tailer("replicated:rep") as tailer:
        assert queue.table_value(f"{key}.lock") == -(2**63)
        tailer.read_many(2)
        tailer.commit()
        assert queue.table_value(key) == indexes[2]
        assert queue.table_value(f"{key}.version") == 1
        assert queue.table_value(f"{key}.lock") == -(2**63)


def read_until_killed(path: Path, way: str, count: int, ready: int) -> None:
    with quire.open(path) as queue, queue.tailer("risk") as tailer:
        for _ in range(count):
            WAYS[way](tailer)
        os.write(ready, b"!")
        signal.pause()


@pytest.mark.parametrize(("way", "count"), [("read", 2), ("read_many", 2), ("read_batch", 4)])
def test_a_killed_reader_gets_its_last_message_again(
    path: Path, queue: quire.JournalQueue, indexes: list[int], way: str, count: int
) -> None:
    assert queue.last_index == indexes[-1]
    ready, tell = os.pipe()
    pid = fork(lambda: read_until_killed(path, way, count, tell))
    assert os.read(ready, 1) == b"!"
    os.kill(pid, signal.SIGKILL)
    assert exit_code(pid) == -signal.SIGKILL
    os.close(ready)
    os.close(tell)

    assert next_one(queue) == TEXTS[count - 1]
