"""Handles that are closed, logged about, or left while another thread or a document uses them."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quire
from queues import UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, poke

DEAD_PID = 2**22 + 1  # above the greatest pid there can be


class Raising(logging.Filter):
    """A filter that fails, or a signal that arrives while something is logged."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - its signature
        raise self._error


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("quire")
    before = list(logger.filters)
    yield logger
    logger.filters[:] = before


def test_an_interrupt_while_a_claim_is_logged_frees_the_lock(
    path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender, logger: logging.Logger
) -> None:
    poke(path, WRITE_LOCK, DEAD_PID)
    logger.addFilter(Raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        appender.writing_document()
    logger.filters.clear()
    assert queue.table_value(WRITE_LOCK) == UNLOCKED
    appender.write_bytes(b"goes on")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_filter_that_fails_does_not_undo_an_append(
    path: Path, queue: quire.JournalQueue, appender: quire.JournalAppender, logger: logging.Logger
) -> None:
    poke(path, WRITE_LOCK, DEAD_PID)
    logger.addFilter(Raising(ValueError("a bad filter")))
    index = appender.write_bytes(b"appended")
    assert queue.last_index == index
    assert payloads(queue) == [b"appended"]


def test_a_document_left_open_does_not_free_the_lock_of_a_later_one(path: Path) -> None:
    first = quire.open(path, block_bytes=2**16)
    left = first.appender().writing_document()
    first.close()
    with quire.open(path, block_bytes=2**16) as second, second.appender() as appender:
        assert second.table_value(WRITE_LOCK) == UNLOCKED
        with appender.writing_document() as document:
            document.write_bytes(b"of the second queue")
            with pytest.raises(quire.errors.ClosedError):
                left.close()
            del left
            assert second.table_value(WRITE_LOCK) != UNLOCKED
        assert payloads(second) == [b"of the second queue"]


def test_an_append_that_waits_while_its_queue_is_closed_appends_nothing(path: Path) -> None:
    with (
        quire.open(path, block_bytes=2**16) as holder,
        quire.open(path, block_bytes=2**16) as queue,
        holder.appender() as holding,
    ):
        waiting, errors = queue.appender(), list[Exception]()

        def append() -> None:
            try:
                waiting.write_bytes(b"too late")
            except quire.errors.ClosedError as error:
                errors.append(error)

        with holding.writing_document() as document:
            document.write_bytes(b"held")
            thread = threading.Thread(target=append)
            thread.start()
            thread.join(0.05)
            queue.close()
        thread.join()
        assert len(errors) == 1
        assert payloads(holder) == [b"held"]


@pytest.mark.check
def test_replicated_tailers_wait_for_their_own_lock_alone(
    path: Path, appender: quire.JournalAppender
) -> None:
    appender.write_bytes(b"one")
    with quire.open(path, timeout_s=1) as impatient, other_process(path) as holder:
        waiting, free = impatient.tailer("replicated:held"), impatient.tailer("replicated:free")
        poke(path, "index.replicated:held.lock", holder)
        errors = list[quire.errors.LockTimeoutError]()

        def wait() -> None:
            try:
                waiting.to_start()
            except quire.errors.LockTimeoutError as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        while thread.is_alive():
            free.to_start()
        assert free.read_bytes() == b"one"
        assert "replicated tailer's lock" in str(errors[0])


@contextmanager
def other_process(path: Path) -> Generator[int]:
    """A process that has the queue open, and could hold a lock."""

    def child() -> None:
        with quire.open(path) as queue:
            queue.appender()
            os.write(out, b".")
            signal.pause()

    into, out = os.pipe()
    pid = fork(child)
    try:
        os.read(into, 1)
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        exit_code(pid)
        os.close(into)
        os.close(out)
