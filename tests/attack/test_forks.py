"""Forks amid everything: of threads that open queues, append, bulk write, hold documents."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quire
from queues import exit_code, fork, payloads, problems_of
from tally import Tally, scaled

pytestmark = pytest.mark.slow

HANG_S = 300
PAUSE_S = 0.002
PROMISE = "A fork at any moment leaves a child that can use queues"


@contextmanager
def running(*works: Callable[[], object]) -> Generator[None]:
    """Call each function again and again in a thread of its own meanwhile."""
    stop, failed = threading.Event(), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        try:
            while not stop.is_set():
                work()
                time.sleep(PAUSE_S)  # for the children, who want the lock too
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]


def open_small(path: Path) -> quire.JournalQueue:
    return quire.open(path, block_bytes=1, timeout_s=600)


def append_as(path: Path, message: bytes) -> None:
    """Open the queue in a child and append; a hang ends in SIGALRM."""
    signal.alarm(HANG_S)
    with open_small(path) as queue:
        queue.appender().write_bytes(message)


def test_a_child_of_a_process_that_opens_queues_in_a_thread_can_open_them(
    path: Path, tmp_path: Path, tally: Tally
) -> None:
    forks = scaled(60, 2000)

    def open_another() -> None:
        open_small(tmp_path / "another").close()

    def open_same() -> None:
        with open_small(path) as queue:
            queue.refresh()

    with open_small(path):
        pass
    with running(open_another, open_same):
        for number in range(forks):
            child = fork(lambda number=number: append_as(path, b"%d" % number))  # type: ignore[misc]
            assert exit_code(child) == 0, f"child {number}"
    with open_small(path) as queue:
        assert payloads(queue) == [b"%d" % number for number in range(forks)]
    tally(PROMISE, forks, "forks while other threads open queues")


def test_a_child_can_let_go_of_handles_that_threads_of_its_parent_are_using(
    path: Path, tally: Tally
) -> None:
    forks = scaled(12, 2000)
    queue = open_small(path)
    queue.appender().write_bytes(b"first")
    appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("risk")
    written: list[bytes] = []

    def use_document() -> None:
        with appender.writing_document() as document:
            document.write_bytes(b"document")

    def leave(number: int) -> None:
        signal.alarm(HANG_S)
        with pytest.raises(quire.errors.ForkedError):
            _ = appender.last_index_appended
        for handle in (named, tailer, appender, queue):
            handle.close()
        gc.collect()
        append_as(path, b"child %d" % number)

    works = [
        lambda: appender.write_bytes(b"one"),
        lambda: appender.write_many([b"bulk"] * 1000),
        use_document,
        lambda: tailer.read_many(100),
        named.read_bytes,
        lambda: queue.entry_count,
    ]
    with running(*works):
        for number in range(forks):
            assert exit_code(fork(lambda number=number: leave(number))) == 0  # type: ignore[misc]
            written.append(b"child %d" % number)
    found = payloads(queue)
    assert [it for it in found if it.startswith(b"child")] == written
    assert found.count(b"bulk") % 1000 == 0
    queue.close()
    assert problems_of(path) == []
    tally(PROMISE, forks, "forks while other threads use their handles")


def test_the_lock_of_a_killed_parent_is_free_while_its_children_live(
    path: Path, tmp_path: Path
) -> None:
    receiver, sender = os.pipe()
    children = 20

    def parent() -> None:
        signal.alarm(HANG_S)
        with running(lambda: open_small(path).close(), lambda: open_small(tmp_path / "b").close()):
            for _ in range(children):
                os.write(sender, fork(signal.pause).to_bytes(4, "little"))
            document = open_small(path).appender().writing_document()
            document.write_bytes(b"never finished")
            os.kill(os.getpid(), signal.SIGKILL)

    assert exit_code(fork(parent)) == -signal.SIGKILL
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        pids = [int.from_bytes(pipe.read(4), "little") for _ in range(children)]
        try:
            with quire.open(path, timeout_s=120) as queue:  # a living holder would be an error
                queue.appender().write_bytes(b"after")
                assert payloads(queue) == [b"after"]
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("announced", [True, False])
def test_what_a_child_inherits_keeps_no_lock_of_its_parent(path: Path, announced: bool) -> None:  # noqa: FBT001 - a case
    """A mapping keeps the file it was made of open, and the locks of that, in the child too."""
    receiver, sender = os.pipe()

    def parent() -> None:
        queue = open_small(path)
        appender = queue.appender() if announced else None
        os.write(sender, fork(signal.pause).to_bytes(4, "little"))
        document = (appender or queue.appender()).writing_document()
        document.write_bytes(b"never finished")
        os.kill(os.getpid(), signal.SIGKILL)

    assert exit_code(fork(parent)) == -signal.SIGKILL
    child = int.from_bytes(os.read(receiver, 4), "little")
    os.close(receiver)
    os.close(sender)
    try:
        with quire.open(path, timeout_s=120) as queue:  # a living holder would be an error
            queue.appender().write_bytes(b"after")
            assert payloads(queue) == [b"after"]
    finally:
        os.kill(child, signal.SIGKILL)
