"""DELTA_BINARY and DEFAULT_ZERO_BINARY: what is stored, and that it is read as it was written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from differences import parse, restored
from queues import START_MS
from quire.errors import CorruptError, UnsupportedError, WireError
from reference import ROLL_CYCLES, read_queue
from reference_writer import write_queue

WireType: TypeAlias = Literal["DELTA_BINARY", "DEFAULT_ZERO_BINARY"]
WIRE_TYPES: Final[tuple[WireType, ...]] = ("DELTA_BINARY", "DEFAULT_ZERO_BINARY")
KEY: Final = bytes(range(32))
FARTHEST: Final = 63
CYCLE: Final = ROLL_CYCLES["TEST4_DAILY"]
open_any: Any = quire.open


def quote(number: int, **more: object) -> dict[str, object]:
    return {
        "symbol": ("EURUSD", "GBPUSD")[number % 2],
        "bid": 1.0842 + number % 50 / 1e4,
        "size": number % 3 * 1000,
        "number": number,
        "venue": "",
        "isOpen": number % 5 > 0,
        "time": 1_700_000_000_000_000_000 + number * 997,
    } | more


def stored(path: Path) -> list[bytes]:
    """Return messages as they lie in the files."""
    return [payload for _, payload in read_queue(path)]


def plain(path: Path, **options: object) -> list[bytes]:
    with open_any(path, read_only=True, **options) as queue, queue.tailer() as tailer:
        return [bytes(it.data) for it in tailer]


def first_of(queue: quire.JournalQueue) -> int:
    first = queue.first_index
    assert first is not None
    return first


def expected(path: Path, numbers: Iterator[int] | range) -> list[bytes]:
    """Return quotes as BINARY_LIGHT has them."""
    with quire.open(path) as queue, queue.appender() as appender:
        for number in numbers:
            appender.write_map(quote(number))
    return stored(path)


@pytest.mark.parametrize("wire_type", WIRE_TYPES)
def test_messages_are_read_as_they_were_written_and_take_less(
    tmp_path: Path, wire_type: WireType
) -> None:
    with quire.open(tmp_path / "q", wire_type=wire_type) as queue, queue.appender() as appender:
        assert queue.wire_type == wire_type
        for number in range(300):
            appender.write_map(quote(number))
    with quire.open(tmp_path / "q") as queue, queue.appender() as appender:
        assert queue.wire_type == wire_type
        for number in range(300, 400):
            appender.write_map(quote(number))
    whole = expected(tmp_path / "light", range(400))
    found = stored(tmp_path / "q")
    assert plain(tmp_path / "q") == whole == restored(found)
    assert sum(map(len, found)) < sum(map(len, whole)) * 2 // 3
    full = [number for number, it in enumerate(found) if parse(it) is None]
    assert full[0] == 0
    assert max(after - before for before, after in pairwise(full)) <= 64
    assert 300 in full, "an appender knows only what it has stored"
    assert quire.verify(tmp_path / "q").ok


@pytest.mark.parametrize("wire_type", WIRE_TYPES)
def test_any_index_is_read_in_any_order(tmp_path: Path, wire_type: WireType) -> None:
    with quire.open(tmp_path / "q", wire_type=wire_type) as queue, queue.appender() as appender:
        for number in range(200):
            appender.write_map(quote(number))
        with queue.tailer() as tailer:
            for number in (150, 63, 64, 199, 0, 127, 128, 1):
                assert tailer.move_to_index(first_of(queue) + number)
                assert tailer.read_map() == quote(number)
            tailer.to_end()
            tailer.direction = "backward"
            assert [tailer.read_map() for _ in range(200)] == [*map(quote, range(199, -1, -1))]
        text = queue.dump()
    assert text.count("symbol: ") == 200


@pytest.mark.parametrize("wire_type", WIRE_TYPES)
@pytest.mark.parametrize("options", [{"compression": "zstd"}, {"key": KEY}])
def test_with_compression_and_encryption(
    tmp_path: Path, wire_type: WireType, options: dict[str, object]
) -> None:
    text = "attack at dawn " * 20
    with open_any(tmp_path / "q", wire_type=wire_type, **options) as queue:
        with queue.appender() as appender:
            for number in range(100):
                appender.write_map(quote(number, text=text))
        with queue.tailer() as tailer:
            assert [tailer.read_map()["number"] for _ in range(100)] == [*range(100)]
        with queue.tailer() as tailer:
            assert tailer.move_to_index(first_of(queue) + 99)
            assert tailer.read_map() == quote(99, text=text)
    found = stored(tmp_path / "q")
    assert sum(map(len, found)) < 100 * len(text) // 2
    assert not any(b"attack at dawn attack" in it for it in found[1:])


class Prices:
    """The interface of a method writer."""

    def quote(self, symbol: str, price: float) -> None: ...
    def trade(self, size: int) -> None: ...


class Calls(Prices):
    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def quote(self, symbol: str, price: float) -> None:
        self.calls.append((symbol, price))

    def trade(self, size: int) -> None:
        self.calls.append((size,))


@pytest.mark.parametrize("wire_type", WIRE_TYPES)
def test_each_way_of_writing(tmp_path: Path, wire_type: WireType) -> None:
    words = [b"the quick brown fox jumps over the lazy dog %d" % it for it in range(9)]
    with quire.open(tmp_path / "q", wire_type=wire_type) as queue, queue.appender() as appender:
        for word in words:
            appender.write_bytes(word)
        for word in words:
            appender.write_text(word.decode())
        appender.write_many(words)
        for number in range(3):
            with appender.writing_document() as document:
                document.write("words", words[0].decode())
                document.write("number", number)
        appender.write_bytes(bytes(2_000_000))
        prices = appender.method_writer(Prices)
        for number in range(20):
            prices.quote("EURUSD and others", 1.5 + number)
            prices.trade(number)
        with queue.tailer() as tailer:
            assert [tailer.read_bytes() for _ in words] == words
            assert [tailer.read_text() for _ in words] == [it.decode() for it in words]
            assert [bytes(it) for it in tailer.read_many(9)] == words
            assert [tailer.read_map() for _ in range(3)] == [
                {"words": words[0].decode(), "number": number} for number in range(3)
            ]
            assert tailer.read_bytes() == bytes(2_000_000)
            calls = Calls()
            reader = tailer.method_reader(calls)
            while reader.read_one():
                pass
        assert calls.calls[:3] == [("EURUSD and others", 1.5), (0,), ("EURUSD and others", 2.5)]
        assert len(calls.calls) == 40
    assert any(parse(it) for it in stored(tmp_path / "q"))
    assert restored(stored(tmp_path / "q")) == plain(tmp_path / "q")


@pytest.mark.parametrize("wire_type", WIRE_TYPES)
def test_each_cycle_begins_in_full(tmp_path: Path, wire_type: WireType) -> None:
    whole = expected(tmp_path / "light", range(27))
    clock = quire.ManualClock(START_MS)
    opened = quire.open(tmp_path / "q", wire_type=wire_type, clock=clock, roll_cycle="TEST4_DAILY")
    with opened as queue, queue.appender() as appender:
        for day in range(3):
            appender.write_many(whole[day * 9 : day * 9 + 9])
            clock.advance(86_400_000)
    found = stored(tmp_path / "q")
    for day in range(3):
        assert restored(found[day * 9 : day * 9 + 9]) == whole[day * 9 : day * 9 + 9]
        assert parse(found[day * 9 + 1]) is not None
    assert plain(tmp_path / "q") == whole


VALUES: Final = st.one_of(
    st.integers(-(2**40), 2**40),
    st.sampled_from([0, 1, 0.0, "", True, False, None, "a", "a" * 40, b"", b"xyz"]),
    st.floats(allow_nan=False),
    st.text("ab\u00e9\u20ac", max_size=40),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from("xy"), st.integers(0, 1000), max_size=2),
)
MAPS: Final = st.fixed_dictionaries({"a": VALUES, "b": VALUES, "field": VALUES, "d": VALUES})
RAW: Final = st.binary(min_size=1, max_size=80)


@settings(max_examples=25, deadline=None)
@given(
    messages=st.lists(st.one_of(MAPS, RAW), min_size=1, max_size=12),
    wire_type=st.sampled_from(WIRE_TYPES),
)
def test_whatever_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Any], wire_type: WireType
) -> None:
    path = tmp_path_factory.mktemp("q")
    for name in (wire_type, "BINARY_LIGHT"):
        opened = quire.open(path / name, wire_type=name, block_bytes=1)
        with opened as queue, queue.appender() as appender:
            for message in messages:
                if isinstance(message, bytes):
                    appender.write_bytes(message)
                else:
                    appender.write_map(message)
    whole = plain(path / "BINARY_LIGHT")
    assert plain(path / wire_type) == whole
    assert restored(stored(path / wire_type)) == whole
    shutil.rmtree(path)


_WRITER: Final = """
import sys, quire
with quire.open(sys.argv[1]) as queue, queue.appender() as appender:
    number = 0
    while True:
        found = {"writer": int(sys.argv[2]), "words": "attack at dawn", "number": number}
        appender.write_map(found)
        print(number, flush=True)
        number += 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("wire_type", WIRE_TYPES)
def test_writers_that_interleave_and_are_killed(tmp_path: Path, wire_type: WireType) -> None:
    path = tmp_path / "q"
    quire.open(path, wire_type=wire_type).close()
    said: dict[int, int] = {}
    for first in (0, 2):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, str(path), str(first + it)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for it in range(2)
        ]
        for number, writer in enumerate(writers):
            assert writer.stdout is not None
            said[first + number] = int([writer.stdout.readline() for _ in range(200)][-1])
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.communicate()
    with quire.open(path) as queue, queue.tailer() as tailer:
        found = [tailer.read_map() for _ in range(queue.entry_count)]
    for number, last in said.items():
        mine = [it["number"] for it in found if it is not None and it["writer"] == number]
        assert mine == [*range(len(mine))]
        assert last < len(mine)
    assert restored(stored(path)) == plain(path)
    # The write position may be one message late, which is a warning.
    assert [it for it in quire.verify(path).findings if it.severity == "error"] == []


def difference(method: int, distance: int, base: bytes, body: bytes) -> bytes:
    content = bytes([method, distance]) + zlib.crc32(base).to_bytes(4, "little") + body
    return b"\xb6\x03qz1\x82" + (len(content) + 1).to_bytes(4, "little") + b"\x8a" + content


BASE: Final = b"\xc1a\xa1\x05\xc1b\x82\x05\0\0\0\xc1c\xa1\x07"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([BASE, difference(4, 1, BASE, b"\x0f\x22\xa1\x05\x11\x01")], None),
        ([BASE, difference(4, 0, BASE, b"\x0f")], CorruptError),
        ([BASE, difference(4, 2, BASE, b"\x0f")], CorruptError),
        ([BASE] * 70 + [difference(4, 64, BASE, b"\x0f")], CorruptError),
        ([BASE, difference(4, 1, b"another", b"\x0f")], CorruptError),
        ([BASE, difference(4, 1, BASE, b"\x0f"), difference(4, 1, BASE, b"\x0f")], CorruptError),
        ([BASE, difference(4, 1, BASE, b"\xff\xff\xff\xff\x7f")], WireError),
        ([BASE, difference(4, 1, BASE, b"\x0e\x0f\x7f")], WireError),
        ([BASE, difference(5, 1, BASE, b"")], WireError),
        ([BASE, difference(5, 1, BASE, b"\x00")], WireError),
        ([BASE, difference(5, 1, BASE, b"\x05\x00")], WireError),
        ([bytes(2 << 20), difference(4, 1, bytes(2 << 20), b"\x0f")], CorruptError),
        ([BASE, b"\xb6\x03qz1\x80\x03\x8a\x04\x01"], WireError),
    ],
)
def test_damaged_and_hostile_differences(
    tmp_path: Path, messages: list[bytes], expected: type[Exception] | None
) -> None:
    (path := tmp_path / "q").mkdir()
    write_queue(path, CYCLE, {START_MS // 86_400_000: [*messages, b"\xe4last"]})
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        index = first_of(queue) + len(messages) - 1
        assert tailer.move_to_index(index)
        if expected is None:
            return
        with pytest.raises(expected) as caught:
            tailer.read()
        assert hex(index) in str(caught.value)
        if expected is CorruptError:
            distance = parse(messages[-1])
            assert distance is not None
            assert hex(index - distance.distance) in str(caught.value)
        assert tailer.move_to_index(index + 1)
        assert tailer.read_text() == "last"
        assert isinstance(queue.dump(), str)


def test_a_queue_keeps_its_wire_type(tmp_path: Path) -> None:
    quire.open(tmp_path / "delta", wire_type="DELTA_BINARY").close()
    quire.open(tmp_path / "light").close()
    assert b"DELTA_BINARY" in (tmp_path / "delta" / "metadata.cq4t").read_bytes()
    for name, asked in (
        ("delta", "BINARY_LIGHT"),
        ("delta", "DEFAULT_ZERO_BINARY"),
        ("light", "DELTA_BINARY"),
    ):
        with pytest.raises(UnsupportedError, match=f"asked={asked} found="):
            quire.open(tmp_path / name, wire_type=asked)
    quire.open(tmp_path / "delta", wire_type="delta_binary").close()


def test_what_looks_like_a_difference_is_read_as_it_was_written(tmp_path: Path) -> None:
    looks = difference(4, 1, BASE, b"\x0f")
    for wire_type in (*WIRE_TYPES, "BINARY_LIGHT"):
        path = tmp_path / wire_type
        with quire.open(path, wire_type=wire_type) as queue, queue.appender() as appender:
            appender.write_many([BASE * 4, looks, looks, BASE * 4])
        assert plain(path) == [BASE * 4, looks, looks, BASE * 4]


def test_what_was_taken_out_again_is_no_base(tmp_path: Path) -> None:
    """A sink that is repaired cuts messages off: an appender must not go on with them."""
    path = tmp_path / "q"
    opened = quire.open(path, wire_type="DELTA_BINARY", roll_cycle="TEST4_DAILY")
    with opened as queue, queue.appender() as appender:
        appender.write_bytes(b"first " * 10)
        (file,) = path.glob("*.cq4")
        before = file.read_bytes()
        appender.write_bytes(bytes(range(60)))
        with file.open("r+b") as stream:  # as it was before the second message
            stream.write(before)
        appender.write_bytes(bytes(range(60)) + b"!")
    assert plain(path) == [b"first " * 10, bytes(range(60)) + b"!"]


TEXT_BASE: Final = b"symbol=EURUSD price=1.08423 size=10"
FIELDS_BASE: Final = bytes.fromhex("c161a105c162a70102030405060708c174e26869")


@pytest.mark.parametrize(
    ("base", "stored_as", "expected"),
    [
        (
            TEXT_BASE,
            difference(4, 1, TEXT_BASE, bytes.fromhex("231f0b37")),
            TEXT_BASE.replace(b"423", b"427"),
        ),
        (
            FIELDS_BASE,
            difference(5, 1, FIELDS_BASE, bytes.fromhex("18a106")),
            bytes.fromhex("c161a106c162a70000000000000000c174e26869"),
        ),
    ],
)
def test_the_examples_of_the_format(
    tmp_path: Path, base: bytes, stored_as: bytes, expected: bytes
) -> None:
    (path := tmp_path / "q").mkdir()
    write_queue(path, CYCLE, {START_MS // 86_400_000: [base, stored_as]})
    assert plain(path) == [base, expected] == restored([base, stored_as])
