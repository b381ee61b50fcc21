"""A thousand tailers with nothing to read: polling lists no directory and opens no file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import quire
from opens import Opens
from queues import DAY_MS

TAILERS, ROUNDS = 1_000, 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


def poll(tailers: list[quire.JournalTailer]) -> None:
    for _ in range(ROUNDS):
        assert not any(tailer.read() for tailer in tailers)
        assert not any(tailer.read_many(10) for tailer in tailers)


def test_what_is_listed_and_opened_is_counted(queue: quire.JournalQueue, path: Path) -> None:
    queue.appender().write_bytes(b"x")
    with Opens(path) as opens:
        list(path.iterdir())
        queue.refresh()
        (path / "metadata.cq4t").read_bytes()

    assert opens.listed == 2
    assert opens.files["metadata.cq4t"] == 1


@pytest.mark.parametrize("named", [False, True])
def test_idle_tailers_list_no_directory(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock, *, named: bool
) -> None:
    appender = queue.appender()
    for _ in range(3):
        appender.write_bytes(b"x")
        clock.advance(DAY_MS)
    tailers = [queue.tailer(f"n{number}" if named else None) for number in range(TAILERS)]
    assert all(len(tailer.read_many(10)) == 3 for tailer in tailers)

    with Opens(path) as opens:
        poll(tailers)
    assert (opens.listed, opens.files) == (0, {})


def test_tailers_after_an_end_mark_list_no_directory(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    queue.appender().write_bytes(b"x")
    clock.advance(DAY_MS)
    queue.appender().write_bytes(b"y")
    Path(queue.file_for_cycle(queue.cycles[1])).unlink()
    queue.refresh()
    tailers = [queue.tailer() for _ in range(TAILERS)]
    assert all(len(tailer.read_many(10)) == 1 for tailer in tailers)

    with Opens(path) as opens:
        poll(tailers)
    assert (opens.listed, opens.files) == (0, {})


def test_a_roll_is_not_listed_by_each_tailer(
    queue: quire.JournalQueue, path: Path, clock: quire.ManualClock
) -> None:
    appender = queue.appender()
    appender.write_bytes(b"x")
    tailers = [queue.tailer() for _ in range(TAILERS)]
    assert all(tailer.read() for tailer in tailers)
    poll(tailers)
    clock.advance(DAY_MS)
    appender.write_bytes(b"y")

    with Opens(path) as opens:
        assert all(tailer.read() for tailer in tailers)
        poll(tailers)
    assert opens.listed <= 10
    assert opens.files.total() <= 10
