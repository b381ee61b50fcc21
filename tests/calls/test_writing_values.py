"""Text, maps and named values: stored as Java stores them, read back as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

import quire
from queues import payloads

if TYPE_CHECKING:
    from quire._native import Value


@pytest.mark.parametrize(
    "text", ["", "hello", "x" * 31, "x" * 32, "é" * 200, "a\0b", "中", "😀 x 😀"]
)
def test_text_is_read_as_it_was_written(
    appender: quire.JournalAppender, tailer: quire.JournalTailer, text: str
) -> None:
    appender.write_text(text)
    appender.write_map({"text": text})

    assert tailer.read_text() == text
    assert tailer.read_map() == {"text": text}


def test_text_is_stored_as_java_stores_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    for text in ("msg0", "", "x" * 300, "😀"):
        appender.write_text(text)

    long = b"\xb8\xac\x02" + b"x" * 300
    assert payloads(queue) == [b"\xe4msg0", b"\xe0", long, bytes.fromhex("e6eda0bdedb880")]


def test_text_that_utf_8_cannot_hold_is_refused(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        appender.write_text("\ud83d")

    assert payloads(queue) == []


def test_a_map_comes_back_with_its_types(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    values: Mapping[str, Value] = {
        "int": -(2**63),
        "bool": True,
        "float": 1.1,
        "none": None,
        "text": "é",
        "bytes": b"\0\xff",
        "list": [1, "two", [3.5, None]],
        "map": {"inner": {"deep": 2**63 - 1}},
    }
    appender.write_map(values)

    assert tailer.read_map() == values


def test_a_map_is_stored_as_java_stores_it(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    appender.write_map({"k": 1})

    assert payloads(queue) == [bytes.fromhex("b9 01 6b a6 01 00 00 00")]


@pytest.mark.parametrize(
    "value",
    [object(), {object(): 2}, 2**63, 1j, {1j}],
    ids=["object", "key", "long", "complex", "set"],
)
def test_a_value_without_encoding_is_refused_and_nothing_is_written(
    queue: quire.JournalQueue, appender: quire.JournalAppender, value: str
) -> None:
    with pytest.raises(quire.errors.WireError):
        appender.write_map({"good": 1, "bad": value})
    with pytest.raises(ValueError, match="count=0"):
        appender.write_map({})

    assert payloads(queue) == []


def test_a_document_of_named_values_is_stored_as_java_stores_a_map(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    with appender.writing_document() as document:
        document.write("a", 1)
        document.write("msg", "hello")

    assert payloads(queue) == [b"\xb9\x01a\xa6\x01\x00\x00\x00\xb9\x03msg\xe5hello"]


def test_a_document_of_named_values_reads_back_as_a_map(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    values: Mapping[str, Value] = {"n": 2, "of": [1.5, None], "x" * 40: {"12": b"bytes"}}
    with appender.writing_document() as document:
        for name, value in values.items():
            document.write(name, value)

    with tailer.reading_document() as read:
        assert read.map() == values


def test_a_value_without_encoding_leaves_the_document_as_it_was(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    wrong: list[Value] = [object()]
    with appender.writing_document() as document:
        document.write("before", 1)
        with pytest.raises(quire.errors.WireError):
            document.write("bad", [1, {"deep": wrong}])
        document.write("after", 2)

    assert tailer.read_map() == {"before": 1, "after": 2}


def test_nesting_without_end_is_an_error(
    queue: quire.JournalQueue, appender: quire.JournalAppender
) -> None:
    endless: list[Value] = []
    endless.append(endless)

    with pytest.raises(quire.errors.WireError, match="nested too deep"):
        appender.write_map({"endless": endless})

    assert payloads(queue) == []
