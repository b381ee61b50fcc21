"""Python writes what Java writes, for every scalar and shape, and reads back what it wrote."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator

import pytest

import quire
from probes import DOCUMENTS, FIELDS, NOT_OFFERED, ROWS


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[quire.JournalAppender, quire.JournalTailer]]:
    path = tmp_path_factory.mktemp("probes")
    with (
        quire.open(path, roll_cycle="TEST8_DAILY") as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
    ):
        yield appender, tailer


def written(pair: tuple[quire.JournalAppender, quire.JournalTailer], name: str) -> bytes:
    appender, tailer = pair
    with appender.writing_document() as document:
        if name in FIELDS:
            document.wire.write("f", FIELDS[name].value, FIELDS[name].type)
        else:
            DOCUMENTS[name](document)
    payload = tailer.read_bytes()
    assert payload is not None
    return payload


# Java writes the integer 0; Quire a 32-bit float, which has a sign.
NEGATIVE_ZEROS = ("float64 -0.0", "float32 -0.0")


@pytest.mark.parametrize("name", NEGATIVE_ZEROS)
def test_negative_zero_keeps_its_sign(
    pair: tuple[quire.JournalAppender, quire.JournalTailer], name: str
) -> None:
    assert written(pair, name).hex() == ROWS[name]["bytes"].replace("a100", "9000000080")


@pytest.mark.parametrize("name", [it for it in (*FIELDS, *DOCUMENTS) if it not in NEGATIVE_ZEROS])
def test_the_bytes_are_javas(
    pair: tuple[quire.JournalAppender, quire.JournalTailer], name: str
) -> None:
    payload = written(pair, name)
    if "sha256" in ROWS[name]:
        assert hashlib.sha256(payload).hexdigest() == ROWS[name]["sha256"]
    else:
        assert payload.hex() == ROWS[name]["bytes"]


@pytest.mark.parametrize("name", FIELDS)
def test_the_value_comes_back(
    pair: tuple[quire.JournalAppender, quire.JournalTailer], name: str
) -> None:
    written(pair, name)
    _, tailer = pair
    field = FIELDS[name]
    assert tailer.last_read_index is not None
    assert tailer.move_to_index(tailer.last_read_index)
    with tailer.reading_document() as document:
        found = document.wire.read("f", field.type)
    wanted = field.value if field.back is ... else field.back
    if field.type is quire.types.float32:
        found, wanted = (struct.unpack("f", struct.pack("f", one)) for one in (found, wanted))
    assert same(found, wanted), found


def same(found: object, wanted: object) -> bool:
    """Equal, and a NaN to a NaN."""
    return found == wanted or repr(found) == repr(wanted)


def test_each_probe_is_written_or_there_is_a_reason() -> None:
    missing = [name for name in ROWS if name not in FIELDS and name not in DOCUMENTS]
    without = [name for name in missing if not name.startswith(tuple(NOT_OFFERED))]
    assert without == []
    assert [
        reason for reason in NOT_OFFERED if not any(name.startswith(reason) for name in missing)
    ] == []


def test_a_nan_is_only_the_same_as_a_nan() -> None:
    assert same(math.nan, math.nan)
    assert not same(math.nan, 0.0)
