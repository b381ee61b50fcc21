"""Files and folders that are on the medium, whole or not at all, and locks that end with a run."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class HeldError(Exception):
    """Somebody else holds a lock; *holder* is its process, as it told, or ``unknown``."""

    def __init__(self, path: Path, holder: str) -> None:
        """Tell which lock, and who."""
        super().__init__(f"the lock is held: lock={path} pid={holder}")
        self.holder = holder


def replace(path: Path, content: bytes) -> None:
    """Write a file of this content, in place of what is there; nobody else does at this time."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    publish(temporary, path)


def publish(temporary: Path, path: Path) -> None:
    """Give a finished file, which is on the medium, its name."""
    temporary.replace(path)
    sync(path.parent)


def make_folder(path: Path) -> None:
    """
    Make a folder and those above it that are not there, and have their names on the medium.

    Each is made when those above are there for good: where a run was killed, the name of the
    lowest folder alone may not be, and is synced by the next one.
    """
    path = path.absolute()
    missing: list[Path] = []
    lowest = path
    while not lowest.is_dir() and lowest != lowest.parent:
        missing.append(lowest)
        lowest = lowest.parent
    with contextlib.suppress(PermissionError):  # who may not read there has made no folder there
        sync(lowest.parent)
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync(path: Path) -> None:
    """Return when a file, or the names in a folder, are on the medium."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def held(path: Path) -> Generator[None]:
    """
    Hold a lock that ends with the process, however it ends.

    Raises:
        HeldError: Somebody else holds it.

    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = os.read(handle, 20).decode("ascii", "replace").strip()
            raise HeldError(path, told or "unknown") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
