"""The limit of what compressed blobs unpack to is one for the whole message, in every reader."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import quire
import wire_forms as wire
from parameters import some

MIB = 1 << 20
LIMIT = 256 * MIB
PART = 32 * MIB


def bombs(count: int, size: int) -> bytes:
    """Message of *count* named blobs, each of which unpacks to *size* bytes."""
    blob = wire.typed("gzip", wire.blob(gzip.compress(bytes(size), mtime=0)))
    return wire.fields((f"b{number}", blob) for number in range(count))


TOO_MANY = bombs(LIMIT // PART + 1, PART)
AS_MANY_AS_ALLOWED = bombs(LIMIT // PART, PART)


@quire.message
@dataclass
class Parts:
    """Reads what is in the messages above."""

    b0: bytes
    b1: bytes
    b2: bytes
    b3: bytes
    b4: bytes
    b5: bytes
    b6: bytes
    b7: bytes
    b8: bytes = b""


SCHEMA = quire.Schema({f"b{number}": "binary" for number in range(LIMIT // PART + 1)})
READERS: dict[str, Callable[[quire.JournalTailer], object]] = {
    "map": lambda tailer: tailer.read_map(),
    "message": lambda tailer: tailer.read_message(Parts),
    "batch": lambda tailer: tailer.read_batch(schema=SCHEMA),
}


@pytest.fixture
def queue(path: Path) -> Iterator[quire.JournalQueue]:
    """Have messages of a megabyte fit."""
    with quire.open(path, block_bytes=4 * MIB) as queue:
        yield queue


@pytest.mark.parametrize("reader", some(READERS, keep=[0]))
def test_a_message_of_many_bombs_is_refused(
    reader: str, appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_bytes(TOO_MANY)

    with pytest.raises(quire.errors.WireError, match="unpacks to more than is allowed"):
        READERS[reader](tailer)


def test_each_message_has_the_whole_limit(
    appender: quire.JournalAppender, tailer: quire.JournalTailer
) -> None:
    appender.write_many([AS_MANY_AS_ALLOWED] * 2)

    for _ in range(2):
        found = tailer.read_message(Parts)
        assert found is not None
        assert len(found.b7) == PART


@pytest.mark.check
def test_text_of_many_small_bombs_is_refused() -> None:
    with pytest.raises(quire.errors.WireError, match="unpacks to more than is allowed"):
        quire.types.to_json(bombs(LIMIT // MIB + 1, MIB))
