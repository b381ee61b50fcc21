"""Queues with a history in version 4: it stays readable, and appending goes on in version 5."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

import quire
from parameters import some
from paths import GOLDEN
from queues import DAY_MS, payloads, snapshot
from quire.errors import UnsupportedError

V4 = GOLDEN / "v4"
ENDED, OPEN = "20240115.cq4", "20240116.cq4"
OPEN_DAY_MS = 1_705_363_200_000  # 2024-01-16T00:00:00Z
MARK = b"\0\0\0\xc0\xc3EOF"


@pytest.fixture
def upgraded(path: Path) -> Path:
    """Two files of version 4, the second of them not ended, and what its listing left."""
    path.mkdir()
    for name in (ENDED, OPEN):
        shutil.copyfile(V4 / name, path / name)
    (path / "directory-listing.cq4t").write_bytes(b"of version 4")
    return path


def history_of(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue:
        return payloads(queue)


@pytest.mark.parametrize("later_ms", some([0, DAY_MS, 3 * DAY_MS], keep=[1]))
def test_the_newest_file_is_ended_and_the_next_cycle_used(later_ms: int, upgraded: Path) -> None:
    clock = quire.ManualClock(OPEN_DAY_MS + later_ms)
    history = history_of(upgraded)
    ended = (upgraded / ENDED).read_bytes()
    length = len((upgraded / OPEN).read_bytes().rstrip(b"\0"))
    with quire.open(upgraded, clock=clock) as queue:
        before = queue.last_index
        assert before is not None
        appender, tailer = queue.appender(), queue.tailer()
        index = appender.write_bytes(b"one")
        assert index >> 32 == (before >> 32) + max(1, later_ms // DAY_MS)
        assert appender.write_many([b"two", b"three"]) == index + 2
        expected = [*history, b"one", b"two", b"three"]
        assert list(tailer.payloads()) == expected
        assert payloads(queue) == expected
        tailer.direction = "backward"
        tailer.to_end()
        assert list(tailer.payloads()) == expected[::-1]
        assert tailer.move_to_index(before)
        assert queue.entry_count == len(expected)
        appender.sync()
    assert (upgraded / ENDED).read_bytes() == ended
    data = (upgraded / OPEN).read_bytes()
    assert data[length - 8 :].rstrip(b"\0").endswith(MARK)
    with quire.open(upgraded, clock=clock) as queue:
        assert queue.roll_cycle.name == "DAILY"
        queue.appender().write_bytes(b"four")
        assert payloads(queue) == [*history, b"one", b"two", b"three", b"four"]
    assert (upgraded / OPEN).read_bytes() == data


def test_opening_alone_changes_no_file_of_version_4(upgraded: Path) -> None:
    before = snapshot(upgraded)
    with quire.open(upgraded) as queue:
        assert len(payloads(queue)) == queue.entry_count
        queue.tailer("risk").close()
    after = snapshot(upgraded)
    assert {name: after[name] for name in before if name != upgraded.name} == {
        name: state for name, state in before.items() if name != upgraded.name
    }


def test_a_tailer_at_the_end_of_version_4_goes_on_in_version_5(upgraded: Path) -> None:
    clock = quire.ManualClock(OPEN_DAY_MS)
    with quire.open(upgraded, clock=clock) as queue, queue.tailer("risk") as tailer:
        while tailer.read_bytes() is not None:
            pass
        queue.appender().write_bytes(b"one")
        assert tailer.read_bytes() == b"one"


def test_the_epoch_is_the_one_in_the_header(upgraded: Path) -> None:
    with quire.open(upgraded, epoch_ms=3_600_000) as queue:
        assert queue.epoch_ms == 0
    with quire.open(upgraded, read_only=True, epoch_ms=3_600_000) as queue:
        assert queue.epoch_ms == 0


def without_names(data: bytes) -> bytes:
    """Drop the names of the fields from the header of a file of version 4."""
    out, at = bytearray(), 0
    while at < len(data):
        code = data[at]
        length = 1
        if code == 0x82:
            (inside,) = struct.unpack_from("<I", data, at + 1)
            block = without_names(data[at + 5 : at + 5 + inside])
            out += b"\x82" + struct.pack("<I", len(block)) + block
            at += 5 + inside
            continue
        if 0xC0 <= code <= 0xDF:
            at += 1 + code - 0xC0
            continue
        if code == 0x8D:
            length = 17 + 8 * int.from_bytes(data[at + 1 : at + 9], "little")
        elif code == 0x8E:
            length = 5 + int.from_bytes(data[at + 1 : at + 5], "little")
        elif code in {0xB6, 0xB9}:
            length = 2 + data[at + 1]
        elif code >= 0xE0:
            length = 1 + code - 0xE0
        else:
            length = {0xA1: 2, 0xA5: 3, 0xA6: 5, 0xA7: 9}.get(code, 1)
        out += data[at : at + length]
        at += length
    return bytes(out)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_without_names_of_fields_is_refused_and_left_alone(
    path: Path, *, read_only: bool
) -> None:
    """As version 4 wrote with FIELDLESS_BINARY: Java 5 does not read it either."""
    data = (V4 / OPEN).read_bytes()
    (length,) = struct.unpack_from("<H", data)
    header = without_names(data[4 : 4 + length])
    path.mkdir()
    found = struct.pack("<I", 0x40000000 | len(header)) + header + data[4 + length :]
    (path / OPEN).write_bytes(found)
    clock = quire.ManualClock(OPEN_DAY_MS)

    def read() -> None:
        with quire.open(path, read_only=read_only, clock=clock) as queue:
            payloads(queue)

    with pytest.raises(UnsupportedError, match=rf"version 4 .*FIELDLESS_BINARY.*{OPEN}"):
        read()
    assert [file.name for file in path.glob("*.cq4")] == [OPEN]
    assert (path / OPEN).read_bytes() == found
