"""Seals of what Java appended, beside Java."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer
from quire.maintenance import seal

pytestmark = pytest.mark.java


def test_java_is_not_disturbed_and_its_messages_are_sealed(tmp_path: Path) -> None:
    peer = JavaPeer("5.27ea11")
    peer.run("write", dir=tmp_path, count=20)
    seal(tmp_path)
    assert quire.verify(tmp_path, seals=True).ok
    peer.run("write", dir=tmp_path, count=20)
    report = quire.verify(tmp_path, seals=True)
    assert [it.kind for it in report.findings if it.kind == "unsealed"] == ["unsealed"]
    with quire.open(tmp_path, integrity=True) as queue, queue.appender() as appender:
        appender.write_text("beside Java")
    peer.run("write", dir=tmp_path, count=20)
    assert quire.verify(tmp_path).ok
    seal(tmp_path)
    assert [it.kind for it in quire.verify(tmp_path, seals=True).findings] == []
    assert quire.verify(tmp_path).messages == 61
