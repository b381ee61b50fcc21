"""Openers that repair after a restart meet others: waiters, living writers, deaths, other owners.

See docs/durability.md; `tests/attack/test_restart.py` has what is repaired, this how.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import quire
from queues import DAY_MS, START_MS, UNLOCKED, WRITE_LOCK, exit_code, fork, payloads, poke
from queues import problems_of as problems
from reference import Store

PAGE = 4096
LONG_AGO = 1_700_000_000
HANG_S = 100.0
ORPHAN_S = 240  # a child's life, should the test not end it
PRESENCE = 2**62
F_OFD_GETLK = 36
FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, pid
NOBODY = 65_534
LARGE = 64 << 20
UNFINISHED = struct.pack("<I", 0x80000000)
MESSAGES = [b"%04d" % number * 10 for number in range(400)]


def opened(path: Path, day: int = 0, timeout_s: float = HANG_S) -> quire.JournalQueue:
    clock = quire.ManualClock(START_MS + day * DAY_MS)
    return quire.open(
        path, roll_cycle="TEST4_DAILY", clock=clock, block_bytes=2**16, timeout_s=timeout_s
    )


def age(file: Path) -> None:
    """Have a file as if it had been written before the machine was started."""
    os.utime(file, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def lose(file: Path) -> None:
    """Have one page of a file as if it had never reached the disk."""
    with file.open("r+b") as handle:
        handle.seek(2 * PAGE)
        handle.write(bytes(PAGE))
    age(file)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A queue with a page lost."""
    fill(tmp_path / "queue")
    lose(newest(tmp_path / "queue"))
    return tmp_path / "queue"


def fill(path: Path, days: int = 1) -> None:
    for day in range(days):
        with opened(path, day) as queue:
            queue.appender().write_many(MESSAGES)


def newest(path: Path) -> Path:
    return max(path.glob("*.cq4"))


def kept_aside(path: Path) -> list[str]:
    return sorted(file.name.split(".cq4-")[0] for file in path.glob("*.cq4-*.discard"))


def is_announced(path: Path) -> bool:
    """Whether this process holds its liveness byte, as seen through another descriptor."""
    asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, PRESENCE + os.getpid(), 1, 0)
    with (path / "metadata.cq4t").open("r+b") as table:
        kind, *_ = FLOCK.unpack(fcntl.fcntl(table, F_OFD_GETLK, asked))
    return bool(kind != fcntl.F_UNLCK)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.0005)


def test_an_opener_shows_that_it_lives_before_it_has_the_lock(path: Path) -> None:
    """Its pid alone says nothing in other containers, where it would be taken for dead."""
    os.utime(newest(path))
    receiver, sender = os.pipe()

    def hold() -> None:
        signal.alarm(ORPHAN_S)
        document = opened(path).appender().writing_document()
        document.write_bytes(b"never finished")
        os.write(sender, b"!")
        signal.pause()

    holder = fork(hold)
    os.read(receiver, 1)
    age(newest(path))
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(opened, path, timeout_s=2 * HANG_S)
        until(lambda: is_announced(path) or opening.done())
        assert not opening.done()
        assert not kept_aside(path)
        os.kill(holder, signal.SIGKILL)
        assert exit_code(holder) == -signal.SIGKILL
        opening.result(HANG_S).close()
    assert kept_aside(path)
    os.close(receiver)
    os.close(sender)


def test_who_lost_the_lock_amid_the_repair_changes_nothing(path: Path) -> None:
    with newest(path).open("ab") as file:
        file.write(b"\1" * LARGE)  # takes some time to keep aside
    before, was_in_time = newest(path).read_bytes(), False
    for _ in range(20):
        newest(path).write_bytes(before)
        age(newest(path))
        with ThreadPoolExecutor(1) as pool:
            opening = pool.submit(opened, path)
            until(lambda opening=opening: bool(kept_aside(path)) or opening.done())  # type: ignore[misc]
            was_in_time = not opening.done()
            poke(path, WRITE_LOCK, 1)  # as one who forced it, and took it
            error = opening.exception(HANG_S)
            poke(path, WRITE_LOCK, UNLOCKED)
        for kept in path.glob("*.discard"):
            kept.unlink()
        if isinstance(error, quire.errors.LockLostError):
            break
        assert error is None
        opening.result().close()
    else:
        pytest.fail("never in time" if not was_in_time else "the lost lock was not noticed")
    assert newest(path).read_bytes() == before
    with opened(path) as queue:  # the next one repairs
        assert queue.entry_count == len(payloads(queue)) < len(MESSAGES)
    assert kept_aside(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_whoever_may_write_a_queue_may_repair_it() -> None:
    """Setting a time of one's choice is for the owner."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "queue"
        fill(path)
        for place, mode in ((Path(directory), 0o755), (path, 0o777)):
            place.chmod(mode)
        for file in path.iterdir():
            file.chmod(0o666)
        lose(newest(path))

        def repair_as_another() -> None:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            with opened(path) as queue:
                queue.appender().write_bytes(b"mine")
                assert payloads(queue)[-1] == b"mine"

        assert exit_code(fork(repair_as_another)) == 0
        assert kept_aside(path)
        assert newest(path).stat().st_mtime > LONG_AGO
        assert not problems(path)


def test_an_older_file_that_fails_leaves_the_newer_ones_to_the_next_opener(tmp_path: Path) -> None:
    path, hidden = tmp_path / "queue", tmp_path / "hidden"
    fill(path, days=3)
    first, second, third = sorted(path.glob("*.cq4"))
    lose(first)
    lose(third)
    second.rename(hidden)
    second.symlink_to(hidden)
    age(second)

    with pytest.raises(quire.errors.NotAQueueError, match="a symbolic link"):
        opened(path, day=2)
    assert kept_aside(path) == [first.stem]
    hidden.rename(second)
    age(second)
    opened(path, day=2).close()

    assert kept_aside(path) == [first.stem, third.stem]
    assert not problems(path)
    before = [file.stat().st_mtime_ns for file in (first, second, third)]
    opened(path, day=2).close()
    assert before == [file.stat().st_mtime_ns for file in (first, second, third)]


def test_a_clock_set_forward_takes_no_space_from_a_living_writer(tmp_path: Path) -> None:
    """It believes of its space that it is reserved, and stores there without asking."""
    path = tmp_path / "queue"
    go_on, resume = os.pipe()
    receiver, sender = os.pipe()

    def live() -> None:
        signal.alarm(ORPHAN_S)
        with opened(path) as queue, queue.appender() as appender:
            appender.write_many(MESSAGES)
            os.write(sender, b"!")
            os.read(go_on, 1)
            appender.write_many(MESSAGES)

    writer = fork(live)
    os.read(receiver, 1)
    file = newest(path)
    with file.open("r+b") as handle:  # what one who died had copied and not published
        handle.seek(Store(file.read_bytes()).tail + 8)
        handle.write(b"\7" * PAGE)
    blocks = file.stat().st_blocks
    age(file)

    opened(path).close()

    assert file.stat().st_blocks == blocks
    assert file.stat().st_mtime > LONG_AGO
    os.write(resume, b"!")
    assert exit_code(writer) == 0
    for end in (go_on, resume, receiver, sender):
        os.close(end)
    with quire.open(path, read_only=True) as queue:
        assert payloads(queue) == MESSAGES * 2
    assert not problems(path)
    assert not kept_aside(path)


def test_a_file_that_seems_old_and_is_in_the_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    fill(path)
    table = path / "metadata.cq4t"
    word, _ = Store(table.read_bytes()).entries()[WRITE_LOCK]
    ready = newest(path).read_bytes()[:4]
    with newest(path).open("r+b") as file:
        file.write(UNFINISHED)
    age(newest(path))

    def complete() -> None:
        with table.open("rb") as words, newest(path).open("r+b") as file:
            unlocked = struct.pack("<q", UNLOCKED)
            until(lambda: os.pread(words.fileno(), 8, word) != unlocked)
            file.write(ready)

    maker = fork(complete)
    with opened(path) as queue:
        assert exit_code(maker) == 0
        assert payloads(queue) == MESSAGES
    assert not list(path.glob("*.discard"))
