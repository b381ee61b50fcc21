"""Cycles that were deleted before a tailer read them: said once, and passed over or refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import DAY_MS

DAYS = 6


def message(day: int, number: int) -> bytes:
    return b"%d.%d" % (day, number)


@pytest.fixture
def cycles(queue: quire.JournalQueue, clock: quire.ManualClock) -> list[int]:
    """A cycle a day, of three messages each."""
    with queue.appender() as appender:
        for day in range(DAYS):
            appender.write_many([message(day, number) for number in range(3)])
            clock.advance(DAY_MS)
    return queue.cycles


def delete(queue: quire.JournalQueue, *cycles: int) -> None:
    for cycle in cycles:
        Path(queue.file_for_cycle(cycle)).unlink()
    queue.refresh()


def read_some(queue: quire.JournalQueue, count: int) -> None:
    with queue.tailer("job") as tailer:
        assert len(tailer.read_many(count)) == count


def of_days(*days: int) -> list[bytes]:
    return [message(day, number) for day in days for number in range(3)]


def of_batch(tailer: quire.JournalTailer) -> object:
    rows: list[dict[str, Any]] = tailer.read_batch(1).to_pylist()
    return rows[0]["payload"]


FIRST_READ: dict[str, Callable[[quire.JournalTailer], object]] = {
    "read_bytes": lambda tailer: tailer.read_bytes(),
    "next": lambda tailer: next(tailer).data,
    "read_many": lambda tailer: tailer.read_many(1)[0],
    "read_batch": of_batch,
    "follow": lambda tailer: next(tailer.follow(0)).data,
}


@pytest.mark.parametrize("way", FIRST_READ)
def test_the_first_read_gives_the_first_message_that_is_left(
    queue: quire.JournalQueue, cycles: list[int], way: str
) -> None:
    read_some(queue, 4)
    delete(queue, *cycles[:3])
    with queue.tailer("job") as tailer:
        assert FIRST_READ[way](tailer) == message(3, 0)


def test_a_job_that_reads_once_each_time_gets_on(
    queue: quire.JournalQueue, cycles: list[int]
) -> None:
    read_some(queue, 4)
    delete(queue, *cycles[:3])
    found: list[bytes | None] = []
    for _ in range(4):
        with queue.tailer("job") as tailer:
            found.append(tailer.read_bytes())
    assert found == [*of_days(3), message(4, 0)]


def test_it_is_said_once_with_the_first_index_that_is_left(
    queue: quire.JournalQueue, cycles: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    read_some(queue, 4)
    expected = queue.roll_cycle.to_index(cycles[1], 1)
    delete(queue, *cycles[:3])
    first = queue.roll_cycle.to_index(cycles[3], 0)
    for _ in range(3):
        with queue.tailer("job") as tailer:
            tailer.wait(0)
    (record,) = caplog.records
    assert record.name == "quire"
    assert record.levelname == "WARNING"
    said = (
        f"deleted before they were read: tailer=job expected={expected:#x} first={first:#x} path="
    )
    assert said in record.message
    assert str(queue.path) in record.message


def test_it_is_passed_over_without_a_word_when_asked(
    queue: quire.JournalQueue, cycles: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    read_some(queue, 4)
    delete(queue, *cycles[:3])
    with queue.tailer("job", on_missing="skip") as tailer:
        assert tailer.read_bytes() == message(3, 0)
    assert caplog.records == []


def test_it_is_refused_when_asked_and_nothing_moves(
    queue: quire.JournalQueue, cycles: list[int]
) -> None:
    read_some(queue, 4)
    stored = queue.table_value("index.job")
    delete(queue, *cycles[:3])
    with pytest.raises(quire.errors.DataLossError, match=r"=job expected=0x\w+ first=0x") as raised:
        queue.tailer("job", on_missing="raise")
    with pytest.raises(quire.errors.DataLossError):
        queue.tailer("job", on_missing="raise")
    assert queue.table_value("index.job") == stored
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    with queue.tailer("job", on_missing="skip") as tailer:
        assert list(tailer.payloads()) == of_days(3, 4, 5)


def test_a_deleted_cycle_in_the_middle_is_said_too(
    queue: quire.JournalQueue, cycles: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    read_some(queue, 4)
    delete(queue, cycles[1], cycles[2])
    with pytest.raises(quire.errors.DataLossError):
        queue.tailer("job", on_missing="raise")
    with queue.tailer("job") as tailer:
        assert list(tailer.payloads()) == of_days(3, 4, 5)
    (record,) = caplog.records
    assert "deleted before they were read" in record.message


def test_where_nothing_is_left_that_is_said(
    queue: quire.JournalQueue, cycles: list[int], clock: quire.ManualClock
) -> None:
    read_some(queue, 4)
    delete(queue, *cycles)
    with pytest.raises(quire.errors.DataLossError, match="first=none"):
        queue.tailer("job", on_missing="raise")
    with queue.tailer("job") as tailer:
        assert tailer.read_bytes() is None
        queue.appender().write_bytes(b"new")
        assert tailer.read_bytes() == b"new"
    assert clock.now_ms


@pytest.mark.parametrize("name", [None, "job"])
def test_a_tailer_at_work_sees_that_its_next_cycles_vanish(
    queue: quire.JournalQueue, cycles: list[int], name: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    tailer = queue.tailer(name)
    strict = queue.tailer(on_missing="raise")
    for each in (tailer, strict):
        assert each.read_many(2) == of_days(0)[:2]
    delete(queue, *cycles[1:4])
    assert list(tailer.payloads()) == [message(0, 2), *of_days(4, 5)]
    (record,) = caplog.records
    expected = queue.roll_cycle.to_index(cycles[1], 0)
    first = queue.roll_cycle.to_index(cycles[4], 0)
    assert f"tailer={name or '-'} expected={expected:#x} first={first:#x}" in record.message

    assert strict.read_bytes() == message(0, 2)
    with pytest.raises(quire.errors.DataLossError):
        strict.read_bytes()
    assert strict.index < expected  # nothing was passed over yet
    assert list(strict.payloads()) == of_days(4, 5)


def test_days_without_a_cycle_are_no_loss(
    queue: quire.JournalQueue, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with queue.appender() as appender:
        for day in range(3):
            appender.write_bytes(message(day, 0))
            clock.advance(5 * DAY_MS)
    tailer = queue.tailer("job", on_missing="raise")
    assert list(tailer.payloads()) == [message(day, 0) for day in range(3)]
    assert caplog.records == []


def test_another_word_is_refused(queue: quire.JournalQueue) -> None:
    with pytest.raises(
        ValueError, match="on_missing=\"ignore\": expected 'raise', 'warn' or 'skip'"
    ):
        queue.tailer(on_missing="ignore")  # type: ignore[arg-type]


def test_sparks_name_is_an_alias() -> None:
    spark = pytest.importorskip("quire.spark")
    assert spark.DataLossError is quire.errors.DataLossError
    assert issubclass(quire.errors.DataLossError, quire.QuireError)


MOVES: dict[str, Callable[[quire.JournalTailer, int], object]] = {
    "by index": lambda tailer, index: tailer.move_to_index(index),
    "by index, twice": lambda tailer, index: [tailer.move_to_index(index) for _ in range(2)],
    "back": lambda tailer, index: [len(tailer.read_many(9)), tailer.move_to_index(index)],
}


@pytest.mark.parametrize("way", MOVES)
def test_a_cycle_that_goes_after_a_tailer_moved_is_said(
    queue: quire.JournalQueue, cycles: list[int], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    to_index = queue.roll_cycle.to_index
    with queue.tailer() as tailer:
        MOVES[way](tailer, to_index(cycles[1], 1))
        assert tailer.read_bytes() == message(1, 1)
        delete(queue, cycles[2])
        assert list(tailer.payloads()) == [message(1, 2), *of_days(3, 4, 5)]
    (record,) = caplog.records
    said = f"expected={to_index(cycles[2], 0):#x} first={to_index(cycles[3], 0):#x}"
    assert said in record.message


def test_of_cycles_further_ahead_only_the_next_one_is_missed(
    queue: quire.JournalQueue,
    cycles: list[int],
    clock: quire.ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A limit, as docs/retention.md says: nothing shows that there was a cycle."""
    with queue.tailer() as tailer, queue.appender() as appender:
        assert len(tailer.read_many(2)) == 2
        delete(queue, cycles[3])  # not the next one
        assert tailer.read_many(100) == [message(0, 2), *of_days(1, 2, 4, 5)]
        for day in (DAYS, DAYS + 1):  # made while the tailer is at the end
            appender.write_bytes(message(day, 0))
            clock.advance(DAY_MS)
        delete(queue, queue.cycles[-2])
        assert list(tailer.payloads()) == [message(DAYS + 1, 0)]
    assert "messages were deleted" not in caplog.text
