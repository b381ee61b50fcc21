"""Files of sizes that make no sense, or that change while they are read."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

import quire
from queues import START_MS, payloads
from tally import Tally

NAME = "20240115T4.cq4"
TEN_TB, ALL_ADDRESSES = 10 * 2**40, 2**43  # the second is as long as file systems allow here
MOST_GROWTH = 96 << 20


@pytest.fixture
def filled(path: Path, queue: quire.JournalQueue) -> Path:
    """A closed queue of one file and three messages."""
    queue.appender().write_many([b"one", b"two", b"three"])
    queue.close()
    return path


def reopened(path: Path, *, read_only: bool) -> quire.JournalQueue:
    return quire.open(path, read_only=read_only, clock=quire.ManualClock(START_MS), block_bytes=1)


@pytest.mark.parametrize("length", [TEN_TB, ALL_ADDRESSES])
@pytest.mark.parametrize("name", [NAME, "metadata.cq4t"])
def test_a_sparse_file_of_terabytes_is_read_or_an_error_and_costs_little(
    filled: Path, name: str, length: int, tally: Tally
) -> None:
    try:
        os.truncate(filled / name, length)
    except OSError as error:
        pytest.skip(f"the file system holds no file of {length} bytes: {error}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read_only in (True, False):
        try:
            with reopened(filled, read_only=read_only) as queue:
                found = payloads(queue)
                assert queue.entry_count == len(found)
                if not read_only:
                    queue.appender().write_bytes(b"four")
        except (quire.QuireError, OSError):
            continue
        assert found == [b"one", b"two", b"three"]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MOST_GROWTH
    assert (filled / name).stat().st_blocks * 512 < MOST_GROWTH
    tally("A sparse file of terabytes costs little memory and no disk", 2, "openings")


def test_bytes_that_come_while_a_file_is_read_are_read_once_they_are_whole(filled: Path) -> None:
    file = filled / NAME
    whole = file.read_bytes()
    clock = quire.ManualClock(START_MS)
    with quire.open(filled, clock=clock, block_bytes=2**17) as queue:
        last = queue.appender().write_bytes(b"x" * 30_000)
    grown = file.read_bytes()
    assert len(grown) > len(whole)
    file.write_bytes(whole)

    with reopened(filled, read_only=True) as queue, queue.tailer() as tailer:
        assert list(tailer.payloads()) == [b"one", b"two", b"three"]
        with file.open("r+b") as handle:
            for end in range(len(whole), len(grown), 4096):  # the pages of a slow copy
                handle.seek(end)
                handle.write(grown[end : end + 4096])
                handle.flush()
                assert tailer.read() is None
            handle.seek(0)
            handle.write(grown[: len(whole)])
        assert tailer.read() == quire.Excerpt(last, b"x" * 30_000)
