"""The state of a queue's replicas, in a file for the users of the queue's table."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from os import PathLike
from typing import Final

from quire._common.durable import Access, SafeFolder
from quire._native import ReplicaStates
from quire.handles.journal.queue import JournalQueue
from quire.opening.discovery import TABLE
from quire.replication.own_folder import own_folder

_FILE: Final = "replicas.quire"


def states_of(queue: JournalQueue) -> ReplicaStates:
    """
    Return the states of an open queue's replicas; their file is created if it is missing.

    A file of this user that an earlier version created gets the permissions of the table.

    Raises:
        TableLostError: Another directory is at the queue's path, or none.

    """
    with own_folder(queue) as folder:
        mode = _mode_in(folder)
    return ReplicaStates.of_queue(queue, mode=mode)


def states_at(path: str | PathLike[str]) -> ReplicaStates:
    """Return the states of the replicas of the queue in a directory, like :func:`states_of`."""
    with SafeFolder.at(path) as folder:
        mode = _mode_in(folder)
    return ReplicaStates.open_or_create(path, mode=mode)


def _mode_in(folder: SafeFolder) -> int:
    """Return the permission bits of a new file for the users of the table."""
    table, around = folder.stat(TABLE), folder.path.stat()
    if table is None or not stat.S_ISREG(table.st_mode):
        return 0o600
    users = Access.shown_by(table)
    _widen(folder, users)
    group = around.st_gid if around.st_mode & stat.S_ISGID else os.getegid()
    return users.mode_in(group) & 0o666


def _widen(folder: SafeFolder, users: Access) -> None:
    """Give these users access to the existing file, if it belongs to this user."""
    found = folder.stat(_FILE)
    if found is None or not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return
    with suppress(FileNotFoundError), folder.open(_FILE) as file:
        own = os.fstat(file.fileno())
        mode = stat.S_IMODE(own.st_mode)
        wanted = mode | users.mode_in(own.st_gid) & 0o666
        if own.st_uid == os.geteuid() and wanted != mode:
            os.fchmod(file.fileno(), wanted)
