"""Tools that work on a queue while readers of it sleep: the side file stays, and no copy has it."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS
from quire.archive import archive
from quire.errors import ClosedError
from quire.maintenance import split_queue
from sleeping_life import SIDE_FILE, is_asleep

DAYS = 3
LIMIT_S = 120.0  # of a hang
Tool = Callable[[Path, Path], object]


class Queue:
    """A queue of three days, at whose end a reader sleeps."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = quire.ManualClock(START_MS)
        self._queue = self.open()
        with self._queue.appender() as appender:
            for day in range(DAYS):
                appender.write_text(f"day {day}")
                self.clock.advance(DAY_MS)
            appender.write_text("today")
        self._tailer = self._queue.tailer()
        self._reader = threading.Thread(target=self._receive, daemon=True)
        self._received: list[str] = []
        self._reader.start()
        self.wait_until_it_sleeps()

    def open(self) -> quire.JournalQueue:
        return quire.open(self.path, roll_cycle="TEST4_DAILY", clock=self.clock, block_bytes=2**16)

    def _receive(self) -> None:
        with suppress(ClosedError):  # the test failed
            for message in self._tailer.follow():
                self._received.append(message.to_text())
                if message.to_text() == "end":
                    return

    def wait_until_it_sleeps(self) -> None:
        ends = time.monotonic() + LIMIT_S
        while not is_asleep(self.path):
            assert time.monotonic() < ends, "nobody sleeps"
            time.sleep(0.001)

    def wake(self) -> list[str]:
        """Append the last message; return what the reader received, all in all."""
        with self.open() as queue, queue.appender() as appender:
            appender.write_text("end")
        self._reader.join(LIMIT_S)
        assert not self._reader.is_alive(), "hangs"
        return self._received

    def side_file(self) -> tuple[int, bytes]:
        """Return the number of the file, and what is in it beside the word."""
        found = self.path / SIDE_FILE
        content = found.read_bytes()
        return found.stat().st_ino, content[:8] + content[12:]

    def close(self) -> None:
        self._queue.close()


@pytest.fixture
def queue(path: Path) -> Iterator[Queue]:
    queue = Queue(path)
    yield queue
    queue.close()


def copy(path: Path, other: Path) -> None:
    assert quire.copy_queue(path, other).messages == DAYS + 1


def archive_all(path: Path, other: Path) -> None:
    assert archive(path, other).messages == DAYS


def split(path: Path, other: Path) -> None:
    split_queue(path, other, lambda message: message.to_text()[:1])


def verify(path: Path, _: Path) -> None:
    assert quire.verify(path).findings == ()


def repair(path: Path, _: Path) -> None:
    assert quire.repair(path, dry_run=False).actions == ()


def delete(path: Path, _: Path) -> None:
    assert len(quire.prune(path, max_cycles=2).removed) == DAYS - 1


def compress(path: Path, _: Path) -> None:
    assert len(quire.prune(path, max_cycles=2, action="compress").removed) == DAYS - 1


@pytest.mark.parametrize("tool", [copy, archive_all, split, verify, repair, delete, compress])
def test_a_tool_leaves_the_side_file_to_those_who_sleep(
    queue: Queue, path: Path, tmp_path: Path, tool: Tool
) -> None:
    before = queue.side_file()
    tool(path, tmp_path / "other")
    assert queue.side_file() == before
    assert not [*(tmp_path / "other").rglob(SIDE_FILE)]
    queue.wait_until_it_sleeps()
    assert queue.wake() == [*(f"day {day}" for day in range(DAYS)), "today", "end"]


def test_a_side_file_that_was_copied_byte_by_byte_is_used_there(
    queue: Queue, path: Path, tmp_path: Path
) -> None:
    """What `cp -r` made: the word is odd, though nobody sleeps there."""
    other = tmp_path / "other"
    shutil.copytree(path, other)
    assert is_asleep(other)
    with quire.open(other, clock=queue.clock) as copied, copied.appender() as appender:
        appender.write_text("one")
        assert not is_asleep(other)
        tailer = copied.tailer()
        assert len([*tailer.follow(timeout_s=0.01)]) == DAYS + 2
    assert queue.wake()[-1] == "end"
