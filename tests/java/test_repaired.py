"""What `quire repair` leaves is whole to Java: it reads all of it, and appends."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from damages import fill
from java_peer import JavaPeer
from journal_damages import DAMAGES, Damage
from queues import DAY_MS, START_MS

pytestmark = pytest.mark.java

DAYS, PER_DAY = 3, 40


@pytest.fixture(scope="module")
def peer() -> JavaPeer:
    return JavaPeer()


def java_reads(peer: JavaPeer, path: Path) -> list[tuple[int, str]]:
    lines = [line.split() for line in peer.run("list", dir=path)]
    return [(int(index, 16), data) for index, _, data in lines]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_java_reads_and_appends_to_a_repaired_queue(
    peer: JavaPeer, path: Path, damage: Damage
) -> None:
    fill(path, DAYS, PER_DAY)
    damage.do(path)
    assert quire.repair(path, dry_run=False).ok
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        before = [(excerpt.index, excerpt.data.hex()) for excerpt in tailer]
    assert len(before) == DAYS * PER_DAY - damage.lost
    assert java_reads(peer, path) == before
    peer.run("write", dir=path, kind="text", count=3, start=START_MS + DAYS * DAY_MS)
    after = java_reads(peer, path)
    assert (after[: len(before)], len(after)) == (before, len(before) + 3)
    assert quire.verify(path).findings == ()
