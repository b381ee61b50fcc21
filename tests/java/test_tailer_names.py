"""Names of tailers beyond ASCII: Java and Quire resume where the other one stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer

pytestmark = pytest.mark.java

TEXTS = [b"%d" % number for number in range(6)]
NAME = "caf\u00e9 \u00c4\u00f7\u00ff"


@pytest.fixture(autouse=True)
def utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Java take its arguments as what they are."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.mark.parametrize("version", ["5.27ea11", "5.23.37"])
@pytest.mark.parametrize("java_name", [NAME, "CAF\u00c9 \u00e4\u00f7\u00ff"])
def test_the_position_is_that_of_both(java_name: str, version: str, tmp_path: Path) -> None:
    peer = JavaPeer(version)
    peer.run("write", dir=tmp_path, count=0)
    with quire.open(tmp_path) as queue:
        indexes = [queue.appender().write_bytes(text) for text in TEXTS]
        with queue.tailer(NAME) as tailer:
            assert [tailer.read_bytes(), tailer.read_bytes()] == TEXTS[:2]
    answers = peer.run_with_input("tailer-script", "read\nread\n", dir=tmp_path, name=java_name)
    assert answers == [f"{index:x} 1 {TEXTS[at].hex()}" for at, index in enumerate(indexes)][2:4]
    with quire.open(tmp_path) as queue:
        with queue.tailer(NAME) as tailer:
            assert tailer.read_bytes() == TEXTS[4]
        keys = [key for key, _ in queue.table_entries() if key.startswith("index.")]
        assert keys == [f"index.{NAME}"]
    assert f"index.{NAME}" in "\n".join(peer.run("table", dir=tmp_path))


def test_java_misses_a_deleted_tailer_and_finds_a_renamed_one(tmp_path: Path) -> None:
    peer = JavaPeer()
    peer.run("write", dir=tmp_path, count=0)
    with quire.open(tmp_path) as queue:
        indexes = [queue.appender().write_bytes(text) for text in TEXTS]
        for name in ("deleted", "old"):
            with queue.tailer(name) as tailer:
                assert [tailer.read_bytes(), tailer.read_bytes()] == TEXTS[:2]
        assert queue.delete_tailer("deleted")
        assert queue.rename_tailer("old", "new")
    for name, at in (("deleted", 0), ("new", 2), ("old", 0)):
        answers = peer.run_with_input("tailer-script", "read\n", dir=tmp_path, name=name)
        assert answers == [f"{indexes[at]:x} 1 {TEXTS[at].hex()}"]
    with quire.open(tmp_path) as queue:
        stored = [("new", indexes[3]), ("deleted", indexes[1]), ("old", indexes[1])]
        assert queue.named_tailers() == stored
