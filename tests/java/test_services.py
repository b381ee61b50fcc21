"""A service between Java's queues: it handles what Java wrote, and Java reads what it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import pytest

import quire
from java_peer import JavaPeer

pytestmark = pytest.mark.java

BLOCK = 65_536


class Destination(Protocol):
    def deliver(self, text: str, /) -> None: ...


class Market(Protocol):
    def say(self, text: str | None, /) -> None: ...
    def two(self, text: str | None, number: int, /) -> None: ...
    def to(self, name: str, /) -> Destination: ...


class Echo:
    """Counts what it hears of both inputs; its outputs tell their order."""

    def __init__(self, out: Market) -> None:
        self.out = out
        self.heard = 0

    def say(self, text: str | None) -> None:
        self.heard += 1
        self.out.say(text)
        self.out.to("x").deliver(f"{self.heard}")

    def none(self) -> None:
        self.heard += 1

    def two(self, text: str | None, number: int) -> None:
        self.out.two(text, number + self.heard)


def notes(path: Path) -> int:
    """How many notes a service wrote between its outputs."""
    found = 0
    with quire.open(path) as queue, queue.tailer() as tailer:
        while True:
            with tailer.reading_document(include_metadata=True) as document:
                if not document.is_present:
                    return found
                found += document.is_metadata and b"consumed" in bytes(document.bytes[:16])


def test_java_writes_a_service_handles_and_java_reads(tmp_path: Path) -> None:
    java = JavaPeer()
    first = "say('hello')\nnone()\nnone()\nsay(null)\n"
    second = "none()\ntwo('a', 7)\n"
    java.run_with_input(
        "method-write", first, dir=tmp_path / "first", source_id=3, block_size=BLOCK
    )
    java.run_with_input(
        "method-write", second, dir=tmp_path / "second", source_id=4, block_size=BLOCK
    )
    quire.open(tmp_path / "out", source_id=5, block_bytes=BLOCK).close()
    inputs = [tmp_path / "first", tmp_path / "second"]
    for lives in (5, 100):
        with quire.service(inputs=inputs, output=tmp_path / "out", handler=Echo) as service:
            for _ in range(lives):
                service.run_once()

    assert notes(tmp_path / "out") >= 1  # which Java passes over
    read: list[Any] = [json.loads(line) for line in java.run("method-read", dir=tmp_path / "out")]
    read = [each for each in read if each["calls"]]

    assert [each["calls"] for each in read] == [
        ["say(String:hello)"],
        ["to(String:x)", "deliver(String:1)"],
        ["two(String:a, Long:10)"],
        ["say(null)"],
        ["to(String:x)", "deliver(String:5)"],
    ]
    assert [source[0] for each in read for source in each["sources"]] == [
        3,
        5,
        3,
        5,
        4,
        5,
        3,
        5,
        3,
        5,
    ]
    assert {len(each["timings"]) for each in read} == {4}
