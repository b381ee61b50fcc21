"""Files, mappings, space and signals: nothing leaks, and what runs out is an error."""

from __future__ import annotations

import errno
import gc
import os
import resource
import signal
import threading
import time
from pathlib import Path

import pytest

import quire
from queues import START_MS, UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, problems_of

SECOND_MS = 1000


def held(path: Path) -> tuple[int, int]:
    """Return how many descriptors and mappings of a queue's files this process has."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return sum(link.startswith(str(path)) for link in links), maps.count(str(path))


needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")


@needs_proc
def test_a_closed_queue_holds_no_file(path: Path) -> None:
    for _ in range(3):
        with quire.open(path, block_bytes=1) as queue:
            appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("risk")
            appender.write_many([b"one", b"two"])
            assert tailer.read_bytes() == named.read_bytes() == b"one"
            assert held(path) != (0, 0)
        del appender, tailer, named, queue
        gc.collect()
        assert held(path) == (0, 0)


@pytest.mark.check
@needs_proc
def test_a_closed_queue_does_not_map_the_file_of_those_who_slept(path: Path) -> None:
    queue = quire.open(path, block_bytes=1)
    appender, tailer = queue.appender(), queue.tailer()
    with pytest.raises(quire.errors.WaitTimeoutError):
        tailer.wait(timeout_s=0.01)
    appender.write_bytes(b"one")
    tailer.wait()
    queue.close()
    assert any(not is_mapped(path / "waiting.quire", look) for look in range(1000))
    assert appender.closed


def is_mapped(file: Path, look: int) -> bool:
    if look:
        time.sleep(0.01)  # the thread that waits for readers keeps it for a moment
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return str(file) in maps


@pytest.mark.check
@needs_proc
def test_handles_that_nobody_closes_hold_no_file_once_they_are_gone(path: Path) -> None:
    queue = quire.open(path, block_bytes=1)
    queue.appender().write_many([b"one", b"two"])
    tailer = queue.tailer()
    tailer.read()
    document = tailer.reading_document()
    view = document.bytes[1:]
    del document, tailer, queue
    gc.collect()
    assert bytes(view) == b"wo"
    assert held(path)[1] > 0  # what a view shows stays mapped
    del view
    gc.collect()
    assert held(path) == (0, 0)


@pytest.mark.check
@needs_proc
def test_a_thousand_rolls_and_tailers_hold_few_files(path: Path) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="TEST4_SECONDLY", clock=clock, block_bytes=1) as queue:
        appender, tailers = queue.appender(), [queue.tailer() for _ in range(1000)]
        for number in range(1000):
            appender.write_bytes(b"%d" % number)
            clock.advance(SECOND_MS)
        assert held(path)[0] < 20
        for tailer in tailers[::100]:
            assert list(tailer.payloads()) == [b"%d" % number for number in range(1000)]
        assert [tailer.read_bytes() for tailer in tailers[1:5]] == [b"0"] * 4
        assert held(path)[0] < 30
        assert queue.entry_count == 1000


def test_what_does_not_fit_on_the_disk_is_the_systems_error(path: Path) -> None:
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        written: list[bytes] = []
        with quire.open(path, roll_cycle="TEST8_DAILY", block_bytes=2**16) as queue:
            appender = queue.appender()

            def write() -> None:
                while True:
                    message = bytes([len(written)]) * 10_000
                    appender.write_bytes(message)
                    written.append(message)

            with pytest.raises(OSError, match=r"\.cq4") as caught:
                write()
            assert caught.value.errno == errno.EFBIG
            with pytest.raises(OSError, match=r"\.cq4"):
                appender.write_many([b"x" * 60_000] * 100)
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
            found = payloads(queue)
            assert found[: len(written)] == written
            assert 50 < len(written) < 110
            assert set(found[len(written) :]) <= {b"x" * 60_000}
        assert problems_of(path) == []

    assert exit_code(fork(fill)) == 0


def test_a_new_file_that_finds_no_space_leaves_nothing(path: Path) -> None:
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, 2**18))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=2**20) as queue:
            for _ in range(3):
                with pytest.raises(OSError, match=r"\.cq4"):
                    queue.appender().write_bytes(b"x")
            assert queue.table_value(WRITE_LOCK) == UNLOCKED
            assert payloads(queue) == []
        assert [file.name for file in path.iterdir()] == ["metadata.cq4t"]

    assert exit_code(fork(fill)) == 0
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"x")
        assert payloads(queue) == [b"x"]


def test_an_interrupt_amid_a_bulk_write_leaves_every_message_that_was_published(
    path: Path,
) -> None:
    messages = [b"%d" % number for number in range(400_000)]
    with quire.open(path, roll_cycle="FAST_DAILY", block_bytes=2**20) as queue:
        appender = queue.appender()
        timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))

        def write() -> None:
            timer.start()
            while True:
                appender.write_many(messages)

        gc.disable()  # it calls Python of Hypothesis back, where an interrupt would be lost
        try:
            with pytest.raises(KeyboardInterrupt):
                write()
        finally:
            gc.enable()
        timer.join()

        assert queue.table_value(WRITE_LOCK) == UNLOCKED
        found = payloads(queue)
        expected = (messages * (1 + len(found) // len(messages)))[: len(found)]
        assert found == expected
        index = appender.write_bytes(b"after")
        assert queue.entry_count == len(found) + 1
        assert queue.last_index == index


def test_an_interrupt_ends_waiting_for_messages(queue: quire.JournalQueue) -> None:
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

    def wait() -> None:
        timer.start()
        queue.tailer().wait(30)

    with pytest.raises(KeyboardInterrupt):
        wait()
    timer.join()
