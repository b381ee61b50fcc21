"""Queues whose messages are stored as differences, against Java."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from queues import START_MS


def contents(path: Path) -> dict[str, bytes]:
    return {it.name: it.read_bytes() for it in path.iterdir()}


@pytest.mark.java
@pytest.mark.parametrize("version", ["5.27ea11", "2026.4"])
@pytest.mark.parametrize("wire_type", ["DELTA_BINARY", "DEFAULT_ZERO_BINARY"])
def test_java_does_not_append(tmp_path: Path, wire_type: str, version: str) -> None:
    path, clock = tmp_path / "q", quire.ManualClock(START_MS)
    opened = quire.open(path, wire_type=wire_type, clock=clock)
    with opened as queue, queue.appender() as appender:
        for number in range(3):
            appender.write_map({"words": "attack at dawn", "number": number, "size": 0})
    before, peer = contents(path), JavaPeer(version)
    (line,) = peer.run("open", dir=path, text="x", start=START_MS)
    found = json.loads(line)
    assert not found["ok"]
    assert "read-only" in found["message"]
    assert len(peer.run("list", dir=path)) == 3
    assert contents(path) == before
    with quire.open(path, clock=clock) as queue, queue.tailer() as tailer:
        assert [it.to_dict()["number"] for it in tailer] == [0, 1, 2]
