"""What is said to be on the medium was synced, in the order that a power cut asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import quire
from queues import START_MS
from quire import archive as archives
from quire._common import durable
from quire.errors import LockHeldError, UnsafePathError


class Medium:
    """Notes what was synced: the content of files, and the names in folders."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._contents: set[int] = set()
        self._names: set[int] = set()
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._note)

    def has(self, path: Path) -> bool:
        """Whether a power cut would leave this file, or folder, as it is."""
        way = [it for it in (path, *path.parents) if it.is_relative_to(self._root)][:-1]
        is_named = all(it.stat().st_ino in self._names for it in way)
        return is_named and (path.is_dir() or path.stat().st_ino in self._contents)

    def _note(self, handle: int) -> None:
        self._fsync(handle)
        try:
            with os.scandir(handle) as entries:
                self._names |= {entry.inode() for entry in entries}
        except NotADirectoryError:
            self._contents.add(os.fstat(handle).st_ino)


@pytest.fixture
def medium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Medium:
    return Medium(tmp_path, monkeypatch)


def test_a_folder_is_there_for_good_with_those_above(tmp_path: Path, medium: Medium) -> None:
    folder = tmp_path / "a" / "b" / "c"

    for _ in range(2):
        durable.make_folder(folder)
        assert medium.has(folder)


def test_the_next_run_makes_good_what_a_killed_one_did_not_sync(
    tmp_path: Path, medium: Medium, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b" / "c"

    sync = durable.sync

    def killed(path: Path) -> None:
        """Die when a folder was made, in front of its sync."""
        fresh = tmp_path in {path, *path.parents} and {*path.iterdir()} - known
        if fresh:
            known.update(fresh)
            raise KeyboardInterrupt
        sync(path)

    known: set[Path] = set()
    for _ in range(3):  # each gets one folder further
        with monkeypatch.context() as patched:
            patched.setattr(durable, "sync", killed)
            with pytest.raises(KeyboardInterrupt):
                durable.make_folder(folder)
    assert folder.is_dir()
    assert not medium.has(folder)
    durable.make_folder(folder)

    assert medium.has(folder)


def test_a_file_is_replaced_for_good(tmp_path: Path, medium: Medium) -> None:
    file = tmp_path / "list.json"

    for content in (b"one", b"two"):
        with durable.SafeFolder.at(tmp_path) as folder:
            folder.replace(file.name, content)
        assert (file.read_bytes(), medium.has(file)) == (content, True)
    assert [*tmp_path.iterdir()] == [file]


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    with durable.SafeFolder.at(tmp_path) as folder:
        with folder.locked("lock"):
            with pytest.raises(LockHeldError) as caught, folder.locked("lock"):
                pass
            assert caught.value.holder == str(os.getpid())
        with folder.locked("lock"):
            pass


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\0b"])
def test_a_path_is_no_name_in_a_folder(tmp_path: Path, name: str) -> None:
    with durable.SafeFolder.at(tmp_path) as folder:
        calls: list[Callable[[str], object]] = [
            *(folder.sub, folder.made, folder.stat, folder.open, folder.create, folder.remove),
            *(folder.temporary, lambda it: folder.move(it, folder, "x")),
            lambda it: folder.move("x", folder, it),
        ]
        for call in calls:
            with pytest.raises(UnsafePathError, match="not a plain file name"):
                call(name)


def test_an_archive_is_there_for_good_before_a_cycle_is_deleted(
    tmp_path: Path, medium: Medium, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = quire.ManualClock(START_MS)
    with quire.open(tmp_path / "q", roll_cycle="TEST4_DAILY", clock=clock) as queue:
        for _ in range(3):
            with queue.appender() as appender:
                appender.write_text("message")
            clock.advance(86_400_000)
    dest = tmp_path / "made" / "by" / "archive"
    seen: list[bool] = []
    remove = durable.SafeFolder.remove

    def watched(folder: durable.SafeFolder, name: str) -> None:
        if name.endswith(".cq4"):
            archived = [*dest.rglob("*.parquet"), *dest.rglob("[!.]*.json")]
            seen.append(len(archived) == 3 and all(medium.has(it) for it in archived))
        remove(folder, name)

    monkeypatch.setattr(durable.SafeFolder, "remove", watched)
    report = archives.archive(tmp_path / "q", dest, delete=True)

    assert (report.deleted, seen) == (2, [True, True])
