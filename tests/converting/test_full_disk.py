"""Conversions onto a disk that is full: an error, and resumed when there is space again."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

import quire
import small_disk
from converted import INTO, Into, check_map, fill, messages, payloads

pytestmark = pytest.mark.slow

DISK = 16 * 1024 * small_disk.KIB
LEFT = 150  # pages: for the queue and some of the 1,200 KiB of messages
BLOCKS: dict[str, int | None] = {
    "chronicle": 1 << 16,
    "vanilla": 1 << 16,
    "quick-queue": 1 << 16,
    "parquet": None,
}


@pytest.mark.parametrize("into", INTO)
def test_a_conversion_onto_a_full_disk_is_resumed(into: Into, tmp_path: Path) -> None:
    source, chance = tmp_path / "source", random.Random(7)  # noqa: S311 - Parquet compresses others
    days = [[chance.randbytes(3000) for _ in range(100)] for _ in range(4)]
    expected = fill(source, "quick-queue", days)

    def work(disk: Path) -> int:
        dest = disk / "dest"
        small_disk.fill(disk, LEFT)
        with pytest.raises(OSError, match="No space left") as raised:
            quire.convert(source, dest, into=into, block_bytes=BLOCKS[into])
        small_disk.make_room(disk)
        quire.convert(source, dest, into=into, block_bytes=BLOCKS[into])
        assert payloads(messages(dest)) == payloads(expected)
        check_map(dest, expected, messages(dest))
        return raised.value.errno or 0

    assert small_disk.on_small_disk(tmp_path / "disk", DISK, work) == errno.ENOSPC


@pytest.mark.parametrize("into", INTO)
def test_a_disk_without_any_room_is_named(into: Into, tmp_path: Path) -> None:
    source = tmp_path / "source"
    fill(source, "quick-queue", [[b"one"]])

    def work(disk: Path) -> int:
        (disk / "dest").mkdir()
        small_disk.fill(disk, 0)
        with pytest.raises(OSError, match=r"No space left.*make room.*/dest") as raised:
            quire.convert(source, disk / "dest", into=into, block_bytes=BLOCKS[into])
        return raised.value.errno or 0

    assert small_disk.on_small_disk(tmp_path / "disk", DISK, work) == errno.ENOSPC
