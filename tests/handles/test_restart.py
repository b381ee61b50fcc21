"""What a power cut left, made by hand: see docs/durability.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import quire
from queues import (
    APPEND_LOCK,
    DAY_MS,
    START_MS,
    backward,
    forward,
    payloads,
    poke,
    problems_of,
    roll_files,
)

PAGE = 4096
LONG_AGO = 1_700_000_000
MESSAGES = [b"%04d" % number * 10 for number in range(400)]


@pytest.fixture
def cut(path: Path, clock: quire.ManualClock) -> Path:
    """A queue of some pages, written before the machine was started."""
    with opened(path, clock) as queue, queue.appender() as appender:
        appender.write_many(MESSAGES)
    return path


def opened(path: Path, clock: quire.ManualClock) -> quire.JournalQueue:
    return quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16)


def lose(path: Path, page: int) -> None:
    """Have one page of the newest roll file as if it had never reached the disk."""
    newest = max(path.glob("*.cq4"))
    with newest.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(bytes(PAGE))
    os.utime(newest, (LONG_AGO, LONG_AGO))


def is_start_of_messages(kept: list[bytes]) -> bool:
    """Whether these are the first messages; the last one may have lost its end."""
    *whole, last = kept
    sent = MESSAGES[len(whole)]
    return (
        whole == MESSAGES[: len(whole)]
        and last == last.rstrip(b"\0").ljust(len(sent), b"\0")
        and sent.startswith(last.rstrip(b"\0"))
    )


def test_a_file_ends_at_its_first_loss_and_goes_on_there(
    cut: Path, clock: quire.ManualClock
) -> None:
    lose(cut, 2)

    with opened(cut, clock) as queue, queue.appender() as appender:
        kept = payloads(queue)
        assert is_start_of_messages(kept)
        assert 0 < len(kept) < len(MESSAGES)
        assert queue.entry_count == len(kept)
        new = appender.write_many(b"new %d" % number for number in range(200))
        assert payloads(queue)[len(kept) :] == [b"new %d" % number for number in range(200)]
        assert queue.last_index == new
        assert forward(queue) == backward(queue)[::-1]
    assert not problems_of(cut)


def test_what_lay_after_a_loss_is_kept_in_a_file_beside(
    cut: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    lose(cut, 2)

    with opened(cut, clock):
        (aside,) = cut.glob("*.cq4-*.discard")
        assert MESSAGES[-1] in aside.read_bytes()
        assert "messages were lost, as by a power cut" in caplog.text


def test_a_queue_without_loss_stays_as_it_is(cut: Path, clock: quire.ManualClock) -> None:
    newest = max(cut.glob("*.cq4"))
    os.utime(newest, (LONG_AGO, LONG_AGO))
    before = newest.read_bytes()

    with opened(cut, clock) as queue:
        assert payloads(queue) == MESSAGES
    assert newest.read_bytes() == before
    assert not list(cut.glob("*.discard"))
    assert newest.stat().st_mtime > LONG_AGO  # it is looked at once


def test_files_written_since_the_machine_was_started_are_left_alone(
    cut: Path, clock: quire.ManualClock
) -> None:
    lose(cut, 2)
    newest = max(cut.glob("*.cq4"))
    os.utime(newest)
    before = newest.read_bytes()

    with opened(cut, clock):
        pass
    assert newest.read_bytes() == before
    assert not list(cut.glob("*.discard"))


def test_a_read_only_queue_repairs_nothing(cut: Path) -> None:
    lose(cut, 2)
    before = roll_files(cut)

    with quire.open(cut, read_only=True) as queue:
        assert is_start_of_messages(payloads(queue))
    assert roll_files(cut) == before


@pytest.mark.parametrize("rolled", [False, True])
def test_a_named_tailer_goes_on_after_a_loss(
    path: Path, clock: quire.ManualClock, *, rolled: bool
) -> None:
    with opened(path, clock) as queue, queue.appender() as appender:
        last = appender.write_bytes(b"kept")
        assert queue.tailer("risk").index
    poke(path, "index.risk", last + 100)

    with opened(path, clock) as queue, queue.appender() as appender:
        if rolled:
            clock.advance(DAY_MS)
            appender.write_bytes(b"new")
        tailer = queue.tailer("risk")
        if not rolled:
            appender.write_bytes(b"new")
        assert tailer.read_bytes() == b"new"


def test_a_named_tailer_goes_on_after_a_file_that_is_gone(path: Path) -> None:
    for day, text in enumerate([b"kept", b"lost"]):
        clock = quire.ManualClock(START_MS + day * DAY_MS)
        with opened(path, clock) as queue, queue.appender() as appender:
            appender.write_bytes(text)
            with queue.tailer("risk") as tailer:
                assert tailer.read_many(9)
    max(path.glob("*.cq4")).unlink()

    clock = quire.ManualClock(START_MS + 2 * DAY_MS)
    with opened(path, clock) as queue, queue.appender() as appender:
        tailer = queue.tailer("risk")
        appender.write_bytes(b"new")
        assert tailer.read_bytes() == b"new"


def test_a_named_tailer_starts_over_where_all_files_are_gone(
    path: Path, clock: quire.ManualClock
) -> None:
    with opened(path, clock) as queue, queue.appender() as appender:
        appender.write_many(MESSAGES)
        with queue.tailer("risk") as tailer:
            assert tailer.read_many(9)
    max(path.glob("*.cq4")).unlink()

    with opened(path, clock) as queue, queue.appender() as appender:
        tailer = queue.tailer("risk")
        appender.write_bytes(b"new")
        assert tailer.read_bytes() == b"new"


def test_an_append_lock_without_its_value_is_nobodys(path: Path, clock: quire.ManualClock) -> None:
    with opened(path, clock):
        pass
    poke(path, APPEND_LOCK, 0)

    with opened(path, clock) as queue, queue.appender() as appender:
        appender.write_bytes(b"x")
        assert payloads(queue) == [b"x"]
