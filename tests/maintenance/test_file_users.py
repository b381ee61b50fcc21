"""Which mapping in `/proc` is one of a file: its inode number alone does not say it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quire._common.file_identity import Identity
from quire.maintenance import files


def mapped(process: Path, line: str, file: Identity) -> bool:
    (process / "maps").write_text(f"7f0000000000-7f0000001000 r--s 00000000 {line}\n")
    return files._mapped(process, {file}) == {file}  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def process(tmp_path: Path) -> Path:
    (tmp_path / "root").symlink_to("/")
    return tmp_path


def test_a_process_with_a_file_of_the_same_number_elsewhere_is_no_user(
    process: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.cq4"
    other.touch()
    found = other.stat()
    shown = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x} {found.st_ino}"
    ours = (found.st_dev + 1, found.st_ino)  # on another file system, with the same inode number
    assert not mapped(process, f"{shown} {other}", ours)
    assert mapped(process, f"{shown} {other}", (found.st_dev, found.st_ino))


@pytest.mark.parametrize("name", ["same", "another", "missing"])
def test_where_device_and_path_disagree_it_counts_as_a_user(
    process: Path, tmp_path: Path, name: str
) -> None:
    """Some file systems show another device in the mappings than for the file."""
    same = tmp_path / "same"
    same.touch()
    (tmp_path / "another").touch()
    found = same.stat()
    line = f"fe:77 {found.st_ino} {tmp_path / name}"
    assert mapped(process, line, (found.st_dev, found.st_ino))
    assert not mapped(process, f"{line} (deleted)", (found.st_dev, found.st_ino))
