"""A call that waits for another process holds up no other thread of Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import quire
from file_locks import CHANGE_LOCK, KEY_LOCK, locked
from queues import WRITE_LOCK, poke

HOUR_S = 3600
BEATS = 20
BEAT_S = 0.005
LIMIT_S = 300  # of a hang
LIVING = 1  # the pid of a process that does not end


@contextmanager
def waiting(call: Callable[[], object]) -> Generator[None]:
    """Have a thread wait in a call until the block ends that wait, and count on meanwhile."""
    enters, failed = threading.Event(), list[BaseException]()

    def run() -> None:
        enters.set()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert enters.wait(LIMIT_S)
        for _ in range(BEATS):  # this thread is stopped by a call that keeps the interpreter
            thread.join(BEAT_S)
        assert thread.is_alive(), "it did not wait"
        yield
    finally:
        thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert not failed, failed


def write_document(appender: quire.JournalAppender) -> None:
    with appender.writing_document() as document:
        document.write_bytes(b"document")


USES: dict[str, Callable[[quire.JournalAppender], object]] = {
    "bytes": lambda appender: appender.write_bytes(b"one"),
    "long": lambda appender: appender.write_bytes(bytes(2**15)),
    "text": lambda appender: appender.write_text("one"),
    "map": lambda appender: appender.write_map({"one": 1}),
    "many": lambda appender: appender.write_many([b"one", b"two"]),
    "ends": lambda appender: appender.normalise_eofs(),
    "document": write_document,
}


@pytest.mark.parametrize("use", USES)
def test_an_append_that_waits_for_the_write_lock_holds_up_nobody(use: str, path: Path) -> None:
    with quire.open(path, timeout_s=HOUR_S, force_unlock="never") as queue:
        appender = queue.appender()
        appender.write_bytes(b"before")
        free = queue.table_value(WRITE_LOCK)
        assert free is not None
        poke(path, WRITE_LOCK, LIVING)
        with waiting(lambda: USES[use](appender)):
            poke(path, WRITE_LOCK, free)


def test_a_flush_that_waits_for_the_write_lock_holds_up_nobody(path: Path) -> None:
    with quire.open(path, timeout_s=HOUR_S, force_unlock="never", buffer_mode="async") as queue:
        appender = queue.appender()
        free = queue.table_value(WRITE_LOCK)
        assert free is not None
        poke(path, WRITE_LOCK, LIVING)
        appender.write_bytes(b"in the ring")
        with waiting(appender.sync):
            poke(path, WRITE_LOCK, free)


def test_an_opening_that_waits_for_a_table_holds_up_nobody(path: Path) -> None:
    path.mkdir()
    with ExitStack() as held:
        held.enter_context(locked(path / "metadata.cq4t", KEY_LOCK, 1))
        with waiting(lambda: quire.open(path, timeout_s=HOUR_S).close()):
            held.close()


def test_a_new_name_that_waits_for_a_table_holds_up_nobody(path: Path) -> None:
    with quire.open(path, timeout_s=HOUR_S) as queue, ExitStack() as held:
        held.enter_context(locked(path / "metadata.cq4t", KEY_LOCK, 1))
        with waiting(lambda: queue.tailer("new").close()):
            held.close()


def test_a_file_that_waits_to_grow_holds_up_nobody(path: Path) -> None:
    with quire.open(path, block_bytes=2**16, timeout_s=HOUR_S) as queue:
        appender = queue.appender()
        appender.write_bytes(b"before")
        (file,) = path.glob("*.cq4")
        with ExitStack() as held:
            held.enter_context(locked(file))
            with waiting(lambda: appender.write_many([bytes(2**13)] * 100)):
                held.close()


def test_a_group_that_waits_to_be_changed_holds_up_nobody(path: Path) -> None:
    with quire.open(path) as queue:
        group = queue.group("billing")
        group.consumer().close()
        with ExitStack() as held:
            held.enter_context(locked(path / "billing.qgroup", CHANGE_LOCK, 1))
            with waiting(group.reset):
                held.close()
