"""Listeners of `quire.open`: which files a queue opens and releases, and what a listener may do."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import quire
from queues import DAY_MS, START_MS
from quire.errors import ClosedError, UnsupportedError

FIRST = START_MS // DAY_MS


class Files:
    """Keeps what listeners are called with."""

    def __init__(self) -> None:
        self.acquired: list[tuple[int, str]] = []
        self.released: list[tuple[int, str]] = []
        self.order: list[tuple[str, int]] = []
        self.came = threading.Condition()

    def on_acquired(self, cycle: int, path: str) -> None:
        self.acquired.append((cycle, path))
        self._note("acquired", cycle)

    def on_released(self, cycle: int, path: str) -> None:
        self.released.append((cycle, path))
        self._note("released", cycle)

    def _note(self, what: str, cycle: int) -> None:
        with self.came:
            self.order.append((what, cycle))
            self.came.notify_all()

    def wait_for(self, what: str, cycle: int) -> None:
        with self.came:
            assert self.came.wait_for(lambda: (what, cycle) in self.order, timeout=300)

    def listen(
        self, path: Path, *, clock: quire.ManualClock | None = None, read_only: bool = False
    ) -> quire.JournalQueue:
        return quire.open(
            path,
            roll_cycle="TEST4_DAILY",
            block_bytes=2**16,
            roll=quire.RollOptions(
                on_file_acquired=self.on_acquired, on_file_released=self.on_released
            ),
            clock=clock,
            read_only=read_only,
        )


def write_days(queue: quire.JournalQueue, clock: quire.ManualClock, days: int) -> None:
    with queue.appender() as appender:
        for day in range(days):
            appender.write_bytes(b"%d" % day)
            clock.advance(DAY_MS)


def test_each_file_is_acquired_and_released(path: Path, clock: quire.ManualClock) -> None:
    files = Files()
    with files.listen(path, clock=clock) as queue:
        write_days(queue, clock, 3)
        paths = {cycle: queue.file_for_cycle(cycle) for cycle in queue.cycles}
        with queue.tailer() as tailer:
            assert len([*tailer]) == 3
            files.wait_for("acquired", FIRST + 2)

    assert set(files.acquired) == set(paths.items())
    assert Counter(files.acquired) == Counter(files.released)
    for cycle in paths:
        order = [what for what, one in files.order if one == cycle]
        assert order == ["acquired", "released"] * (len(order) // 2)


def test_handles_that_share_a_file_acquire_it_once(path: Path, clock: quire.ManualClock) -> None:
    files = Files()
    with files.listen(path, clock=clock) as queue:
        appender = queue.appender()
        appender.write_bytes(b"x")
        tailers = [queue.tailer() for _ in range(3)]
        assert all(tailer.read() for tailer in tailers)
        assert queue.last_index is not None
        for tailer in tailers:
            tailer.close()

    assert files.order == [("acquired", FIRST), ("released", FIRST)]


def test_a_reader_has_listeners_too(path: Path, clock: quire.ManualClock) -> None:
    with quire.open(path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16) as queue:
        write_days(queue, clock, 2)
    files = Files()
    with files.listen(path, read_only=True) as queue:
        assert len([*queue.tailer()]) == 2

    assert {cycle for cycle, _ in files.acquired} == {FIRST, FIRST + 1}
    assert Counter(files.acquired) == Counter(files.released)


def test_one_listener_alone_is_enough(path: Path, clock: quire.ManualClock) -> None:
    released: list[int] = []
    with quire.open(
        path,
        roll_cycle="TEST4_DAILY",
        clock=clock,
        roll=quire.RollOptions(on_file_released=lambda cycle, _path: released.append(cycle)),
    ) as queue:
        write_days(queue, clock, 2)

    assert set(released) == {FIRST, FIRST + 1}


def test_a_listener_that_raises_is_logged_and_breaks_nothing(
    path: Path, clock: quire.ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(cycle: int, _path: str) -> None:
        if cycle == FIRST:
            raise LookupError("not here")
        sys.exit(3)

    files = Files()
    with quire.open(
        path,
        roll_cycle="TEST4_DAILY",
        clock=clock,
        roll=quire.RollOptions(on_file_acquired=failing, on_file_released=files.on_released),
    ) as queue:
        write_days(queue, clock, 2)
        assert len([*queue.tailer()]) == 2

    lines = [record.getMessage() for record in caplog.records if record.name == "quire"]
    assert f"cycle={FIRST} " in lines[0]
    assert any(f"cycle={FIRST + 1} " in line for line in lines)
    assert {cycle for cycle, _ in files.released} == {FIRST, FIRST + 1}


def test_no_handle_waits_for_a_listener(path: Path, clock: quire.ManualClock) -> None:
    called, goes_on = threading.Event(), threading.Event()

    def waiting(_cycle: int, _path: str) -> None:
        called.set()
        assert goes_on.wait(300)

    with quire.open(
        path,
        roll_cycle="TEST4_DAILY",
        clock=clock,
        roll=quire.RollOptions(on_file_acquired=waiting),
    ) as queue:
        with queue.appender().writing_document() as document:  # the write lock is held
            document.write_bytes(b"x")
            assert called.wait(300)
        write_days(queue, clock, 3)
        assert len([*queue.tailer()]) == 4
        assert not queue.write_lock.locked
        goes_on.set()


def test_a_listener_may_use_the_queue(path: Path, clock: quire.ManualClock) -> None:
    seen: list[bytes] = []
    done = threading.Event()

    def reading(cycle: int, _path: str) -> None:
        if cycle == FIRST + 1 and not done.is_set():
            queue.appender().write_bytes(b"from the listener")
            seen.extend(queue.tailer().payloads())
            done.set()

    with (
        quire.open(
            path,
            roll_cycle="TEST4_DAILY",
            clock=clock,
            roll=quire.RollOptions(on_file_acquired=reading),
        ) as queue,
        queue.appender() as appender,
    ):
        appender.write_bytes(b"0")
        clock.advance(DAY_MS)
        appender.write_bytes(b"1")
        assert done.wait(300)

    assert seen == [b"0", b"1", b"from the listener"]


def test_a_listener_may_close_the_queue(path: Path, clock: quire.ManualClock) -> None:
    files, closed = Files(), threading.Event()

    def closing(cycle: int, path: str) -> None:
        files.on_acquired(cycle, path)
        queue.close()
        closed.set()

    with quire.open(
        path,
        roll_cycle="TEST4_DAILY",
        clock=clock,
        roll=quire.RollOptions(on_file_acquired=closing, on_file_released=files.on_released),
    ) as queue:
        queue.appender().write_bytes(b"x")
        assert closed.wait(300)
        with pytest.raises(ClosedError):
            queue.appender()

    assert files.acquired == files.released != []


def test_a_pickled_queue_has_no_listeners(path: Path, clock: quire.ManualClock) -> None:
    files = Files()
    with files.listen(path, clock=clock) as queue:
        pickled = pickle.dumps(queue)
    with pickle.loads(pickled) as again:
        again.appender().write_bytes(b"x")

    assert files.acquired == []


def test_a_process_that_ends_without_closing_calls_them_all(path: Path) -> None:
    program = """
import sys, quire
acquired, released = [], []
queue = quire.open(
    sys.argv[1],
    roll=quire.RollOptions(
        on_file_acquired=lambda cycle, path: acquired.append(cycle),
        on_file_released=lambda cycle, path: print(acquired == [cycle], flush=True),
    ),
)
appender = queue.appender()
appender.write_bytes(b"x")
"""
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    assert (done.stdout.strip(), done.stderr) == ("True", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_closes_without_its_thread(path: Path, clock: quire.ManualClock) -> None:
    files = Files()
    with files.listen(path, clock=clock) as queue:
        appender = queue.appender()
        appender.write_bytes(b"x")
        files.wait_for("acquired", FIRST)
        child = os.fork()
        if child == 0:
            queue.close()
            os._exit(0 if files.released == [] else 1)
        assert os.waitpid(child, 0)[1] == 0

    assert files.acquired == files.released


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_is_forked_while_a_queue_is_opened_ends_without_a_word(path: Path) -> None:
    program = """
import os, sys, threading, quire
start = threading.Thread.start
def fork_first(thread):
    child = os.fork()
    if child == 0:
        sys.exit(0)
    threading.Thread.start = start
    assert os.waitpid(child, 0)[1] == 0
    thread.start()
threading.Thread.start = fork_first  # as another thread may fork at any time
quire.open(sys.argv[1], roll=quire.RollOptions(on_file_acquired=print)).close()
"""
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    assert done.stderr == ""


@pytest.mark.parametrize("option", ["on_file_acquired", "on_file_released"])
def test_what_cannot_be_called_is_refused(option: str, path: Path) -> None:
    with pytest.raises(TypeError, match=option):
        quire.open(path, roll=quire.RollOptions(**{option: "print"}))  # type: ignore[arg-type]
    assert not path.exists()
    listening: Any = {"roll": quire.RollOptions(**{option: print})}  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=option):
        quire.open(path, format="quick-queue", **listening)
