"""Sub-topics between the two: a routing key is the call of a Java router."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quire
from java_peer import JavaPeer

pytestmark = pytest.mark.java


@pytest.mark.parametrize("version", ["5.27ea11", "2026.4"])
def test_a_java_router_gets_the_key_and_the_message(tmp_path: Path, version: str) -> None:
    with quire.open(tmp_path / "q", block_bytes=2**16) as queue, queue.appender() as appender:
        appender.topic("x").write_map({"deliver": "m"})
        appender.topic("y").write_map({"deliver": "n"})
        appender.write_map({"say": "hello"})

    lines = JavaPeer(version).run("method-read", dir=tmp_path / "q")

    calls = [json.loads(line)["calls"] for line in lines]
    assert calls == [
        ["to(String:x)", "deliver(String:m)"],
        ["to(String:y)", "deliver(String:n)"],
        ["say(String:hello)"],
    ]


@pytest.mark.parametrize("source_id", [None, 7])
def test_messages_of_a_java_router_are_found_by_their_key(
    tmp_path: Path, source_id: int | None
) -> None:
    calls = (
        "to('x').deliver('m')\nsay('hello')\nto('x').done()\nthrough(1).deliver('m') with an id\n"
    )
    JavaPeer().run_with_input(
        "method-write", calls, dir=tmp_path / "q", source_id=source_id, block_size=65536
    )

    with quire.open(tmp_path / "q", block_bytes=2**16) as queue:
        found = list(queue.tailer().topics("x"))
        assert list(queue.tailer().topics("y")) == []
        everything = list(queue.tailer())

    assert [excerpt.index for excerpt in found] == [everything[0].index, everything[2].index]
    if source_id is None:
        assert [excerpt.data for excerpt in found] == [b"\xb9\x07deliver\xe1m", b"\xb9\x04done\xe0"]
    else:
        assert [excerpt.data for excerpt in found] == [everything[0].data, everything[2].data]
