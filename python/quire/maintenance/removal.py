"""
Removing cycles from a queue that others use meanwhile.

The order survives a crash at any step, and no reader meets a gap: the table's first cycle is raised
past the file, the file is unlinked, the directory is synced, and at the end the directory is
listed again. A crash after the first step leaves files that a listing finds; the next removal, or
`quire refresh`, makes them visible again.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Self

from quire._durable import SafeFolder
from quire._formats import COMPRESSED, is_compressed, times_file, uncompressed
from quire.queue import Queue

LOCK: Final = "quire.retention.lock"
"""Held by whatever removes cycles; Java ignores the file."""
_UNFINISHED: Final = re.compile(rf"\..*\.cq4{COMPRESSED}\.[0-9a-f]+\.tmp")


class Removal:
    """Removes the oldest cycles of a queue, under its lock; see :func:`removal`."""

    def __init__(self, queue: Queue, folder: SafeFolder) -> None:
        """Take over what :func:`removal` opened."""
        self._queue: Final = queue
        self.folder: Final = folder

    def remove(self, cycle: int, *, keep_compressed: bool = False) -> None:
        """
        Remove the file of a cycle, which is not the newest.

        Of a run that was killed while it compressed the cycle both files are there. The compressed
        one, which nobody reads then, goes first; and the append times before their cycle.
        """
        name = uncompressed(self._queue.file_for_cycle(cycle).rpartition("/")[2])
        if not keep_compressed:
            for beside in (times_file(name), name + COMPRESSED):
                if self.folder.has(beside):
                    self.folder.remove(beside)
                    self.folder.sync()
        if self.folder.has(name):
            self._announce(cycle)
            self.folder.remove(name)
            self.folder.sync()

    def _announce(self, cycle: int) -> None:
        """Raise the first cycle that Java knows of, if this is the one."""
        files = ((it, self._queue.file_for_cycle(it)) for it in self._queue.cycles)
        plain = (it for it, file in files if not is_compressed(file))
        if next(plain) == cycle and (first_left := next(plain, None)) is not None:
            self._queue._announce_removal(first_left)  # noqa: SLF001 - the package's own

    def __enter__(self) -> Self:
        """Return what removes."""
        return self

    def __exit__(self, *_: object) -> None:
        """List the directory again."""
        self._queue.refresh()


def sweep_compressed(folder: SafeFolder) -> None:
    """Remove what a killed run left of a compressed file; the lock has to be held."""
    for name in folder.names():
        if _UNFINISHED.fullmatch(name):
            folder.remove(name)


@contextmanager
def removal(queue: Queue, path: str) -> Generator[Removal]:
    """
    Hold the lock of a queue's retention, and return what removes its cycles.

    Raises:
        LockHeldError: Another process removes cycles.

    """
    with SafeFolder.at(path) as folder, folder.locked(LOCK), Removal(queue, folder) as found:
        yield found
