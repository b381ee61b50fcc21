"""The hash of a key is the same, whether it is found natively or in the decoded message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import quire
from quire._native import field_json
from quire.formats.columns import Columns
from quire.groups.delivered import Chunk
from quire.groups.keys import Keys


@quire.message
@dataclass
class KeyedOrder:
    key: str
    price: float


MESSAGES: list[Any] = [
    {"key": "a", "other": 1},
    {"other": [1, {"key": "no"}], "key": "a"},
    {"key": 1},
    {"key": 1.0},
    {"key": True},
    {"key": None, "inner": {"key": "b"}},
    {"key": None},
    {"inner": {"key": "b"}},
    {"outer": [{"inner": {"key": "c"}}]},
    {"key": {"a": 1, "b": [2]}},
    {"key": ["x", "y"]},
    {"key": '\u20ac\u00e9\n"'},
    {"keys": "a", "Key": "b"},
    {"key": b"bytes"},
]


def hashes(queue: quire.JournalQueue, keys: Keys, *, is_native: bool) -> list[int]:
    with queue.tailer() as tailer:
        columns = Columns.read(tailer, 1000)
    chunk = Chunk(columns)
    if is_native:
        return keys.hashes_of(chunk, quire.Excerpt)
    found = zip(chunk.indexes, chunk.payloads, strict=True)
    return [keys.hash_of(quire.Excerpt(index, data)) for index, data in found]


@pytest.mark.parametrize("name", ["key", "inner", "inner.key", "other", "@KeyedOrder", ""])
def test_a_key_has_one_hash(
    queue: quire.JournalQueue, appender: quire.JournalAppender, name: str
) -> None:
    for message in MESSAGES:
        appender.write_map(message)
    appender.write_text("no map")
    appender.write_bytes(b"\xa0\xff\x00 no message")
    appender.write_message(KeyedOrder("a", 1.5))
    appender.write_many([bytes([0xC3]) + b"key" + bytes([0xE1]) + b"a"] * 2)
    appender.write_bytes(b"\xc3key\xe1a\xc3key\xe1b")  # twice: the last one counts
    keys = Keys(name)
    assert hashes(queue, keys, is_native=True) == hashes(queue, keys, is_native=False)


def test_most_keys_are_found_natively(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_map({"key": "a", "price": 1.5})
    appender.write_message(KeyedOrder("b", 2.5))
    appender.write_map({"inner": {"key": "c"}})
    with queue.tailer() as tailer:
        columns = Columns.read(tailer, 10)
    found = field_json("key", columns.offsets.cast("B"), columns.data)
    assert found == ['"a"', '"b"', None]


def test_offsets_beyond_the_data_are_no_messages() -> None:
    offsets = b"".join(it.to_bytes(4, "little") for it in (0, 400, 100, 2**32 - 1))
    assert field_json("key", offsets, b"\xc3key\xe1a") == [None, None, None]
