"""Copies of a queue that a JVM writes meanwhile: Java reads, checks and continues them."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer

pytestmark = pytest.mark.java

COUNT = 3_000


def test_java_continues_a_copy_of_a_queue_that_java_writes(tmp_path: Path) -> None:
    peer, path = JavaPeer(), tmp_path / "queue"
    peer.run("write", dir=path, count=0, roll_cycle="TEST4_SECONDLY", block_size=2**20)
    copies: list[quire.maintenance.Copied] = []
    with peer.start(
        "produce", dir=path, id=1, count=COUNT, pause_us=1_000, ack=True, block_size=2**20
    ) as producer:
        producer.expect("READY")
        for number in range(4):
            line = producer.read_line()
            assert line is not None
            copies.append(quire.copy_queue(path, tmp_path / f"copy{number}"))
            assert (copies[-1].last_index or 0) >= int(line.split()[0], 16)
        producer.read_until("DONE", 120)
    for number, copied in enumerate(copies):
        found = peer.check(tmp_path / f"copy{number}")
        assert found["count"] == found["moved"] == found["entryCount"] == copied.messages
        assert found["lastIndex"] == f"{copied.last_index:x}"
    copy = tmp_path / "copy3"
    peer.run("write", dir=copy, kind="text", count=3)
    assert peer.check(copy)["count"] == copies[3].messages + 3
    assert quire.verify(copy).ok
