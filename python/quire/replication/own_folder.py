"""
The directory of an open queue, even if its path leads elsewhere by now.

Another directory may take the place of a queue's at any time. The files of replication are stored
in the directory of the open queue, or not at all.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from quire._common.durable import SafeFolder
from quire._common.file_identity import Identity, identity_of
from quire.handles.journal.queue import JournalQueue
from quire.opening.discovery import TABLE, lost
from quire.opening.opener import open_without_key as open_queue


@contextmanager
def own_folder(queue: JournalQueue) -> Generator[SafeFolder]:
    """
    Open the directory of a queue, which stays the same one while it is open.

    Raises:
        TableLostError: Another directory is at the queue's path, or none.

    """
    try:
        folder = SafeFolder.at(queue.path)
    except (FileNotFoundError, NotADirectoryError):
        raise lost(queue.path) from None
    with folder:
        found = folder.stat(TABLE)
        _check(queue, None if found is None else identity_of(found))
        yield folder


def open_again(queue: JournalQueue, **options: float) -> JournalQueue:
    """
    Open a queue again: a handle of its own, since another may append through a ring.

    Args:
        queue: It.
        **options: How it is opened, such as ``timeout_s``.

    Raises:
        TableLostError: Another directory is at the queue's path, or none.

    """
    with own_folder(queue):
        own = cast("JournalQueue", open_queue(queue.path, create=False, **options))
    try:
        _check(queue, own._table_identity())  # noqa: SLF001 - the package's own
    except BaseException:
        own.close()
        raise
    return own


def _check(queue: JournalQueue, found: Identity | None) -> None:
    if found != queue._table_identity():  # noqa: SLF001 - the package's own
        raise lost(queue.path)
