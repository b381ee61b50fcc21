"""A power cut as `os.fsync` leaves it to: what was not synced is gone, or is there and empty."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest


class CutError(Exception):
    """The power is cut here."""


class Power:
    """
    Notes what was synced under a folder, whose own name is there for good.

    Args:
        root: The folder.
        monkeypatch: Puts itself in the place of ``os.fsync``.

    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._fsync = os.fsync
        self.steps = 0
        self.last: int | None = None
        monkeypatch.setattr(os, "fsync", self._note)
        for name in ("rename", "mkdir", "unlink"):
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def cut_after(self, steps: int) -> None:
        """Cut the power in front of the step with this number, from now on."""
        self.steps, self.last = 0, steps

    def image(self, to: Path, *, is_named: bool) -> None:
        """
        Make a copy of what is left.

        Args:
            to: Where.
            is_named: Names are there that were not synced, with what was synced of their content.

        """
        to.mkdir(parents=True)
        self._copy(self._root.stat().st_ino, self._root, to, is_named=is_named)

    def _copy(self, folder: int, path: Path | None, to: Path, *, is_named: bool) -> None:
        names = _names_in(path) if is_named and path is not None else self._names.get(folder, {})
        for name, (inode, is_folder) in names.items():
            if is_folder:
                (to / name).mkdir()
                below = path / name if path is not None and is_named else None
                self._copy(inode, below, to / name, is_named=is_named)
            else:
                (to / name).write_bytes(self._contents.get(inode, b""))

    def _note(self, handle: int) -> None:
        self._step()
        self._fsync(handle)
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(handle) as entries:
                names = {it.name: (it.inode(), it.is_dir(follow_symlinks=False)) for it in entries}
            self._names[found.st_ino] = names
        else:
            self._contents[found.st_ino] = Path(f"/proc/self/fd/{handle}").read_bytes()

    def _counted(self, call: object) -> object:
        def instead(*given: object, **named: object) -> object:
            self._step()
            return call(*given, **named)  # type: ignore[operator]

        return instead

    def _step(self) -> None:
        self.steps += 1
        if self.last is not None and self.steps > self.last:
            raise CutError


def _names_in(path: Path) -> dict[str, tuple[int, bool]]:
    return {it.name: (it.lstat().st_ino, it.is_dir()) for it in path.iterdir()}
