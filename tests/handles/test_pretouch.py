"""A thread makes file space present ahead of a fast appender, and of no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import exit_code, fork, payloads

THREAD = "quire-pretouch"
PATIENCE_S = 30.0
BULK = [bytes([number]) * 1000 for number in range(256)]


def threads() -> int:
    names = (task / "comm" for task in Path("/proc/self/task").iterdir())
    return sum(name.read_text().strip() == THREAD for name in names if name.exists())


def reached(done: Callable[[], bool], work: Callable[[], object]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < deadline:
        work()
    return done()


@pytest.fixture
def fast(tmp_path: Path) -> quire.Queue:
    """A queue that was written to fast enough for its thread to be there."""
    queue = quire.open(tmp_path)
    appender = queue.appender()
    assert reached(lambda: threads() == 1, lambda: appender.write_many(BULK))
    return queue


def test_a_fast_appender_has_a_thread_that_ends_with_the_queue(fast: quire.Queue) -> None:
    fast.close()
    assert ".cq4\n" not in Path("/proc/self/maps").read_text()
    assert reached(lambda: threads() == 0, lambda: time.sleep(0.001))


def test_what_it_touched_is_what_was_written(fast: quire.Queue) -> None:
    with fast:
        found = payloads(fast)
        assert found == BULK * (len(found) // len(BULK))


def test_a_slow_appender_has_none(tmp_path: Path) -> None:
    with quire.open(tmp_path) as queue, queue.appender() as appender:
        for number in range(200):
            appender.write_bytes(bytes([number]) * 1000)
            time.sleep(0.001)
        assert threads() == 0


def test_it_can_be_refused(tmp_path: Path) -> None:
    with quire.open(tmp_path, pretouch=False) as queue, queue.appender() as appender:
        for _ in range(100):
            appender.write_many(BULK)
        assert threads() == 0


def test_a_child_of_a_fork_has_one_of_its_own(fast: quire.Queue) -> None:
    def child() -> None:
        assert threads() == 0
        fast.close()
        with quire.open(fast.path) as own, own.appender() as appender:
            assert reached(lambda: threads() == 1, lambda: appender.write_many(BULK))

    with fast:
        assert exit_code(fork(child)) == 0
