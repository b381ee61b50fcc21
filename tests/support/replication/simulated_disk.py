"""The disk of a simulated node: what of a queue was synced, and what becomes of the rest."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

PAGE = 4096
USED = 1 << 20  # a seed writes less than this into a file, which is longer

Files = dict[str, tuple[bytes, int]]


def content_of(file: Path) -> tuple[bytes, int]:
    """Return what a file begins with, up to the last byte that is not 0, and how long it is."""
    with file.open("rb") as opened:
        return opened.read(USED).rstrip(b"\0"), file.stat().st_size


def put(file: Path, content: bytes, size: int) -> None:
    """Write a file that nobody has open."""
    with file.open("wb") as opened:
        opened.write(content)
        opened.truncate(size)


class Disk:
    """
    The files of a queue, and what of them was synced.

    Args:
        path: The queue's directory.
        chance: What decides.

    """

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self._random = path, chance
        self.is_full = False
        self._synced: Files = {}
        self._backup: Files | None = None

    def note_synced(self) -> None:
        self._synced = self._read()

    def back_up(self) -> None:
        self._backup = self._read()

    def _read(self) -> Files:
        return {it.name: content_of(it) for it in self._queue_files()}

    def _queue_files(self) -> list[Path]:
        return sorted(self.path.glob("*.cq4*"))

    def cut_power(self) -> None:
        """Leave of each page either what was synced or what was stored last."""
        for file in self._queue_files():
            (before, _), (after, size) = self._synced.get(file.name, (b"", 0)), content_of(file)
            is_unnamed = file.name not in self._synced and file in self._later_files()
            if is_unnamed and self._random.random() < 0.5:
                file.unlink()
            else:
                put(file, self._torn(before, after), size)
        self.note_synced()

    def _torn(self, before: bytes, after: bytes) -> bytes:
        before = before.ljust(len(after), b"\0")
        keeps = self._random.choice((0.0, 0.5, 1.0))
        return b"".join(
            (after if self._random.random() < keeps else before)[at : at + PAGE]
            for at in range(0, len(after), PAGE)
        )

    def damage(self) -> str:
        """Damage a file; return how."""
        how = self._damaged()
        self.note_synced()
        return how

    def _damaged(self) -> str:
        files = [it for it in self._queue_files() if it.suffix == ".cq4"]
        if not files:
            return "nothing"
        later = self._later_files()
        how = self._random.choice(("truncated", "flipped", "flipped", "lost", "old copy"))
        file = self._random.choice(files)
        used = len(content_of(file)[0])
        match how:
            case "truncated":
                os.truncate(file, self._random.randint(0, used))
            case "flipped":
                self._flip(file, used)
            case "old copy" if self._backup is not None:
                self._restore(self._backup)
            case "lost" if later:
                self._random.choice(later).unlink()
            case _:
                return "nothing"
        return how

    def _later_files(self) -> list[Path]:
        """Return the files that cannot have been pruned: there is one before them."""
        return [it for it in self._queue_files() if it.suffix == ".cq4"][1:]

    def _flip(self, file: Path, used: int) -> None:
        at, bit = self._random.randrange(max(used, 1)), 1 << self._random.randrange(8)
        with file.open("r+b") as opened:
            opened.seek(at)
            [byte] = opened.read(1)
            opened.seek(at)
            opened.write(bytes([byte ^ bit]))

    def _restore(self, files: Files) -> None:
        for file in self._queue_files():
            file.unlink()
        for name, (content, size) in files.items():
            put(self.path / name, content, size)

    def replace(self) -> None:
        """Take a new disk."""
        shutil.rmtree(self.path)
        self._synced, self._backup = {}, None
