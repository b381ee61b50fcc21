"""Archives on a disk that is full: the file is named, and nothing is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

import small_disk
from archives import fill, parquet_files
from quire import archive as archives
from reference import read_queue
from small_disk import KIB, make_room, on_small_disk


@pytest.mark.parametrize("pages", [2, 6, 9])
def test_a_full_disk_is_reported_with_the_file_and_nothing_is_deleted(
    tmp_path: Path, pages: int
) -> None:
    path = tmp_path / "orders"
    fill(path, range(4), per_day=3000)
    before = read_queue(path)

    def work(disk: Path) -> int:
        dest = disk / "archive"
        small_disk.fill(disk, leave=pages)
        report = archives.archive(path, dest, delete=True)
        (failure,) = report.failed
        assert "No space left on device" in failure.reason
        assert str(dest) in failure.reason
        assert report.deleted == 0
        assert read_queue(path) == before

        make_room(disk)
        report = archives.archive(path, dest, delete=True)
        assert (report.failed, report.deleted, len(parquet_files(dest))) == ([], 3, 3)
        assert not archives.verify(dest).failed
        return 1

    assert on_small_disk(tmp_path / "disk", 1024 * KIB, work) > 0
