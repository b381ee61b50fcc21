"""Compressed messages: what is stored, who reads it, and what is noticed."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from parameters import some
from quire._native import is_encrypted
from quire.errors import DictionaryError, ForgedMessageError, UnsupportedError, WireError
from reference import ROLL_CYCLES, read_queue
from reference_writer import write_queue

Method: TypeAlias = Literal["zstd", "lz4", "snappy", "gzip", "lzw"]
METHODS: Final[tuple[Method, ...]] = ("zstd", "lz4", "snappy", "gzip", "lzw")
WORD: Final = b"attack at dawn, "
KEY: Final = bytes(range(32))
open_any: Any = quire.open


class Said:
    """The interface of a method writer."""

    def say(self, text: str) -> None: ...


def stored(path: Path) -> list[bytes]:
    """Return messages as they lie in the files."""
    return [payload for _, payload in read_queue(path)]


def plain(path: Path, **options: Any) -> list[bytes]:  # noqa: ANN401
    with open_any(path, read_only=True, **options) as queue, queue.tailer() as tailer:
        return [bytes(it) for it in tailer.read_many(1000)]


def write_bytes(appender: quire.JournalAppender) -> object:
    return appender.write_bytes(WORD * 9)


def write_text(appender: quire.JournalAppender) -> object:
    return appender.write_text((WORD * 9).decode())


def write_map(appender: quire.JournalAppender) -> object:
    return appender.write_map({"text": (WORD * 9).decode(), "n": 1})


def write_many(appender: quire.JournalAppender) -> object:
    return appender.write_many([WORD * 9 for _ in range(200)])


def write_texts(appender: quire.JournalAppender) -> object:
    import pyarrow as pa

    return appender.write_batch(pa.array([(WORD * 9).decode()] * 200))


def write_document(appender: quire.JournalAppender) -> object:
    with appender.writing_document() as document:
        document.write("text", (WORD * 9).decode())
    return None


def call_method(appender: quire.JournalAppender) -> object:
    appender.method_writer(Said).say((WORD * 9).decode())
    return None


WAYS: Final[list[Callable[[quire.JournalAppender], object]]] = [
    *(write_bytes, write_text, write_map, write_many, write_texts, write_document, call_method)
]


@pytest.mark.parametrize("method", some(METHODS, keep=[0]))
@pytest.mark.parametrize("way", WAYS, ids=lambda it: it.__name__)
def test_each_way_of_writing(
    tmp_path: Path, method: Method, way: Callable[[quire.JournalAppender], object]
) -> None:
    left, right = tmp_path / "plain", tmp_path / "compressed"
    for path, option in ((left, None), (right, method)):
        with open_any(path, compression=option) as queue, queue.appender() as appender:
            way(appender)
    assert plain(left) == plain(right)
    for before, after in zip(stored(left), stored(right), strict=True):
        assert WORD * 2 not in after
        assert len(after) < len(before)


def test_all_ways_of_reading(tmp_path: Path) -> None:
    path, text = tmp_path / "q", "attack at dawn " * 9
    with quire.open(path, compression="zstd") as queue, queue.appender() as appender:
        first = appender.write_map({"n": 1, "text": text})
        appender.write_map({"n": 2, "text": text})
        appender.write_text(text)
    with quire.open(path) as queue, queue.tailer() as tailer:
        assert tailer.read_map() == {"n": 1, "text": text}
        with tailer.reading_document() as document:
            assert document.map()["n"] == 2
        assert tailer.read_text() == text
        tailer.to_start()
        assert len(tailer.read_many(9)) == 3
        tailer.to_end()
        tailer.direction = "backward"
        found = tailer.read()
        assert found is not None
        assert text.encode() in bytes(found.data)
        tailer.direction = "forward"
        assert tailer.move_to_index(first)
        batch = tailer.read_batch()
        payloads = cast("list[Any]", batch["payload"].to_pylist())
        assert [text.encode() in it for it in payloads] == [True] * 3
        assert text in queue.dump()


@pytest.mark.parametrize("method", METHODS)
def test_what_gets_no_shorter_is_stored_as_it_is(tmp_path: Path, method: Method) -> None:
    messages = [b"", b"x", b"short", secrets.token_bytes(2000)]
    with quire.open(tmp_path / "q", compression=method) as queue, queue.appender() as appender:
        appender.write_many([it for it in messages if it])
    expected = [it for it in messages if it]
    assert stored(tmp_path / "q") == expected == plain(tmp_path / "q")


@pytest.mark.parametrize("method", METHODS)
def test_a_message_that_looks_compressed_is_read_as_it_was_written(
    tmp_path: Path, method: Method
) -> None:
    with quire.open(tmp_path / "q", compression=method) as queue, queue.appender() as appender:
        appender.write_bytes(WORD * 9)
    (looks,) = stored(tmp_path / "q")
    for option in (None, *METHODS):
        path = tmp_path / f"again-{option}"
        with quire.open(path, compression=option) as queue, queue.appender() as appender:
            appender.write_bytes(looks)
            appender.write_many([looks, looks])
            with appender.writing_document() as document:
                document.write_bytes(looks)
        assert plain(path)[:3] == [looks] * 3
        assert looks in plain(path)[3]


@pytest.mark.slow
@given(payload=st.binary(min_size=1, max_size=300), repeat=st.integers(1, 50))
@settings(max_examples=20, deadline=None)
def test_any_payload_comes_back(
    tmp_path_factory: pytest.TempPathFactory, payload: bytes, repeat: int
) -> None:
    messages = [payload, payload * repeat, b"\xb6\x03qz1" + payload, b"\xb6\x04gzip" + payload]
    for method in METHODS:
        path = tmp_path_factory.mktemp("any") / "q"
        with quire.open(path, compression=method) as queue, queue.appender() as appender:
            appender.write_many(messages)
            with queue.tailer() as tailer:
                assert [bytes(it) for it in tailer.read_many(9)] == messages
        shutil.rmtree(path)


def _own(method: int, rest: bytes) -> bytes:
    content = bytes([0x8A, method]) + rest
    return b"\xb6\x03qz1\x82" + len(content).to_bytes(4, "little") + content


@pytest.mark.parametrize(
    "payload",
    [
        _own(9, b"unknown method"),
        _own(1, b"\xff\xff\xff\xff\x0f"),
        _own(1, b""),
        _own(2, b"\xff\xff\xff\xff\x7fbomb"),
        _own(2, b"\x80\x80"),
        _own(2, b"\x05\x00"),
        _own(3, b"\x00"),
        _own(3, b"\x00\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x00\x00"),
        _own(3, b"\xff\xff\xff\xff\x7f\x20\x01"),
    ],
)
def test_damaged_and_hostile_messages_raise(tmp_path: Path, payload: bytes) -> None:
    path = tmp_path / "q"
    path.mkdir()
    write_queue(path, ROLL_CYCLES["FAST_DAILY"], {1: [b"before", payload, b"after"]})
    with quire.open(path) as queue, queue.tailer() as tailer:
        assert tailer.read_bytes() == b"before"
        for _ in range(2):
            with pytest.raises((WireError, DictionaryError), match="compressed"):
                tailer.read_bytes()
        assert queue.last_index is not None
        assert tailer.move_to_index(queue.last_index)
        assert tailer.read_bytes() == b"after"
    assert quire.verify(path).ok


def test_compressed_messages_are_encrypted(tmp_path: Path) -> None:
    path, text = tmp_path / "q", "attack at dawn " * 40
    opened = quire.open(path, key=KEY, compression="zstd", integrity=True)
    with opened as queue, queue.appender() as appender:
        index = appender.write_text(text)
    (message,) = stored(path)
    assert is_encrypted(message)
    assert len(message) < 150
    with quire.open(path, key=KEY) as queue, queue.tailer() as tailer:
        assert tailer.read_text() == text
    assert quire.verify(path).ok
    (file,) = path.glob("*.cq4")
    content = bytearray(file.read_bytes())
    content[content.index(message) + len(message) - 3] ^= 1
    file.write_bytes(content)
    with quire.open(path, key=KEY) as queue, queue.tailer() as tailer:
        assert tailer.move_to_index(index)
        with pytest.raises(ForgedMessageError):
            tailer.read_text()


def test_the_ring(tmp_path: Path) -> None:
    path = tmp_path / "q"
    opened = open_any(path, compression="lz4", buffer_mode="async")
    with opened as queue, queue.appender() as appender, queue.tailer() as tailer:
        for _ in range(20):
            appender.write_bytes(WORD * 9)
        appender.sync()
        assert [bytes(it) for it in tailer.read_many(30)] == [WORD * 9] * 20
    assert max(map(len, stored(path))) < len(WORD * 9)


def test_topics_are_found(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q", compression="gzip") as queue, queue.appender() as appender:
        for topic in ("LDN", "NYC", "LDN"):
            appender.topic(topic).write_text("attack at dawn " * 20)
        with queue.tailer() as tailer:
            tailer.topics("NYC")
            assert tailer.read_text() == "attack at dawn " * 20
            assert tailer.read_text() is None


_WRITER: Final = """
import sys, quire
with quire.open(sys.argv[1], compression="zstd") as queue, queue.appender() as appender:
    number = 0
    while True:
        appender.write_text(f"{number} " + "attack at dawn " * 20)
        print(number, flush=True)
        number += 1
"""


@pytest.mark.slow
def test_kills_while_writing_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "q"
    for _ in range(3):
        command = [sys.executable, "-c", _WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(50)][-1]
            os.kill(process.pid, signal.SIGKILL)
        with quire.open(path) as queue, queue.tailer() as tailer:
            found = [it for _ in range(queue.entry_count) if (it := tailer.read_text())]
        numbers = [int(it.split()[0]) for it in found]
        newest = numbers[len(numbers) - numbers[::-1].index(0) - 1 :]
        assert newest == [*range(len(newest))]
        assert int(said) < len(newest)
        # The write position may be one message late, which is a warning.
        assert [it for it in quire.verify(path).findings if it.severity == "error"] == []


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="compression"):
        open_any(tmp_path / "q", compression="zip")
    with pytest.raises(UnsupportedError, match="compression"):
        open_any(tmp_path / "v", format="vanilla", compression="zstd")
