"""The mark of a directory: its copies and older states do not have it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from quire.replication.directory_mark import NAMES, marks_at, remove, replaced

TICK_S = 0.05
"""Longer than the system's clock for files takes to move on."""


def marked(path: Path, present: str | None = None) -> str:
    """Give a directory a new mark."""
    time.sleep(TICK_S)
    path.mkdir(exist_ok=True)
    mark = replaced(path, present)
    assert mark is not None
    return mark


def test_a_mark_stays_until_the_one_after_it_is_replaced(tmp_path: Path) -> None:
    path, marks = tmp_path / "a", list[str]()
    for _ in range(4):
        marks.append(marked(path, marks[-1] if marks else None))
        assert marks_at(path) == set(marks[-2:])
    assert len(set(marks)) == 4


def test_a_mark_that_does_not_count_is_replaced_first(tmp_path: Path) -> None:
    first = marked(tmp_path)
    marked(tmp_path, first)
    third = marked(tmp_path, first)
    assert marks_at(tmp_path) == {first, third}


def test_two_marks_of_one_moment(tmp_path: Path) -> None:
    for _ in range(100):
        marks = marks_at(tmp_path)
        mark = replaced(tmp_path, min(marks, default=None))
        assert mark is not None
        assert mark in marks_at(tmp_path) >= {it for it in marks if it == min(marks)}


@pytest.mark.parametrize("copied", [shutil.copy, shutil.copy2])
def test_a_copy_has_no_mark_of_its_original(tmp_path: Path, copied: object) -> None:
    mark = marked(tmp_path / "a")
    time.sleep(TICK_S)
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=copied)  # type: ignore[arg-type]
    assert mark not in marks_at(tmp_path / "b")
    (tmp_path / "a").rename(tmp_path / "c")
    assert marks_at(tmp_path / "c") == {mark}


def test_another_directory_at_the_path_gets_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "a"
    mark = marked(path)
    path.rename(tmp_path / "b")
    marked(path)
    before = marks_at(path)
    assert replaced(path, mark, {mark}) is None
    assert marks_at(path) == before


def test_marks_are_removed(tmp_path: Path) -> None:
    mark = marked(tmp_path)
    marked(tmp_path, mark)
    remove(tmp_path)
    assert not marks_at(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_planted_link_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"of somebody else")
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / NAMES[0]).symlink_to(target)
    mark = marked(folder)
    assert mark in marks_at(folder)
    assert not (folder / NAMES[0]).is_symlink()
    assert target.read_bytes() == b"of somebody else"
