"""Compressed messages, against Java's readers and writers."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Literal

import pytest

import quire
from java_peer import JavaPeer
from queues import START_MS

TEXT = b"abcdabcd" * 50


@pytest.mark.java
@pytest.mark.parametrize("codec", ["gzip", "lzw"])
def test_java_decompresses_what_is_written_here(
    tmp_path: Path, codec: Literal["gzip", "lzw"]
) -> None:
    path = tmp_path / "q"
    clock = quire.ManualClock(START_MS)
    with (
        quire.open(path, compression=codec, clock=clock) as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        appender.write_bytes(TEXT)
        appender.write_map({"text": "x" * 300, "n": 1})
        appender.write_many([TEXT * 2, TEXT * 300])
        expected = [it.hex() for it in tailer.read_many(9)]
    assert len(expected) == 4
    assert JavaPeer().run("compressed", dir=path, start=START_MS) == expected


@pytest.mark.java
@pytest.mark.parametrize("codec", ["gzip", "lzw"])
def test_what_java_compresses_is_a_value_of_bytes(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "q"
    JavaPeer().run("compressed", dir=path, start=START_MS, codec=codec, hex=TEXT.hex())
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        stored = tailer.read_bytes()
        assert stored is not None
        assert len(stored) < len(TEXT)
        tailer.to_start()
        found = tailer.read()
        assert found is not None
        assert base64.b64encode(TEXT).decode() in found.to_json()


@pytest.mark.java
def test_java_walks_over_messages_it_has_no_reader_for(tmp_path: Path) -> None:
    path = tmp_path / "q"
    clock = quire.ManualClock(START_MS)
    with quire.open(path, clock=clock) as queue, queue.appender() as appender:
        appender.write_text("before")
    methods: tuple[Literal["zstd", "lz4", "snappy"], ...] = ("zstd", "lz4", "snappy")
    for method in methods:
        opened = quire.open(path, compression=method, clock=clock)
        with opened as queue, queue.appender() as appender:
            appender.write_bytes(TEXT)
    java = JavaPeer()
    assert len(java.run("list", dir=path)) == 4
    java.run("write", dir=path, count=1, start=START_MS)
    with quire.open(path, clock=clock) as queue, queue.tailer() as tailer:
        assert tailer.read_text() == "before"
        assert tailer.read_many(3) == [TEXT] * 3
        assert tailer.read_text() is not None
