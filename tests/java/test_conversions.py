"""What a conversion writes Java reads, the map beside it notwithstanding."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from converted import fill, messages
from java_peer import JavaPeer
from queues import DAY_MS, START_MS
from vanilla_java import vanilla_java

pytestmark = pytest.mark.java

DAYS = [[b"%d of day %d" % (number, day) for number in range(30)] for day in range(3)]


def test_java_reads_a_chronicle_queue_that_was_a_vanilla_chronicle(tmp_path: Path) -> None:
    fill(tmp_path / "source", "vanilla", DAYS)
    dest = tmp_path / "dest"
    quire.convert(tmp_path / "source", dest, into="chronicle", block_bytes=1 << 18)
    lines = [line.split() for line in JavaPeer("5.27ea11").run("list", dir=dest)]
    assert [(int(index, 16), bytes.fromhex(data)) for index, _, data in lines] == messages(dest)
    with quire.open(dest, clock=quire.ManualClock(START_MS + 9 * DAY_MS)) as queue:
        queue.appender().write_bytes(b"more")
    assert len(JavaPeer("5.27ea11").run("list", dir=dest)) == 91


def test_java_reads_a_vanilla_chronicle_that_was_a_chronicle_queue(tmp_path: Path) -> None:
    fill(tmp_path / "source", "chronicle", DAYS)
    dest = tmp_path / "dest"
    quire.convert(tmp_path / "source", dest, into="vanilla")
    most = int(Path("/proc/sys/kernel/pid_max").read_text("utf-8"))
    java = vanilla_java(tid_bits=max(16, (most - 1).bit_length()))
    *lines, last = [line.split() for line in java.run("list", dir=dest)]
    found = messages(dest)
    assert [(int(index, 16), bytes.fromhex(data)) for index, _, data in lines] == found
    assert last == ["last", f"{found[-1][0]:x}"]
