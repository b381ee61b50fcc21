"""Batches in a folder of files: each once, wherever the writer ends."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from parameters import some
from quire.pipeline import PipelineError
from quire.pipeline.runtime.sinks.parquet_folder import STAGING, ParquetFolder


class EndedError(Exception):
    """The writer ends here."""


def files_of(batch: int) -> list[str]:
    return [f"day={batch}/a.parquet", f"day={batch}/b.parquet", "day=0/c.parquet"]


def write(folder: Path, batch: int, *, replace: bool = False) -> bool:
    def made(place: str) -> None:
        for name in files_of(batch):
            (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / name).write_text(f"{batch} {name}")
        (Path(place) / "_SUCCESS").touch()

    to = ParquetFolder(str(folder), f"writer{batch}" if replace else "writer", r"writer\d*")
    is_new = replace or not to.has(batch)
    if is_new:
        to.write(batch, made, replace=replace)
    return is_new


def contents(folder: Path) -> Counter[str]:
    found = [it for it in folder.rglob("*.parquet") if STAGING not in it.parts]
    assert all(it.parent.name == it.read_text().split()[1].split("/")[0] for it in found)
    return Counter(it.read_text() for it in found)


def expected(*batches: int) -> Counter[str]:
    return Counter(f"{batch} {name}" for batch in batches for name in files_of(batch))


def ends(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """Let the writer end in front of the call number *place* that changes a folder."""
    left = [place]

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def instead(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise EndedError
            return call(*arguments, **named)

        return instead

    for name in ("rename", "unlink", "mkdir", "fsync"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))


@pytest.mark.parametrize("replace", some([False, True], keep=[1]), ids=["append", "replace"])
def test_a_writer_that_ends_anywhere_adds_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, replace: bool
) -> None:
    places = 0
    for place in range(1, 200):
        folder = tmp_path / str(place)
        write(folder, 1, replace=replace)
        with monkeypatch.context() as patch:
            ends(patch, place)
            try:
                write(folder, 2, replace=replace)
            except EndedError:
                places += 1
        write(folder, 2, replace=replace)
        assert contents(folder) == (expected(2) if replace else expected(1, 2)), place
        if places < place:
            break
    assert places > 30


def test_what_others_wrote_stays(tmp_path: Path) -> None:
    """A run that replaces what its pipeline wrote, in a folder with files of others."""
    others = ["theirs.parquet", "day=1/other1-000000001-a.parquet", "writer1-1.parquet"]
    (tmp_path / "day=1").mkdir()
    for name in others:
        (tmp_path / name).write_text("theirs")
    write(tmp_path, 1, replace=True)
    begun = tmp_path / STAGING / "other7-000000001.replace"
    begun.mkdir()
    write(tmp_path, 2, replace=True)
    found = [it for it in tmp_path.rglob("*.parquet") if it.read_text() == "theirs"]

    assert sorted(str(it.relative_to(tmp_path)) for it in found) == sorted(others)
    assert begun.is_dir()
    for name in others:
        (tmp_path / name).unlink()
    assert contents(tmp_path) == expected(2)


def test_a_batch_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    assert [write(tmp_path, batch) for batch in (1, 2, 2, 1, 3)] == [True, True, False, False, True]
    assert contents(tmp_path) == expected(1, 2, 3)


def test_a_batch_of_another_writer_is_another(tmp_path: Path) -> None:
    write(tmp_path, 1)
    other = ParquetFolder(str(tmp_path), "other")

    assert not other.has(1)


def test_a_folder_that_the_driver_does_not_see_is_refused() -> None:
    with pytest.raises(PipelineError, match="path=s3://bucket/folder"):
        ParquetFolder("s3://bucket/folder", "writer")
