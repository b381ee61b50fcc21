"""Waiting without a pause, and what a waiting reader and a paced writer do to a file's space."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from queues import START_MS

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a file system on which a read may allocate


class Alarm(Exception):  # noqa: N818 - what a handler raises
    """Raised by a signal's handler."""


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_message_that_is_there_is_found_and_stays(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_bytes(b"one")

    assert tailer.spin()
    assert tailer.spin(0)
    assert tailer.read_bytes() == b"one"


def test_nothing_comes_before_the_timeout(tailer: quire.JournalTailer) -> None:
    assert not tailer.spin(0)
    assert not tailer.spin(timeout_s=0.001)


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_a_timeout_is_a_number_of_seconds(tailer: quire.JournalTailer, wrong: float) -> None:
    with pytest.raises(ValueError, match="timeout_s"):
        tailer.spin(wrong)


def test_other_threads_run_and_their_messages_are_seen(
    queue: quire.JournalQueue, tailer: quire.JournalTailer
) -> None:
    def write() -> None:
        with queue.appender() as appender:
            appender.write_bytes(b"from another thread")

    thread = threading.Thread(target=write)
    thread.start()
    assert tailer.spin(float("inf"))
    thread.join()
    assert tailer.read_bytes() == b"from another thread"


@pytest.mark.parametrize("pause_s", [0, 0.01], ids=["at once", "late"])
def test_messages_of_another_process_are_found(
    queue: quire.JournalQueue, tailer: quire.JournalTailer, pause_s: float
) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reader, 1)
        threading.Event().wait(pause_s)
        with quire.open(queue.path, clock=lambda: START_MS) as again, again.appender() as appender:
            appender.write_bytes(b"from another process")
        os._exit(0)
    os.write(writer, b"x")
    assert tailer.spin(float("inf"))
    assert tailer.read_bytes() == b"from another process"
    assert not tailer.spin(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(reader)
    os.close(writer)


def test_messages_of_other_topics_are_passed_over(queue: quire.JournalQueue) -> None:
    with queue.appender() as appender, queue.tailer() as tailer:
        tailer.topics("mine")
        appender.topic("theirs").write_text("no")
        assert not tailer.spin(0)
        appender.topic("mine").write_text("yes")
        assert tailer.spin()
        assert tailer.read_text() == "yes"


@pytest.mark.usefixtures("alarm")
def test_a_signal_ends_it(tailer: quire.JournalTailer) -> None:
    with pytest.raises(Alarm):  # noqa: PT012 - wherever the signal comes
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        tailer.spin()


def test_closing_the_tailer_in_another_thread_ends_it(tailer: quire.JournalTailer) -> None:
    thread = threading.Timer(0.01, tailer.close)
    thread.start()
    with pytest.raises(quire.errors.ClosedError):
        tailer.spin()
    thread.join()


def test_what_was_received_is_done_when_more_is_awaited(queue: quire.JournalQueue) -> None:
    with queue.appender() as appender:
        appender.write_bytes(b"one")
    with queue.tailer("named") as tailer:
        tailer.read_bytes()
        done = tailer.index
        assert done not in dict(queue.table_entries()).values()
        tailer.spin(0)
        assert dict(queue.table_entries())["index.named"] == done


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="no tmpfs at a known place")
def test_a_waiting_tailer_allocates_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = SHARED_MEMORY / f"quire-{os.getpid()}-{tmp_path_factory.getbasetemp().name}"
    try:
        with quire.open(path) as queue, queue.appender() as appender, queue.tailer() as tailer:
            for _ in range(5_000):
                appender.write_bytes(bytes(96))
                assert tailer.spin(0)
                (file,) = path.glob("*.cq4")
                before = file.stat().st_blocks
                assert tailer.read_bytes() == bytes(96)
                assert tailer.read_bytes() is None
                assert file.stat().st_blocks == before
    finally:
        for file in [*path.iterdir()]:
            file.unlink()
        path.rmdir()


def test_a_paced_writer_reserves_little(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        for _ in range(1_000):
            appender.write_bytes(bytes(96))
        (file,) = path.glob("*.cq4")
        written = 1_000 * 100 + (64 << 10)  # with the header and the first index arrays
        others = 3 * 4096  # the block at the file's end, and those of the file system's own records
        assert file.stat().st_blocks * 512 <= written + (256 << 10) + others
