"""The mark of a directory: its older states do not have it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quire._common.file_identity import identity_at
from quire.replication.directory_mark import NAMES, marks_at, remove, replaced

DIGITS = b"0" * 32


def marked(path: Path, present: str | None = None) -> str:
    """Give a directory a new mark."""
    path.mkdir(exist_ok=True)
    mark = replaced(path, present)
    assert mark is not None
    return mark


def test_a_mark_stays_until_the_one_after_it_is_replaced(tmp_path: Path) -> None:
    marks = list[str]()
    for _ in range(4):
        marks.append(marked(tmp_path, marks[-1] if marks else None))
        assert marks_at(tmp_path) == set(marks[-2:])
    assert len(set(marks)) == 4


def test_a_mark_that_does_not_count_is_replaced_first(tmp_path: Path) -> None:
    first = marked(tmp_path)
    marked(tmp_path, first)
    third = marked(tmp_path, first)
    assert marks_at(tmp_path) == {first, third}


def test_another_directory_at_the_path_gets_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "a"
    mark, own = marked(path), identity_at(path)
    path.rename(tmp_path / "b")
    marked(path)
    before = marks_at(path)
    assert replaced(path, mark, own) is None
    assert marks_at(path) == before
    assert replaced(tmp_path / "b", mark, own) is not None


def test_marks_are_removed(tmp_path: Path) -> None:
    mark = marked(tmp_path)
    marked(tmp_path, mark)
    remove(tmp_path)
    assert not marks_at(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"x" * 32 + b"\n", DIGITS, DIGITS + b"\n\n", DIGITS * 3])
def test_what_is_no_mark_does_not_count_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAMES[0]).write_bytes(content)
    assert not marks_at(tmp_path)
    mark = marked(tmp_path)
    assert marks_at(tmp_path) == {mark}
    assert not (tmp_path / NAMES[1]).exists()


def test_a_planted_link_or_pipe_is_replaced(tmp_path: Path) -> None:
    target, folder = tmp_path / "target", tmp_path / "a"
    target.write_bytes(DIGITS + b"\n")
    folder.mkdir()
    (folder / NAMES[0]).symlink_to(target)
    os.mkfifo(folder / NAMES[1])
    assert not marks_at(folder)
    first = marked(folder)
    second = marked(folder, first)
    assert marks_at(folder) == {first, second}
    assert target.read_bytes() == DIGITS + b"\n"
