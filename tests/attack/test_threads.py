"""Threads that share a handle, or a queue: each message once, a clear error, and no deadlock."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import UNLOCKED, WRITE_LOCK, payloads, problems_of
from tally import Tally, scaled

pytestmark = pytest.mark.slow

THREADS = 8
PROMISE = "Threads that share handles lose and repeat nothing"


def run_all(works: list[Callable[[], None]]) -> list[BaseException]:
    """Run each in a thread, all at once; return what they raised."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - returned
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a deadlock"
    return raised


def open_small(path: Path) -> quire.JournalQueue:
    return quire.open(path, block_bytes=1, timeout_s=600)


@pytest.mark.parametrize("appenders", [1, THREADS])
def test_threads_append_every_message_once(appenders: int, path: Path, tally: Tally) -> None:
    rounds = scaled(150, 5000)
    indexes: dict[bytes, int] = {}

    def write(thread: int, appender: quire.JournalAppender) -> None:
        for number in range(rounds):
            name = b"%d %d" % (thread, number)
            indexes[name] = appender.write_bytes(name)
            appender.write_many([name + b" first", name + b" second"])
            with appender.writing_document() as document:
                document.write_bytes(name + b" document")
            indexes[name + b" document"] = document.index

    with open_small(path) as queue:
        handles = [queue.appender() for _ in range(appenders)]
        raised = run_all(
            [lambda n=n: write(n, handles[n % appenders]) for n in range(THREADS)]  # type: ignore[misc]
        )
        assert raised == []
        assert queue.table_value(WRITE_LOCK) == UNLOCKED
        found = {excerpt.index: excerpt.data for excerpt in queue.tailer()}
        assert len(found) == THREADS * rounds * 4
        assert len(set(found.values())) == len(found)
        assert all(found[index] == name for name, index in indexes.items())
        for thread in range(THREADS):
            own = [it for it in found.values() if it.startswith(b"%d " % thread)]
            parts = (b"", b" first", b" second", b" document")
            assert own == [b"%d %d%s" % (thread, n, it) for n in range(rounds) for it in parts]
    assert problems_of(path) == []
    tally(PROMISE, len(found), "messages of threads that append at once")


def test_no_thread_takes_the_lock_from_another_of_its_process(path: Path) -> None:
    """Waiters look whether the holder lives: it must not seem dead between one and the next."""
    rounds = scaled(600, 20_000)

    def hold(appender: quire.JournalAppender) -> None:
        for _ in range(rounds):
            with appender.writing_document() as document:
                document.write_bytes(b"held")

    with open_small(path) as queue:
        appenders = [queue.appender() for _ in range(4 * THREADS)]
        assert run_all([lambda it=it: hold(it) for it in appenders]) == []  # type: ignore[misc]
        assert queue.entry_count == rounds * len(appenders)


def test_threads_that_share_a_tailer_get_each_message_once(path: Path, tally: Tally) -> None:
    count = scaled(40_000, 1_000_000)
    messages = [b"%d" % number for number in range(count)]
    got: list[list[bytes]] = []

    def read(tailer: quire.JournalTailer, way: int) -> None:
        own: list[bytes] = []
        got.append(own)
        while True:
            if way % 3 == 0:
                some = tailer.read_many(7)
            elif way % 3 == 1:
                one = tailer.read_bytes()
                some = [] if one is None else [one]
            else:
                some = [excerpt.data for excerpt, _ in zip(tailer, range(3), strict=False)]
            if not some:
                return
            own.extend(some)

    with open_small(path) as queue:
        queue.appender().write_many(messages)
        for name in (None, "risk"):
            got.clear()
            with queue.tailer(name) as tailer:
                assert run_all([lambda n=n: read(tailer, n) for n in range(THREADS)]) == []  # type: ignore[misc]
            seen = Counter(it for own in got for it in own)
            # `zip` takes one more message than it returns when it ends after three.
            assert not [it for it, times in seen.items() if times != 1]
            assert sum(len(own) for own in got) <= count
            for own in got:
                assert own == sorted(own, key=int)
    tally(PROMISE, 2 * count, "messages of tailers that threads share")


def test_a_document_may_be_closed_by_another_thread(path: Path) -> None:
    with open_small(path) as queue, queue.appender() as appender:
        document = appender.writing_document()
        document.write_bytes(b"one")
        waiting = threading.Thread(target=appender.write_bytes, args=(b"two",))
        waiting.start()
        time.sleep(0.05)
        assert payloads(queue) == []
        assert run_all([document.close]) == []
        waiting.join()
        assert payloads(queue) == [b"one", b"two"]
        appender.write_bytes(b"three")
        assert run_all([lambda: None, document.close]) == []


def test_many_threads_may_close_one_document(path: Path) -> None:
    with open_small(path) as queue, queue.appender() as appender:
        for number in range(scaled(50, 2000)):
            document = appender.writing_document()
            document.write_bytes(b"%d" % number)
            assert run_all([document.close] * 4) == []
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
            assert queue.entry_count == number + 1


@pytest.mark.parametrize("what", ["handle", "queue"])
def test_closing_under_threads_is_a_closed_error_to_them(what: str, path: Path) -> None:
    for _ in range(scaled(10, 300)):
        queue = open_small(path)
        appender, tailer = queue.appender(), queue.tailer()
        appender.write_bytes(b"first")

        def write(appender: quire.JournalAppender = appender) -> None:
            while True:
                appender.write_bytes(b"one")
                appender.write_many([b"two"] * 100)
                with appender.writing_document() as document:
                    document.write_bytes(b"three")

        def read(tailer: quire.JournalTailer = tailer) -> None:
            while True:
                tailer.read_many(10)
                tailer.to_start()

        def close(queue: quire.JournalQueue = queue, handles: object = (appender, tailer)) -> None:
            time.sleep(0.005)
            for handle in (queue,) if what == "queue" else handles:  # type: ignore[attr-defined]
                handle.close()

        raised = run_all([write, read, write, read, close])
        assert [type(error) for error in raised] == [quire.errors.ClosedError] * 4, raised
        queue.close()
        with open_small(path) as again:
            again.appender().write_bytes(b"again")
            assert payloads(again)[-1] == b"again"
    assert problems_of(path) == []
