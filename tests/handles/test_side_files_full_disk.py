"""Append times, metrics, sleepers on a full disk: what is appended stays, and is found and read."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

import quire
from queues import START_MS, payloads
from small_disk import KIB, fill, is_no_space, make_room, on_small_disk

SIZE = 1024 * KIB


def text(ms: int) -> bytes:
    return b"at %d" % ms


@contextmanager
def logged() -> Generator[list[str]]:
    """What is logged in a child that pytest does not see."""
    found = list[str]()

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler = Kept()
    logger = logging.getLogger("quire")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def write(queue: quire.JournalQueue, clock: quire.ManualClock, *times_ms: int) -> None:
    with queue.appender() as appender:
        for ms in times_ms:
            clock.now_ms = START_MS + ms
            appender.write_bytes(text(ms))


def opened(path: Path, clock: quire.ManualClock, *, time_index: bool = False) -> quire.JournalQueue:
    return quire.open(path, clock=clock, block_bytes=2**16, time_index=time_index)


def first_at(path: Path, ms: int) -> int:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert tailer.move_to_time(datetime.fromtimestamp((START_MS + ms) / 1000, UTC))
        return int((tailer.read_bytes() or b"").split()[1])


def test_appends_go_on_where_there_is_no_room_for_their_times(tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        path, clock = disk / "queue", quire.ManualClock(START_MS)
        with opened(path, clock) as queue:
            write(queue, clock, 0)
            fill(disk)
            with logged() as lines, opened(path, clock, time_index=True) as indexed:
                write(indexed, clock, 10, 20)
                assert [it for it in lines if "append times are no longer written" in it]
                make_room(disk)
                write(indexed, clock, 30)
            with opened(path, clock, time_index=True) as indexed:
                write(indexed, clock, 40, 50)
            assert payloads(queue) == [text(it) for it in range(0, 60, 10)]
        # Those without a time count as of the next that has one: earlier, never later.
        assert [first_at(path, ms) for ms in (5, 15, 25, 31, 41)] == [0, 0, 0, 40, 50]
        return 1

    assert on_small_disk(tmp_path / "disk", SIZE, work) == 1


def test_appends_are_counted_on_a_full_disk(tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        path = disk / "queue"
        with quire.open(path, metrics=True, block_bytes=2**16) as queue:
            with queue.appender() as appender:
                appender.write_bytes(b"one")
                fill(disk)
                appender.write_many([b"two", b"three"])
            assert payloads(queue) == [b"one", b"two", b"three"]
            return queue.metrics().messages_appended

    assert on_small_disk(tmp_path / "disk", SIZE, work) == 3


def test_a_queue_without_room_for_its_metrics_says_so_when_it_is_opened(tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        path = disk / "queue"
        with quire.open(path, block_bytes=2**16) as queue, queue.appender() as appender:
            appender.write_bytes(b"one")
            fill(disk)
            with pytest.raises(OSError, match="cannot make") as caught:
                quire.open(path, metrics=True)
            assert is_no_space(caught.value, "metrics.quire")
            appender.write_bytes(b"two")
            make_room(disk)
            with quire.open(path, metrics=True) as counted:
                assert payloads(counted) == [b"one", b"two"]
        return 1

    assert on_small_disk(tmp_path / "disk", SIZE, work) == 1


def test_a_reader_without_room_for_its_side_file_looks_for_messages(tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        path = disk / "queue"
        side_file = path / "waiting.quire"
        with quire.open(path, block_bytes=2**16) as queue, queue.appender() as appender:
            appender.write_bytes(b"one")
            fill(disk)
            received: list[bytes] = []
            reader = threading.Thread(target=receive, args=(queue, received))
            reader.start()
            while not side_file.exists():
                time.sleep(0.001)
            with quire.open(path, block_bytes=2**16) as other, other.appender() as knowing:
                knowing.write_bytes(b"two")  # it finds the empty file
            appender.write_bytes(b"end")
            reader.join()
            assert received == [b"one", b"two", b"end"]
            assert side_file.stat().st_size == 0
            make_room(disk)
            with quire.open(path) as other:
                assert len([*other.tailer().follow(timeout_s=0.01)]) == 3
            return side_file.stat().st_size

    assert on_small_disk(tmp_path / "disk", SIZE, work) == 64


def receive(queue: quire.JournalQueue, received: list[bytes]) -> None:
    for message in queue.tailer().follow():
        received.append(message.data)
        if message.data == b"end":
            return
