"""A thread makes file space present ahead of a fast appender, and of no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import exit_code, fork, mapped, payloads, threads_named

THREAD = "quire-pretouch"
PATIENCE_S = 300.0
BULK = [bytes([number]) * 1000 for number in range(256)]


def reached(done: Callable[[], bool], work: Callable[[], object]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        work()
        time.sleep(0.01)  # a thread may be slow to start, and the disk is not to fill meanwhile
    return done()


@pytest.fixture
def threads() -> Callable[[], int]:
    """Count the threads of the test: that of a queue before it may still be ending."""
    others = threads_named(THREAD)
    return lambda: len(threads_named(THREAD) - others)


@pytest.fixture
def fast(tmp_path: Path, threads: Callable[[], int]) -> quire.JournalQueue:
    """A queue that was written to fast enough for its thread to be there."""
    queue = quire.open(tmp_path)
    appender = queue.appender()
    assert reached(lambda: threads() == 1, lambda: appender.write_many(BULK))
    return queue


def test_a_fast_appender_has_a_thread_that_ends_with_the_queue(
    fast: quire.JournalQueue, threads: Callable[[], int]
) -> None:
    fast.close()
    assert mapped(fast.path) == []
    assert reached(lambda: threads() == 0, lambda: None)


def test_what_it_touched_is_what_was_written(fast: quire.JournalQueue) -> None:
    with fast:
        found = payloads(fast)
        assert found == BULK * (len(found) // len(BULK))


def test_a_slow_appender_has_none(tmp_path: Path, threads: Callable[[], int]) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        for number in range(200):
            appender.write_bytes(bytes([number]) * 1000)
            time.sleep(0.001)
        assert threads() == 0


def test_it_can_be_refused(tmp_path: Path, threads: Callable[[], int]) -> None:
    with quire.open(tmp_path, pretouch=False) as queue, queue.appender() as appender:
        for _ in range(100):
            appender.write_many(BULK)
        assert threads() == 0


def test_a_child_of_a_fork_has_one_of_its_own(
    fast: quire.JournalQueue, threads: Callable[[], int]
) -> None:
    def child() -> None:
        assert threads() == 0
        fast.close()
        with quire.open(fast.path) as own, own.appender() as appender:
            assert reached(lambda: threads() == 1, lambda: appender.write_many(BULK))

    with fast:
        assert exit_code(fork(child)) == 0
