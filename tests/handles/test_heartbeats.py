"""A call that waits for another process holds up no other thread of Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import quire
import quire.quick_queue
from file_locks import CHANGE_LOCK, KEY_LOCK, REPAIR_LOCK, RING_OPENER, locked
from queues import UNLOCKED, WRITE_LOCK, poke

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


STATE_USES: dict[str, Callable[[quire.JournalAppender], object]] = {
    **USES,
    "last": lambda appender: appender.last_index_appended,
    "sync": lambda appender: appender.sync(),
    "close": lambda appender: appender.close(),
}


@pytest.mark.parametrize("use", STATE_USES)
def test_a_call_that_waits_for_another_of_the_same_appender_holds_up_nobody(
    use: str, path: Path
) -> None:
    """That other call waits for the lock of a file that is to grow."""
    with quire.open(path, block_bytes=2**16, timeout_s=HOUR_S) as queue, ExitStack() as held:
        appender = queue.appender()
        appender.write_bytes(b"before")
        (file,) = path.glob("*.cq4")
        held.enter_context(locked(file))
        with (
            waiting(lambda: appender.write_many([bytes(2**13)] * 100)),
            waiting(lambda: STATE_USES[use](appender)),
        ):
            assert "queue" in repr(appender)  # shows what is known, and does not wait
            held.close()


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


RING_USES: dict[str, Callable[[quire.JournalQueue], object]] = {
    "flush": lambda queue: ring_of(queue).flush(),
    "close": lambda queue: queue.close(),
}


def ring_of(queue: quire.JournalQueue) -> quire.Ring:
    assert queue.ring is not None
    return queue.ring


@pytest.mark.parametrize("use", RING_USES)
def test_a_call_that_waits_for_the_drainer_holds_up_nobody(use: str, path: Path) -> None:
    with quire.open(path, timeout_s=HOUR_S, force_unlock="never", buffer_mode="async") as queue:
        free = queue.table_value(WRITE_LOCK)
        assert free is not None
        poke(path, WRITE_LOCK, LIVING)
        queue.appender().write_bytes(b"in the ring")
        with waiting(lambda: RING_USES[use](queue)):
            assert "pending=1" in repr(ring_of(queue))
            poke(path, WRITE_LOCK, free)


def test_an_opening_that_waits_for_another_of_the_ring_holds_up_nobody(path: Path) -> None:
    quire.open(path, buffer_mode="async").close()
    with ExitStack() as held:
        held.enter_context(locked(path / "async.ring", RING_OPENER, 1))
        with waiting(lambda: quire.open(path, buffer_mode="async").close()):
            held.close()


REPLICATED_USES: dict[str, Callable[[quire.JournalTailer], object]] = {
    "commit": lambda tailer: tailer.commit(),
    "read": lambda tailer: tailer.read(),
    "read_bytes": lambda tailer: tailer.read_bytes(),
    "read_many": lambda tailer: tailer.read_many(5),
    "document": lambda tailer: tailer.reading_document(),
    "to_start": lambda tailer: tailer.to_start(),
    "to_end": lambda tailer: tailer.to_end(),
}


@pytest.mark.parametrize("use", REPLICATED_USES)
def test_a_tailer_that_waits_for_its_lock_holds_up_nobody(use: str, path: Path) -> None:
    with quire.open(path, timeout_s=HOUR_S, force_unlock="never") as queue:
        queue.appender().write_many([b"one", b"two"])
        tailer = queue.tailer("replicated:sink")
        assert tailer.read_bytes() == b"one"
        poke(path, "index.replicated:sink.lock", LIVING)
        with waiting(lambda: REPLICATED_USES[use](tailer)), waiting(lambda: tailer.index):
            assert "queue" in repr(tailer)
            poke(path, "index.replicated:sink.lock", UNLOCKED)


def test_a_tailer_that_is_closed_and_waits_for_its_lock_holds_up_nobody(path: Path) -> None:
    with quire.open(path, timeout_s=HOUR_S, force_unlock="never") as queue:
        queue.appender().write_bytes(b"one")
        tailer = queue.tailer("replicated:sink")
        assert tailer.read_bytes() == b"one"
        poke(path, "index.replicated:sink.lock", LIVING)
        with waiting(tailer.close):
            poke(path, "index.replicated:sink.lock", UNLOCKED)


TABLE_USES: dict[str, Callable[[quire.JournalQueue], object]] = {
    "delete": lambda queue: queue.delete_tailer("known"),
    "rename": lambda queue: queue.rename_tailer("known", "other"),
}


@pytest.mark.parametrize("use", TABLE_USES)
def test_a_change_of_names_that_waits_for_a_table_holds_up_nobody(use: str, path: Path) -> None:
    with quire.open(path, timeout_s=HOUR_S) as queue, ExitStack() as held:
        queue.tailer("known").close()
        held.enter_context(locked(path / "metadata.cq4t", KEY_LOCK, 1))
        with waiting(lambda: TABLE_USES[use](queue)):
            held.close()


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


GROUP_USES: dict[str, Callable[[quire.Group], object]] = {
    "reset": lambda group: group.reset(),
    "delete": lambda group: group.delete(),
}


@pytest.mark.parametrize("use", GROUP_USES)
def test_a_group_that_waits_to_be_changed_holds_up_nobody(use: str, path: Path) -> None:
    with quire.open(path) as queue, ExitStack() as held:
        group = queue.group("billing")
        group.consumer().close()
        held.enter_context(locked(path / "billing.qgroup", CHANGE_LOCK, 1))
        with waiting(lambda: GROUP_USES[use](group)):
            held.close()


def test_a_quick_queue_that_waits_for_a_repair_holds_up_nobody(path: Path) -> None:
    with quire.quick_queue.open(path) as queue, ExitStack() as held:
        with queue.appender() as appender:
            appender.write_bytes(b"before")
        lock = path / "quick-queue.lock"
        lock.write_bytes(b"\0")  # a repair was begun
        held.enter_context(locked(lock, REPAIR_LOCK, 1))
        with waiting(lambda: queue.appender().close()):
            held.close()


QUICK_USES: dict[str, Callable[[quire.quick_queue.QuickAppender], object]] = {
    "bytes": lambda appender: appender.write_bytes(b"after"),
    "text": lambda appender: appender.write_text("after"),
    "many": lambda appender: appender.write_many([b"one", b"two"]),
    "packed": lambda appender: appender.new_message().pack_int(1).write_message(),
    "force": lambda appender: appender.force(),
    "close": lambda appender: appender.close(),
}


@pytest.mark.parametrize("use", QUICK_USES)
def test_a_quick_queue_that_waits_for_a_new_page_holds_up_nobody(use: str, path: Path) -> None:
    """The second call waits for the first one's appender."""
    with quire.quick_queue.open(path, page_bytes=64) as queue, ExitStack() as held:
        appender = queue.appender()
        appender.write_bytes(bytes(64))
        held.enter_context(locked(path / "1.qd"))
        with (
            waiting(lambda: appender.write_bytes(b"on the next page")),
            waiting(lambda: QUICK_USES[use](appender)),
        ):
            assert "queue" in repr(appender)  # does not wait
            held.close()
