"""Locks that stay taken: waits end with `timeout_s`, and hold up nobody else."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Literal

import pytest

import quire
from file_locks import KEY_LOCK, locked
from queues import APPEND_LOCK, DAY_MS, UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, poke

HOUR_S = 3600


def test_growing_a_locked_file_waits_as_long_as_asked_for(path: Path) -> None:
    with quire.open(path, block_bytes=2**16, timeout_s=0.2) as queue, queue.appender() as appender:
        appender.write_bytes(b"before")
        (file,) = path.glob("*.cq4")
        with locked(file) as pid, pytest.raises(quire.errors.LockTimeoutError) as caught:
            appender.write_many([bytes(2**13)] * 100)

        waited = re.search(rf"file={file} holder_pid={pid} waited_ms=(\d+)", str(caught.value))
        assert waited
        assert int(waited[1]) >= 200
        index = appender.write_bytes(b"after")
        assert queue.last_index == index


def test_a_file_that_another_process_keeps_in_the_making_is_waited_for_as_long_as_asked_for(
    path: Path, clock: quire.ManualClock
) -> None:
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, timeout_s=0.2) as queue:
        appender = queue.appender()
        appender.write_bytes(b"before")
        clock.advance(DAY_MS)
        made = Path(queue.file_for_cycle(queue.cycles[0] + 1))
        with locked(made) as pid, pytest.raises(quire.errors.LockTimeoutError, match=f"pid={pid} "):
            appender.write_bytes(b"refused")

        appender.write_bytes(b"after")
        assert payloads(queue) == [b"before", b"after"]


def test_a_new_table_key_is_waited_for_as_long_as_asked_for(path: Path) -> None:
    with quire.open(path, timeout_s=0.2) as queue:
        table = path / "metadata.cq4t"
        with (
            locked(table, KEY_LOCK, 1) as pid,
            pytest.raises(quire.errors.LockTimeoutError, match=f"pid={pid} "),
        ):
            queue.tailer("new")
        assert queue.tailer("new").read_bytes() is None


def test_an_opening_that_waits_holds_up_no_other_queue(tmp_path: Path) -> None:
    table = tmp_path / "held/metadata.cq4t"
    table.parent.mkdir()
    opened = list[quire.JournalQueue]()

    def wait() -> None:
        opened.append(quire.open(table.parent, timeout_s=HOUR_S))

    with locked(table, KEY_LOCK, 1):
        waiting = [threading.Thread(target=wait) for _ in range(2)]
        for thread in waiting:
            thread.start()
        for number in range(3):
            with quire.open(tmp_path / f"free-{number}") as free:
                free.appender().write_bytes(b"not held up")
        assert exit_code(fork(lambda: quire.open(tmp_path / "of a child").close())) == 0
        assert all(thread.is_alive() for thread in waiting)
    for thread in waiting:
        thread.join()
    first, second = opened
    first.close()
    second.appender().write_bytes(b"joined")
    assert payloads(second) == [b"joined"]
    second.close()


def hold_open(queue: quire.JournalQueue) -> quire.WriteDocument:
    """Open a document in another thread, which then ends."""
    documents = list[quire.WriteDocument]()

    def write() -> None:
        documents.append(queue.appender().writing_document())
        documents[0].write_bytes(b"of the other thread")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    return documents[0]


def test_always_takes_the_lock_from_an_open_document_of_another_thread(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path, timeout_s=0.1, force_unlock="always") as queue:
        robbed = hold_open(queue)
        appender = queue.appender()
        appender.write_bytes(b"first")
        assert "write lock taken from an open document of another thread" in caplog.text
        with appender.writing_document() as document:
            document.write_bytes(b"second")
            with pytest.raises(quire.errors.LockLostError, match="nothing was published"):
                robbed.close()
            assert queue.table_value(WRITE_LOCK) == os.getpid(), "still the second document's"
        assert queue.table_value(WRITE_LOCK) == UNLOCKED
        assert payloads(queue) == [b"first", b"second"]


@pytest.mark.parametrize("mode", ["dead", "never"])
def test_other_modes_leave_the_lock_with_an_open_document_of_another_thread(
    mode: Literal["dead", "never"], path: Path
) -> None:
    with quire.open(path, timeout_s=0.1, force_unlock=mode) as queue:
        document = hold_open(queue)
        with pytest.raises(quire.errors.LockTimeoutError, match=f"holder_pid={os.getpid()} "):
            queue.appender().write_bytes(b"refused")
        document.close()
        assert payloads(queue) == [b"of the other thread"]


@pytest.mark.parametrize("holder", ["own", "other", "dead"])
def test_replicated_tailers_are_not_opened_on_a_sink(
    holder: str, queue: quire.JournalQueue, path: Path
) -> None:
    with queue.appender() as appender:
        appender.write_many([b"one", b"two"])
    known, plain = queue.tailer("replicated:known"), queue.tailer("plain")
    keys = set(queue.table_entries())
    poke(path, APPEND_LOCK, {"own": os.getpid(), "other": 1, "dead": 2**22 + 1}[holder])

    for name in ("replicated:known", "replicated:new"):
        with pytest.raises(quire.errors.AppendLockedError, match="replicated tailers"):
            queue.tailer(name)

    assert {key for key, _ in queue.table_entries()} == {key for key, _ in keys}
    assert plain.read_bytes() == b"one"
    # In Java one that is open goes on, and its position is lost with the source's next one.
    before = queue.table_entries()
    assert known.read_bytes() == b"one"
    with pytest.raises(quire.errors.AppendLockedError, match="replicated tailers"):
        known.read_bytes()
    with pytest.raises(quire.errors.AppendLockedError, match="replicated tailers"):
        known.move_to_index(plain.index)
    assert queue.table_entries() == before


def test_versions_of_replicated_tailers_count_as_javas_do(queue: quire.JournalQueue) -> None:
    with queue.appender() as appender:
        appender.write_many([b"one", b"two", b"three"])

    def version() -> int | None:
        return queue.table_value("index.replicated:rep.version")

    with queue.tailer("replicated:rep") as tailer:
        assert version() == -1
        assert tailer.index
        assert version() == -1
        tailer.read_bytes()
        tailer.commit()
        assert version() == 1
        tailer.to_start()
        assert version() == 2
        tailer.to_end()
        assert version() == 3
    with queue.tailer("replicated:rep"):
        assert version() == 4


def test_excerpts_are_counted_between_two_indexes_whichever_comes_first(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with queue.appender() as appender:
        first = appender.write_bytes(b"one")
        last = appender.write_many([b"two", b"three"])
        clock.advance(DAY_MS)
        newest = appender.write_many([b"four", b"five"])
    assert last is not None
    assert newest is not None
    for one, other, count in ((first, last, 2), (first, newest, 4), (last, last, 0)):
        assert queue.count_excerpts(one, other) == queue.count_excerpts(other, one) == count


def test_the_end_is_found_where_the_newest_file_was_deleted(
    queue: quire.JournalQueue, clock: quire.ManualClock
) -> None:
    with queue.appender() as appender:
        kept = appender.write_bytes(b"kept")
        clock.advance(DAY_MS)
        appender.write_bytes(b"deleted")
    with queue.tailer() as tailer:
        tailer.to_end()
        Path(queue.file_for_cycle(queue.cycles[-1])).unlink()
        tailer.to_end()
        assert (tailer.index, queue.last_index) == (kept + 1, kept)
