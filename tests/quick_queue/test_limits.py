"""The largest message, the last page and the last address, in sparse files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import quire
from small_disk import KIB, on_small_disk

PAGE = 1 << 30
LONGEST = (1 << 31) - 1
LAST_PAGE = (1 << 31) - 1
COMPLETE = 0x7F << 24


def sparse(file: Path, position: int, data: bytes, length: int = PAGE) -> None:
    with file.open("wb") as out:
        out.truncate(length)
        out.seek(position)
        out.write(data)


def entry(begin: int, length: int) -> bytes:
    return struct.pack("<qii", begin, length, COMPLETE)


def test_a_message_of_2_gib_is_too_large(tmp_path: Path) -> None:
    with quire.open(tmp_path, format="quick-queue") as queue, queue.appender() as appender:
        assert queue.page_bytes == PAGE
        with pytest.raises(quire.errors.MessageTooLargeError, match=str(LONGEST)):
            appender.write_bytes(bytes(LONGEST + 1))  # takes no memory, as nobody looks at it
        assert appender.write_bytes(b"after") == 0


def test_a_byte_less_is_a_matter_of_the_disk(tmp_path: Path) -> None:
    def work(disk: Path) -> int:
        with quire.open(disk / "q", format="quick-queue") as queue, queue.appender() as appender:
            with pytest.raises(OSError, match="make room"):
                appender.write_bytes(bytes(LONGEST))
            assert appender.write_bytes(b"after") == 0
        return 0

    on_small_disk(tmp_path / "disk", 2048 * KIB, work)


def test_the_longest_message_ends_with_the_last_address(tmp_path: Path) -> None:
    end = (LAST_PAGE + 1) * PAGE
    entries = entry(end - LONGEST, LONGEST) + entry(end - LONGEST + 1, LONGEST) + entry(0, 5)
    sparse(tmp_path / "0.qx", 0, entries)
    sparse(tmp_path / "0.qd", 0, b"whole")
    with quire.open(tmp_path, read_only=True) as queue, queue.tailer() as tailer:
        with pytest.raises(quire.errors.CorruptError, match="data page is missing"):
            tailer.read_bytes()
        tailer.move_to_index(16)
        with pytest.raises(quire.errors.CorruptError, match="names no message"):
            tailer.read_bytes()
        assert tailer.move_to_index(32)
        assert tailer.read_bytes() == b"whole"


def test_data_ends_with_the_last_byte_of_the_last_page(tmp_path: Path) -> None:
    end = (LAST_PAGE + 1) * PAGE
    sparse(tmp_path / "0.qx", 0, entry(end - 10, 5))
    sparse(tmp_path / f"{LAST_PAGE}.qd", PAGE - 10, b"first")
    with quire.open(tmp_path, format="quick-queue") as queue:
        with queue.appender() as appender:
            with pytest.raises(ValueError, match="addresses are used up"):
                appender.write_bytes(b"longer")
            assert appender.write_bytes(b"fits!") == 16
            with pytest.raises(ValueError, match="addresses are used up"):
                appender.write_bytes(b"1")
        assert list(queue.tailer().payloads()) == [b"first", b"fits!"]


def test_the_index_ends_with_the_last_entry_of_the_last_page(tmp_path: Path) -> None:
    """Pages of one entry each."""
    (tmp_path / f"{LAST_PAGE - 1}.qx").write_bytes(entry(0, 5))
    (tmp_path / "0.qd").write_bytes(b"first".ljust(16))
    last = LAST_PAGE * 16
    with quire.open(tmp_path, format="quick-queue") as queue:
        with queue.appender() as appender:
            assert appender.write_bytes(b"fits") == last
            with pytest.raises(ValueError, match="addresses are used up"):
                appender.write_bytes(b"1")
        assert (queue.first_index, queue.last_index) == (last - 16, last)
        assert list(queue.tailer(start=last - 16).payloads()) == [b"first", b"fits"]
