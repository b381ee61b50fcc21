"""A queue's standing in a replication, as sources, sinks and promotions use it."""

from __future__ import annotations

from quire._common.replication_file import NAME, Role, Standing, parsed, read, write
from quire._common.replication_file import read_in as _read_in
from quire._common.replication_file import write_in as _write_in
from quire.handles.journal.queue import JournalQueue
from quire.replication.own_folder import own_folder

__all__ = ["NAME", "Role", "Standing", "parsed", "read", "read_of", "write", "write_of"]


def read_of(queue: JournalQueue) -> Standing | None:
    """
    Return the standing of an open queue; None if it was never replicated.

    Raises:
        CorruptError: The file is damaged.
        TableLostError: Another directory is at the queue's path, or none.

    """
    with own_folder(queue) as folder:
        return _read_in(folder)


def write_of(queue: JournalQueue, member: Standing) -> None:
    """
    Replace the standing of an open queue, durably.

    Raises:
        TableLostError: Another directory is at the queue's path, or none.

    """
    with own_folder(queue) as folder:
        _write_in(folder, member)
