"""
Removing cycles from a queue that others use meanwhile.

The order survives a crash at any step, and no reader meets a gap: the table's first cycle is raised
past the file, the file is unlinked, the directory is synced, and at the end the directory is
listed again. A crash after the first step leaves files that a listing finds; the next removal, or
`quire refresh`, makes them visible again.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Self

from quire._durable import SafeFolder
from quire.queue import Queue

LOCK: Final = "quire.retention.lock"
"""Held by whatever removes cycles; Java ignores the file."""


class Removal:
    """Removes the oldest cycles of a queue, under its lock; see :func:`removal`."""

    def __init__(self, queue: Queue, folder: SafeFolder) -> None:
        """Take over what :func:`removal` opened."""
        self._queue: Final = queue
        self.folder: Final = folder

    def remove(self, cycle: int) -> None:
        """Remove the file of a cycle, which is not the newest."""
        oldest, *later = self._queue.cycles
        if oldest == cycle:
            self._queue._announce_removal(later[0])  # noqa: SLF001 - the package's own
        self.folder.remove(self.name_of(cycle))
        self.folder.sync()

    def name_of(self, cycle: int) -> str:
        """Return the name of a cycle's file."""
        return self._queue.file_for_cycle(cycle).rpartition("/")[2]

    def __enter__(self) -> Self:
        """Return what removes."""
        return self

    def __exit__(self, *_: object) -> None:
        """List the directory again."""
        self._queue.refresh()


@contextmanager
def removal(queue: Queue, path: str) -> Generator[Removal]:
    """
    Hold the lock of a queue's retention, and return what removes its cycles.

    Raises:
        LockHeldError: Another process removes cycles.

    """
    with SafeFolder.at(path) as folder, folder.locked(LOCK), Removal(queue, folder) as found:
        yield found
