"""
Removing cycles from a queue that others use meanwhile.

The order survives a crash at any step, and no reader meets a gap: the table's first cycle is raised
past the file, the file is unlinked, the directory is synced, and at the end the directory is
listed again. A crash after the first step leaves files that a listing finds; the next removal, or
`quire refresh`, makes them visible again.

A path may lead to another queue at any moment. So files are removed from the directory that is held
open, whose table has to be that of the queue that was asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from quire._common.durable import SafeFolder
from quire._common.file_identity import Identity, identity_of
from quire._common.roll_file_names import (
    COMPRESSED,
    is_compressed,
    side_files,
    times_file,
    uncompressed,
)
from quire.errors import TableLostError
from quire.handles.journal.queue import JournalQueue
from quire.maintenance.hidden_files import HINT, hides_messages
from quire.opening.discovery import TABLE
from quire.opening.opener import open_without_key as open_queue


class Moves(NamedTuple):
    """
    Files that are renamed, not removed.

    Attributes:
        folder: Where to; its lock is held, and none of the names is there.
        names: Their names.

    """

    folder: SafeFolder
    names: set[str]


LOCK: Final = "quire.retention.lock"
"""Held by whatever removes cycles; Java ignores the file."""
_WHOLE: Final[dict[str, Any]] = {"buffer_mode": "none", "read_after_replica_acknowledged": False}
_UNFINISHED: Final = re.compile(rf"\..*\.cq4{COMPRESSED}\.[0-9a-f]+\.tmp")


class Removal:
    """Removes the oldest cycles of a queue, under its lock; see :func:`removal`."""

    def __init__(self, queue: JournalQueue, folder: SafeFolder) -> None:
        """Take over what :func:`removal` opened."""
        self.queue: Final = queue
        self.folder: Final = folder

    def remove(
        self, cycle: int, *, keep_compressed: bool = False, moves: Moves | None = None
    ) -> None:
        """
        Remove the file of a cycle, which is not the newest; or move it into another directory.

        Of a run that was killed while it compressed the cycle both files are there. The compressed
        one, which nobody reads then, goes first; and the append times and checksums before their
        cycle. A writer may add times of its last append meanwhile, so that they are looked for
        again after it.
        """
        name = uncompressed(self.queue.file_for_cycle(cycle).rpartition("/")[2])
        if not keep_compressed:
            for beside in (*side_files(name), name + COMPRESSED):
                self._take(beside, moves)
        if self.folder.has(name):
            self._announce(cycle)
            self._take(name, moves)
            if not keep_compressed:
                self._take(times_file(name), None)

    def _take(self, name: str, moves: Moves | None) -> None:
        if not self.folder.has(name):
            return
        if moves is not None and name in moves.names:
            self.folder.move(name, moves.folder, name)
            moves.folder.sync()
        else:
            self.folder.remove(name)
        self.folder.sync()

    def _announce(self, cycle: int) -> None:
        """Raise the first cycle that Java knows of, if this is the one."""
        files = ((it, self.queue.file_for_cycle(it)) for it in self.queue.cycles)
        plain = (it for it, file in files if not is_compressed(file))
        if next(plain) == cycle and (first_left := next(plain, None)) is not None:
            self.queue._announce_removal(first_left)  # noqa: SLF001 - the package's own

    def __enter__(self) -> Self:
        """Return what removes."""
        return self

    def __exit__(self, *_: object) -> None:
        """List the directory again."""
        self.queue.refresh()


def sweep_compressed(folder: SafeFolder) -> None:
    """Remove what a killed run left of a compressed file; the lock has to be held."""
    for name in folder.names():
        if _UNFINISHED.fullmatch(name):
            folder.remove(name)


def reason_moved(folder: SafeFolder, name: str, identity: Identity) -> str | None:
    """Return why a file is not the one that was judged by its path, or None."""
    found = folder.stat(name)
    if found is None or identity_of(found) != identity:
        return "kept as another file took its place meanwhile"
    return None


def reason_hidden(file: Path) -> str | None:
    """Return why a cycle stays of whose two files one holds messages that were not saved."""
    hidden = file.with_name(file.name + COMPRESSED)
    if hidden.exists() and hides_messages(file, hidden):
        return f"kept as its compressed file holds other messages: {hidden.name} ({HINT})"
    return None


def check_place(folder: SafeFolder, path: str) -> None:
    """
    Check that a path still leads to a queue's directory that is held open.

    Raises:
        TableLostError: The path leads to another directory.

    """
    try:
        found = os.stat(path)  # noqa: PTH116 - also of bytes
    except (FileNotFoundError, NotADirectoryError):
        found = None
    if found is None or identity_of(found) != folder.identity:
        raise TableLostError(_not_here(path))


@contextmanager
def removal(path: str, *, table: Identity | None = None, **options: Any) -> Generator[Removal]:  # noqa: ANN401 - those of `quire.open`
    """
    Hold the lock of a queue's retention, and return what removes its cycles.

    Args:
        path: The queue's directory.
        table: Device and inode number of the table that it has to have.
        options: Those of `quire.open`.

    Raises:
        LockHeldError: Another process removes cycles.
        TableLostError: The path leads to another queue.

    """
    with SafeFolder.at(path) as folder:
        _check_table(folder, table)
        with (
            folder.locked(LOCK),
            open_queue(path, create=False, **_WHOLE, **options) as queue,
            Removal(queue, folder) as found,
        ):
            _check_table(folder, queue._table_identity())  # noqa: SLF001 - the package's own
            yield found


def _check_table(folder: SafeFolder, table: Identity | None) -> None:
    found = folder.stat(TABLE)
    if table is not None and (found is None or identity_of(found) != table):
        raise TableLostError(_not_here(folder.path))


def _not_here(path: object) -> str:
    return (
        "another queue took the place of this one, and nothing more is removed:"
        f" path={path} (open the queue again where it is now)"
    )
