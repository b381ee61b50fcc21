"""Retention of a queue that a JVM writes meanwhile: Java goes on, and reads what is left."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from queues import payloads

pytestmark = pytest.mark.java

COUNT = 3_000


@pytest.mark.parametrize("version", ["5.27ea11", "5.23.37"])
def test_java_writes_while_old_cycles_go(tmp_path: Path, version: str) -> None:
    peer, path, old = JavaPeer(version), tmp_path / "queue", tmp_path / "old"
    peer.run("write", dir=path, count=0, roll_cycle="TEST4_SECONDLY", block_size=2**20)
    with peer.start(
        "produce", dir=path, id=1, count=COUNT, pause_us=1_000, ack=True, block_size=2**20
    ) as producer:
        producer.expect("READY")
        for _ in range(8):
            assert producer.read_line() is not None
            quire.prune(path, max_cycles=1, action="move", dest=old)
        producer.read_until("DONE", 120)
    quire.prune(path, max_cycles=1, action="move", dest=old)

    with quire.open(old, read_only=True) as moved, quire.open(path, read_only=True) as left:
        whole, rest = payloads(moved), payloads(left)
        assert (len(left.cycles), len(whole) + len(rest)) == (1, COUNT)
        assert (moved.last_index or 0) < (left.first_index or 0)
        found = peer.check(path)
        assert found["count"] == found["moved"] == found["entryCount"] == len(rest)
        assert found["lastIndex"] == f"{left.last_index:x}"
    peer.run("write", dir=path, kind="text", count=3)
    assert peer.check(path)["count"] == len(rest) + 3
    assert quire.verify(path).ok


@pytest.mark.parametrize("version", ["5.27ea11", "5.23.37"])
def test_java_writes_while_old_cycles_are_compressed(tmp_path: Path, version: str) -> None:
    peer, path = JavaPeer(version), tmp_path / "queue"
    peer.run("write", dir=path, count=0, roll_cycle="TEST4_SECONDLY", block_size=2**20)
    with peer.start(
        "produce", dir=path, id=1, count=COUNT, pause_us=1_000, ack=True, block_size=2**20
    ) as producer:
        producer.expect("READY")
        for _ in range(8):
            assert producer.read_line() is not None
            quire.prune(path, max_cycles=1, action="compress")
        producer.read_until("DONE", 120)
    quire.prune(path, max_cycles=1, action="compress")

    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        first_of_java = queue.table_value("listing.lowestCycle")
        assert first_of_java == queue.cycles[-1]
        indexes = [it.index for it in tailer]
        assert len(indexes) == queue.entry_count == COUNT
        rest = [it for it in indexes if queue.roll_cycle.to_cycle(it) == first_of_java]
    assert len([*path.glob("*.cq4.zst")]) > 0
    found = peer.check(path)
    assert found["count"] == found["moved"] == found["entryCount"] == len(rest)
    assert found["lastIndex"] == f"{indexes[-1]:x}"
    peer.run("write", dir=path, kind="text", count=3)
    assert peer.check(path)["count"] == len(rest) + 3
    with quire.open(path) as queue:
        assert queue.entry_count == COUNT + 3
    assert quire.verify(path).ok
