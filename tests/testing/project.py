"""The tests of a project that uses the fixtures: `test_fixtures.py` copies and runs them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.testing import Peer

Start = Callable[..., Peer]


def append(queue: quire.JournalQueue, count: int) -> tuple[int, int | None]:
    with queue.appender() as appender:
        for number in range(count):
            appender.write_bytes(b"%d" % number)
    return os.getpid(), queue.last_index


def fail() -> None:
    raise quire.errors.WireError("on purpose")


NAMELESS = lambda: None  # noqa: E731


class Odd(Exception):  # noqa: N818
    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


def fail_oddly() -> None:
    raise Odd("one", "two")


def open_a_file() -> object:
    return Path(os.devnull).open()


def stay() -> None:
    while True:
        time.sleep(60)


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_queue_is_empty_and_follows_the_clock(
    quire_queue: quire.JournalQueue, quire_clock: quire.ManualClock
) -> None:
    assert quire_queue.entry_count == 0
    quire_queue.appender().write_bytes(b"today")
    quire_clock.advance(86_400_000)
    quire_queue.appender().write_bytes(b"tomorrow")
    assert len(quire_queue.cycles) == 2


def test_a_peer_appends_to_the_same_queue(
    quire_queue: quire.JournalQueue, quire_peer: Start
) -> None:
    pid, last = quire_peer(append, quire_queue, 3).result()
    assert pid != os.getpid()
    assert last == quire_queue.last_index
    assert quire_queue.tailer().read_many(9) == [b"0", b"1", b"2"]


def test_what_a_peer_raises_is_raised(quire_peer: Start) -> None:
    with pytest.raises(quire.errors.WireError, match="on purpose"):
        quire_peer(fail).result()


def test_a_peer_that_is_killed_has_no_result(quire_peer: Start) -> None:
    with pytest.raises(ChildProcessError, match="code=-9"):
        quire_peer(end).result()
    staying = quire_peer(stay)
    with pytest.raises(TimeoutError, match="still running"):
        staying.result(timeout_s=0)
    assert staying.is_alive
    staying.kill()
    assert not staying.is_alive


def test_a_peer_that_is_killed_as_it_sends_its_result_has_none(quire_peer: Start) -> None:
    peer: Any = quire_peer(bytes, 10_000_000)
    assert peer._results.poll(60)
    peer.kill()
    with pytest.raises(ChildProcessError, match=r"ended without a result: .* code=-9"):
        peer.result()


def test_a_result_stays(quire_peer: Start) -> None:
    peer, failed = quire_peer(abs, -1), quire_peer(fail)
    assert [peer.result(), peer.result()] == [1, 1]
    for _ in range(2):
        with pytest.raises(quire.errors.WireError, match="on purpose"):
            failed.result()


def test_what_does_not_pickle_is_refused(quire_peer: Start) -> None:
    for function in (lambda: None, NAMELESS):
        with pytest.raises(TypeError, match="of a peer must be picklable"):
            quire_peer(function)
    with pytest.raises(TypeError, match="the result of a peer must be picklable"):
        quire_peer(open_a_file).result()
    with pytest.raises(ChildProcessError, match="cannot be pickled: Odd: one and two"):
        quire_peer(fail_oddly).result()
