"""Waits for locks: other threads go on, handlers of signals run, and Ctrl-C ends them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType

import pytest

import quire
import quire.quick_queue
from file_locks import REPAIR_LOCK, RING_OPENER, locked

BEATS = 100  # of another thread, while a call waits
OFD_SETLK = 37  # F_OFD_SETLK, which `fcntl` has from Python 3.14 on
LONG_S = 600.0  # longer than a test may take


@contextlib.contextmanager
def table_locked(path: Path) -> Generator[Callable[[], None]]:
    """Lock the whole table by a description of its own, as another process does, until the call."""
    with (path / "metadata.cq4t").open("r+b") as file:
        fcntl.fcntl(file, OFD_SETLK, _whole(fcntl.F_WRLCK))

        def release() -> None:
            fcntl.fcntl(file, OFD_SETLK, _whole(fcntl.F_UNLCK))

        yield release


def _whole(kind: int) -> bytes:
    return struct.pack("hhqqi4x", kind, 0, 0, 0, 0)


def beat(then: Callable[[], None]) -> threading.Thread:
    """Have another thread count for a while and then call *then*: it must not be kept from that."""

    def count() -> None:
        for _ in range(BEATS):
            time.sleep(0.001)
        then()

    thread = threading.Thread(target=count)
    thread.start()
    return thread


CONSTRUCTORS: dict[str, Callable[[quire.JournalQueue], object]] = {
    "appender": lambda queue: queue.appender(),
    "pretoucher": lambda queue: queue.pretoucher(),
    "tailer": lambda queue: queue.tailer("named"),
    "delete": lambda queue: queue.delete_tailer("known"),
}


@pytest.mark.parametrize("kind", CONSTRUCTORS)
def test_other_threads_go_on_while_a_call_waits_for_the_table(tmp_path: Path, kind: str) -> None:
    with quire.open(tmp_path / "q", timeout_s=LONG_S) as queue:
        with queue.tailer("known"):
            pass
        with table_locked(tmp_path / "q") as release:
            # Released by a thread alone: a call that kept it from running would wait for ever.
            thread = beat(release)
            CONSTRUCTORS[kind](queue)
            thread.join()


def test_ctrl_c_ends_a_wait_for_another_that_opens_the_ring(path: Path) -> None:
    quire.open(path, buffer_mode="async").close()
    main = threading.get_ident()
    with locked(path / "async.ring", RING_OPENER, 1):
        thread = beat(lambda: signal.pthread_kill(main, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            quire.open(path, buffer_mode="async")
        thread.join()


def test_ctrl_c_ends_a_wait_for_another_that_repairs_a_quick_queue(path: Path) -> None:
    main, lock = threading.get_ident(), path / "quick-queue.lock"
    with quire.quick_queue.open(path) as queue:
        with queue.appender() as appender:
            appender.write_bytes(b"before")
        lock.write_bytes(b"\0")  # a repair was begun
        with locked(lock, REPAIR_LOCK, 1):
            thread = beat(lambda: signal.pthread_kill(main, signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                queue.appender()
            thread.join()


@pytest.mark.parametrize("kind", [*CONSTRUCTORS, "open"])
def test_ctrl_c_ends_a_wait_for_the_table(tmp_path: Path, kind: str) -> None:
    path, main = tmp_path / "q", threading.get_ident()
    with quire.open(path) as made, made.tailer("known"):
        pass
    queue = quire.open(path, timeout_s=LONG_S) if kind in CONSTRUCTORS else None
    with table_locked(path):
        thread = beat(lambda: signal.pthread_kill(main, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            CONSTRUCTORS[kind](queue) if queue else quire.open(path, timeout_s=LONG_S)
        thread.join()
    if queue:
        queue.close()


def test_a_handler_may_use_the_table_that_its_thread_waits_for(tmp_path: Path) -> None:
    """What the interrupted call holds, the handler cannot get: it must not be held just then."""
    path, main = tmp_path / "q", threading.get_ident()
    ended: list[str] = []
    with quire.open(path, timeout_s=LONG_S) as queue, table_locked(path) as release:

        def handle(_number: int, _frame: FrameType | None) -> None:
            release()
            with queue.tailer("of the handler"), quire.open(path):
                ended.append("handler")

        before = signal.signal(signal.SIGUSR1, handle)
        try:
            thread = beat(lambda: signal.pthread_kill(main, signal.SIGUSR1))
            with queue.tailer("interrupted"):
                ended.append("tailer")
            thread.join()
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert ended == ["handler", "tailer"]


HOLDER = """
import sys, quire
with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
    with appender.writing_document() as document:
        document.write("text", "of the holder")
        print("held", flush=True)
        sys.stdin.read(1)
"""


@contextlib.contextmanager
def write_lock_held(path: Path) -> Generator[Callable[[], None]]:
    """Have another process hold the write lock until the call."""
    arguments = [sys.executable, "-W", "ignore", "-c", HOLDER, str(path)]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder.stdin.close
        assert holder.wait() == 0


@pytest.mark.parametrize("same", [True, False])
def test_a_handler_appends_while_its_thread_waits_for_the_write_lock(
    tmp_path: Path,
    same: bool,  # noqa: FBT001 - a parameter
) -> None:
    path, main = tmp_path / "q", threading.get_ident()
    with quire.open(path, timeout_s=LONG_S) as queue, queue.appender() as appender:
        with queue.appender() as other, write_lock_held(path) as release:

            def handle(_number: int, _frame: FrameType | None) -> None:
                release()
                (appender if same else other).write_text("of the handler")

            before = signal.signal(signal.SIGUSR1, handle)
            try:
                thread = beat(lambda: signal.pthread_kill(main, signal.SIGUSR1))
                appender.write_text("interrupted")
                thread.join()
            finally:
                signal.signal(signal.SIGUSR1, before)
        with queue.tailer() as tailer:
            assert tailer.read_map() == {"text": "of the holder"}
            # Either may be the first, as both wait for the holder's end.
            texts = {tailer.read_text(), tailer.read_text()}
    assert texts == {"of the handler", "interrupted"}
