"""A roll file grows by appenders and pretouchers of one process: it never becomes shorter."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pause_points import Party
from queues import START_MS
from reference import read_queue

STANDS = 40  # appends that go on while the pretoucher stands, at most
MESSAGE_BYTES = 60_000

# One thread prepares space and stops; another appends, and says which messages were taken.
GROWING = f"""
import threading
path, begin = sys.argv[1:]
queue = quire.open(
    path, block_bytes=65_536, pretouch=False, timeout_s=0.1, clock=quire.ManualClock({START_MS})
)
appender, pretoucher = queue.appender(), queue.pretoucher()
def append(number):
    appender.write_bytes(b"%d " % number + b"m" * {MESSAGE_BYTES})
    say(number)
append(0)
arm()
thread = threading.Thread(target=pretoucher.execute)
thread.start()
open(begin).read()
for number in range(1, {2 * STANDS}):
    while True:
        try:
            append(number)
            break
        except quire.errors.LockTimeoutError:
            say("waits")
thread.join()
queue.close()
say("done")
"""


class Growing:
    """A process whose pretoucher stands before it makes the file longer."""

    def __init__(self, party: Party) -> None:
        self.party = party
        self.taken: list[int] = []

    def said(self) -> str:
        assert self.party.process.stdout is not None
        line = self.party.process.stdout.readline().strip()
        if line.isdecimal():
            self.taken.append(int(line))
        return line

    def append_meanwhile(self) -> None:
        """Return when the appender waits for the pretoucher, or has gone on for long."""
        while self.said() != '"waits"' and len(self.taken) < STANDS:
            assert self.party.process.poll() is None

    def end(self) -> int:
        self.party.go_on()
        while self.said():
            pass
        return self.party.process.wait()


@contextmanager
def growing(tmp_path: Path, unmended: str = "") -> Generator[Growing]:
    begin = tmp_path / "begin"
    os.mkfifo(begin)
    queue = tmp_path / "queue"
    environment = {"QUIRE_UNMENDED": unmended}
    with Party(GROWING, queue, begin, point="window.grow", environment=environment) as party:
        party.wait_until_stopped()
        begin.write_text("")
        yield Growing(party)


def numbers(queue: Path) -> list[int]:
    return [int(payload.split()[0]) for _, payload in read_queue(queue)]


def test_a_pretoucher_that_stands_before_it_grows_a_file_cuts_off_no_message(
    tmp_path: Path,
) -> None:
    with growing(tmp_path) as found:
        found.append_meanwhile()
        assert found.end() == 0
    assert found.taken == list(range(2 * STANDS)) == numbers(tmp_path / "queue")


def test_that_test_finds_growth_by_truncation(tmp_path: Path) -> None:
    with growing(tmp_path, unmended="window.grow") as found:
        found.append_meanwhile()
        ended = found.end()
    assert ended != 0 or found.taken != numbers(tmp_path / "queue")


def test_a_thread_that_gives_up_growing_leaves_other_processes_locked_out(tmp_path: Path) -> None:
    with growing(tmp_path) as found:
        found.append_meanwhile()
        (file,) = (tmp_path / "queue").glob("*.cq4")
        with file.open("r+b") as opened, pytest.raises(BlockingIOError):
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as Java takes it
        assert found.end() == 0
        with file.open("r+b") as opened:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
