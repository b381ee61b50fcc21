"""Queues of version 4 that Java and Quire go on with: each reads what the other appended."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from paths import GOLDEN
from queues import DAY_MS, payloads

pytestmark = pytest.mark.java

OPEN_DAY_MS = 1_705_363_200_000  # 2024-01-16T00:00:00Z, the day of the newest file


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "queue"
    path.mkdir()
    for file in (GOLDEN / "v4").glob("*.cq4"):
        shutil.copyfile(file, path / file.name)
    return path


def of_java(peer: JavaPeer, path: Path) -> list[tuple[int, bytes]]:
    found = [line.split() for line in peer.run("list", dir=path)]
    return [(int(index, 16), bytes.fromhex(data)) for index, _, data in found]


def of_quire(path: Path) -> list[tuple[int, bytes]]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [(excerpt.index, bytes(excerpt.data)) for excerpt in tailer]


@pytest.mark.parametrize("version", ["5.27ea11", "5.26ea7"])
def test_quire_appends_to_what_java_upgraded(version: str, old: Path) -> None:
    """Java goes on in the file of version 4 up to its next roll, and then in version 5."""
    peer = JavaPeer(version)
    history = of_quire(old)
    for day in (0, 1):
        peer.run("write", dir=old, count=2, kind="text", start=OPEN_DAY_MS + day * DAY_MS)
    java = of_quire(old)
    assert java[: len(history)] == history
    assert len(java) == len(history) + 4
    for day in (1, 2):
        with quire.open(old, clock=quire.ManualClock(OPEN_DAY_MS + day * DAY_MS)) as queue:
            queue.appender().write_bytes(b"of Quire %d" % day)
    found = of_quire(old)
    assert found[: len(java)] == java
    assert [data for _, data in found[len(java) :]] == [b"of Quire 1", b"of Quire 2"]
    assert of_java(peer, old) == found


@pytest.mark.parametrize("version", ["5.27ea11", "5.26ea7"])
@pytest.mark.parametrize("later", [0, 1, 3])
def test_java_goes_on_where_quire_ended_version_4(later: int, version: str, old: Path) -> None:
    peer = JavaPeer(version)
    history = of_quire(old)
    now = OPEN_DAY_MS + later * DAY_MS
    if version != "5.27ea11":  # an older Java appends where it made the table
        peer.run("write", dir=old, count=0, start=now)
    with quire.open(old, clock=quire.ManualClock(now)) as queue:
        queue.appender().write_many([b"one", b"two"])
        first = queue.last_index
    assert first is not None
    found = of_quire(old)
    assert found[:-2] == history
    assert of_java(peer, old) == found
    peer.run("write", dir=old, count=2, kind="text", start=(first >> 32) * DAY_MS)
    after = of_java(peer, old)
    assert after[:-2] == found
    assert len(after) == len(found) + 2
    assert of_quire(old) == after
    with quire.open(old, clock=quire.ManualClock(now)) as queue:
        queue.appender().write_bytes(b"three")
        assert payloads(queue)[-1] == b"three"
    assert of_java(peer, old)[:-1] == after
