"""Threads that share an appender of a Quick-Queue: none stops those that do something else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pause_points import HANG_S, Party

THREADS = """
import threading, time
path, signals = sys.argv[1:]
sys.setswitchinterval(1000)  # a thread gives way where it detaches, and nowhere else
appender = quire.quick_queue.open(path, page_bytes=4096).appender()
begun = threading.Event()
def many():
    arm()
    appender.write_many([b"x"] * 9)
def one():
    begun.set()
    appender.write_bytes(b"y")
threads = [threading.Thread(target=it) for it in (many, one)]
threads[0].start()
while not os.path.exists(signals + "/stands"):
    time.sleep(0.001)
threads[1].start()
begun.wait()
assert not appender.closed and "closed" not in repr(appender)
open(signals + "/went-on", "x").close()
for thread in threads:
    thread.join()
say([data.decode() for data in quire.open(path).tailer().payloads()])
"""


@pytest.mark.slow
def test_a_small_append_waits_for_a_bulk_append_without_stopping_other_threads(
    tmp_path: Path,
) -> None:
    point = "quick-queue.payload.store"
    with Party(THREADS, tmp_path / "queue", tmp_path, point=point, nth=3) as party:
        party.wait_until_stopped()
        (tmp_path / "stands").touch()
        deadline = time.monotonic() + HANG_S
        while not (tmp_path / "went-on").exists():
            assert party.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        party.go_on()
        assert party.result() == [["x"] * 9 + ["y"]]
