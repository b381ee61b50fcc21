"""A roll file that is replaced by a backup while it is used: nobody stays with the old one."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import payloads, problems_of

PATIENCE_S = 300.0
KEPT = [b"kept %d" % number for number in range(5)]
LOST = [b"lost %d" % number for number in range(5)]


class Replaced:
    """A queue in use, whose only roll file can be replaced by an older copy of itself."""

    def __init__(self, path: Path) -> None:
        self.queue = quire.open(path, roll_cycle="FAST_DAILY", block_bytes=2**16)
        self.appender = self.queue.appender()
        self.appender.write_many(KEPT)
        [self.file] = path.glob("*.cq4")
        self.backup = path.with_name("backup")
        shutil.copy(self.file, self.backup)
        self.appender.write_many(LOST)

    def replace(self) -> None:
        os.replace(self.backup, self.file)  # noqa: PTH105

    def append_until(self, done: Callable[[], bool]) -> None:
        """Append to both files, whichever it is: what is put into the old one is logged as gone."""
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < deadline
            self.appender.write_bytes(b"new")
            time.sleep(0.001)


@pytest.fixture
def used(path: Path) -> Replaced:
    return Replaced(path)


@pytest.mark.parametrize("reader", ["unnamed", "named", "read-only"])
def test_a_tailer_goes_on_in_the_file_that_took_the_name_and_says_what_went(
    used: Replaced, path: Path, reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = quire.open(path, read_only=True) if reader == "read-only" else used.queue
    with queue.tailer("risk" if reader == "named" else None) as tailer:
        assert tailer.read_many(100) == [*KEPT, *LOST]
        assert tailer.read_bytes() is None
        used.replace()
        read = list[bytes]()

        def has_left() -> bool:
            read.extend(tailer.read_many(100))
            return "messages were deleted before they were read" in caplog.text

        used.append_until(has_left)
        used.appender.write_bytes(b"last")
        rest = read[read.index(b"last") :] if b"last" in read else tailer.read_many(100)
        assert rest[-1] == b"last"
        last = used.queue.last_index
        assert last is not None
        assert tailer.index == last + 1
    assert payloads(used.queue)[:5] == KEPT
    assert not problems_of(path)


def test_every_message_of_the_new_file_is_read(used: Replaced, path: Path) -> None:
    def in_new_file() -> list[bytes]:
        with quire.open(path, read_only=True) as queue:
            return payloads(queue)

    with used.queue.tailer() as tailer:
        assert len(tailer.read_many(100)) == 10
        used.replace()
        used.append_until(lambda: b"new" in in_new_file())
        read = list[bytes]()

        def is_there() -> bool:
            read.extend(tailer.read_many(10_000))
            return tailer.index & 0xFFFF_FFFF == len(in_new_file())

        used.append_until(is_there)
        new = in_new_file()[len(KEPT) : tailer.index & 0xFFFF_FFFF]
        assert read[-len(new) :] == new


def test_where_that_is_asked_for_a_replaced_file_is_an_error(used: Replaced) -> None:
    with used.queue.tailer(on_missing="raise") as tailer:
        assert len(tailer.read_many(100)) == 10
        used.replace()

        said: list[str] = []

        def raises() -> bool:
            try:
                tailer.read_many(100)
            except quire.errors.DataLossError as error:
                said.append(str(error))
            return bool(said)

        used.append_until(raises)
        assert "messages were deleted before they were" in said[0]


def test_a_copy_with_the_same_messages_takes_the_place_silently(
    used: Replaced, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copy(used.file, used.backup)
    with used.queue.tailer() as tailer:
        assert len(tailer.read_many(100)) == 10
        used.replace()
        inode = used.file.stat().st_ino
        deadline = time.monotonic() + PATIENCE_S
        while inode not in mapped() and time.monotonic() < deadline:
            assert tailer.read_bytes() is None
        assert inode in mapped()
    assert "were deleted" not in caplog.text


def mapped() -> set[int]:
    """Return the inodes of the files that this process has mapped."""
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    return {int(line.split()[4]) for line in lines}


def test_a_pretoucher_leaves_a_file_that_was_replaced(used: Replaced) -> None:
    with used.queue.pretoucher() as pretoucher:
        pretoucher.execute()
        used.replace()
        inode = used.file.stat().st_ino
        assert inode not in opened()
        pretoucher.execute()
        assert inode in opened()


def opened() -> set[int]:
    """Return the inodes of the files that this process has open."""
    found = set[int]()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(OSError):
            found.add(os.fstat(int(name)).st_ino)
    return found
