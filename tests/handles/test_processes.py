"""Several processes: forked children, pickled queues, writers and readers side by side."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, problems_of
from reference import read_queue


def test_a_child_cannot_use_its_parents_handles(queue: quire.JournalQueue, path: Path) -> None:
    appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("risk")
    appender.write_many([b"one", b"two"])
    excerpts, payload = iter(named), tailer.payloads()
    assert next(payload) == b"one"
    document = tailer.reading_document()

    def child() -> None:
        calls: list[Any] = [
            lambda: appender.write_bytes(b"x"),
            lambda: appender.write_text("x"),
            lambda: appender.write_map({"x": 1}),
            lambda: appender.write_many([b"x"]),
            appender.writing_document,
            appender.normalise_eofs,
            appender.sync,
            tailer.read,
            lambda: tailer.read_many(2),
            lambda: tailer.read_batch(2),
            tailer.reading_document,
            lambda: tailer.move_to_index(0),
            tailer.to_start,
            tailer.to_end,
            lambda: tailer.index,
            lambda: tailer.wait(0),
            lambda: next(excerpts),
            lambda: next(payload),
            named.commit,
            document.close,
            queue.appender,
            queue.tailer,
            lambda: queue.tailer("risk"),
            lambda: queue.entry_count,
            lambda: queue.first_index,
            lambda: queue.cycles,
            lambda: queue.table_value(WRITE_LOCK),
            queue.refresh,
        ]
        for call in calls:
            with pytest.raises(quire.errors.ForkedError, match="open the queue again"):
                call()
        for handle in (appender, tailer, named, queue):
            handle.close()

    assert exit_code(fork(child)) == 0
    appender.write_bytes(b"three")
    assert next(payload) == b"two"
    assert [data for _, data in read_queue(path)] == [b"one", b"two", b"three"]


def test_a_child_may_open_the_queue_anew(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    appender = queue.appender()
    appender.write_bytes(b"parent")

    def child() -> None:
        with quire.open(path, clock=clock, block_bytes=2**16) as own, own.tailer() as tailer:
            own.appender().write_bytes(b"child")
            assert list(tailer.payloads()) == [b"parent", b"child"]

    assert exit_code(fork(child)) == 0
    appender.write_bytes(b"parent again")
    assert payloads(queue) == [b"parent", b"child", b"parent again"]
    assert problems_of(path) == []


def test_a_child_leaves_the_document_of_its_parent_open(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    with queue.appender().writing_document() as document:
        document.write_bytes(b"of the parent")

        def child() -> None:
            with pytest.raises(quire.errors.ForkedError):
                document.close()
            own = quire.open(path, clock=clock, timeout_s=0.1).appender()
            with pytest.raises(quire.errors.LockTimeoutError):
                own.write_bytes(b"must wait")

        assert exit_code(fork(child)) == 0
        assert queue.table_value(WRITE_LOCK) == os.getpid()

    assert payloads(queue) == [b"of the parent"]
    assert queue.table_value(WRITE_LOCK) == UNLOCKED


def test_a_child_that_ends_by_itself_disturbs_nobody(queue: quire.JournalQueue) -> None:
    appender = queue.appender()
    with queue.tailer("risk") as tailer:
        appender.write_many([b"one", b"two"])
        assert tailer.read_bytes() == b"one"
        assert exit_code(fork(lambda: None)) == 0
        assert exit_code(fork(lambda: signal.raise_signal(signal.SIGKILL))) == -signal.SIGKILL
        assert queue.table_value("index.risk") in (0, queue.first_index)
        assert tailer.read_bytes() == b"two"
    appender.write_bytes(b"three")


def test_forked_writers_write_every_message_once(path: Path) -> None:
    def write(writer: int) -> None:
        with quire.open(path, block_bytes=1) as queue, queue.appender() as appender:
            for number in range(0, 300, 3):
                appender.write_bytes(b"%d %d" % (writer, number))
                appender.write_many([b"%d %d" % (writer, number + turn) for turn in (1, 2)])

    children = [fork(lambda writer=writer: write(writer)) for writer in range(4)]  # type: ignore[misc]
    assert [exit_code(child) for child in children] == [0] * 4

    found = [data for _, data in read_queue(path)]
    assert len(found) == 1200
    for writer in range(4):
        own = [data for data in found if data.startswith(b"%d " % writer)]
        assert own == [b"%d %d" % (writer, number) for number in range(300)]
    assert problems_of(path) == []


def test_a_writer_that_is_killed_loses_nothing_it_had_published(path: Path) -> None:
    with quire.open(path, block_bytes=1) as queue:
        receiver, sender = os.pipe()

        def write() -> None:
            with quire.open(path, block_bytes=1) as own, own.appender() as appender:
                for number in range(10**9):
                    os.write(sender, appender.write_bytes(b"%d" % number).to_bytes(8, "big"))

        pid = fork(write)
        index = 0
        for _ in range(500):
            index = int.from_bytes(os.read(receiver, 8), "big")
        os.kill(pid, signal.SIGKILL)
        assert exit_code(pid) == -signal.SIGKILL
        os.close(receiver)
        os.close(sender)

        after = queue.appender().write_bytes(b"after")
        found = {excerpt.index: excerpt.data for excerpt in queue.tailer()}
        assert index in found
        assert max(found) == after
        assert [*found.values()] == [
            *(b"%d" % number for number in range(len(found) - 1)),
            b"after",
        ]


def test_a_writer_killed_inside_a_document_is_noticed(path: Path) -> None:
    with quire.open(path, block_bytes=1, timeout_s=60) as queue:
        queue.appender().write_bytes(b"before")

        def write() -> None:
            document = quire.open(path).appender().writing_document()
            document.write_bytes(b"never finished")
            signal.raise_signal(signal.SIGKILL)

        assert exit_code(fork(write)) == -signal.SIGKILL
        queue.appender().write_bytes(b"after")
        assert payloads(queue) == [b"before", b"after"]


def test_a_queue_pickles_by_path_and_options(queue: quire.JournalQueue) -> None:
    first = queue.appender().write_bytes(b"one")
    with pickle.loads(pickle.dumps(queue)) as again, copy.copy(queue) as copied:
        for other in (again, copied):
            assert (other.path, other.roll_cycle) == (queue.path, queue.roll_cycle)
            assert other.block_bytes == queue.block_bytes == 2**16
            assert payloads(other) == [b"one"]
        assert again.appender().write_bytes(b"two") == first + 1  # by the time of the clock, too
        assert copied.appender().write_bytes(b"three") == first + 2
    assert not queue.closed


def test_a_read_only_queue_pickles_as_one(queue: quire.JournalQueue, path: Path) -> None:
    queue.appender().write_bytes(b"one")
    with quire.open(path, read_only=True) as reader, pickle.loads(pickle.dumps(reader)) as again:
        assert again.read_only
        with pytest.raises(quire.errors.ReadOnlyError):
            again.appender()


def test_handles_do_not_pickle(queue: quire.JournalQueue) -> None:
    queue.appender().write_bytes(b"one")
    tailer = queue.tailer()
    handles = [queue.appender(), tailer, tailer.payloads(), tailer.reading_document()]
    for handle in handles:
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(handle)


def test_a_pickled_queue_opens_in_a_new_process(queue: quire.JournalQueue) -> None:
    queue.appender().write_bytes(b"one")
    program = """if True:
        import pickle, sys
        with pickle.load(sys.stdin.buffer) as queue, queue.tailer() as tailer:
            queue.appender().write_bytes(b"two")
            print(tailer.read_many(9))
    """
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(queue), capture_output=True, check=True
    )

    assert done.stdout.strip() == b"[b'one', b'two']"
    assert payloads(queue) == [b"one", b"two"]
