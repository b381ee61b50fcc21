"""
How far a replica is on the medium, in its file ``replication.synced``.

The messages before that were the same at the source. Unlike what ``replicas.quire`` says, this
holds after a restart of the machine, too: a message that differs then was not lost with it.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import Final

from quire._common.durable import SafeFolder
from quire.errors import UnsafePathError
from quire.handles.journal.queue import JournalQueue
from quire.replication.own_folder import own_folder

NAME: Final = "replication.synced"
_log = logging.getLogger("quire")
_LIMIT: Final = 64
_EVERY_MS: Final = 10_000


class SyncedEnd:
    """
    The record of a replica.

    Args:
        queue: Its queue.
        end: The index after its last message; what was recorded beyond that does not count.

    Raises:
        TableLostError: Another directory is at the queue's path, or none.

    """

    def __init__(self, queue: JournalQueue, end: int) -> None:
        self._queue, self._noted_ms = queue, -_EVERY_MS
        with own_folder(queue) as folder:
            self.next = _read(folder)
        if self.next > end:
            self._write(end)

    def note(self, end: int, now_ms: int) -> None:
        """
        Record that all messages before an index are on the medium, every ten seconds at most.

        Args:
            end: The index.
            now_ms: The time; only differences matter.

        Raises:
            TableLostError: Another directory is at the queue's path, or none.

        """
        if end > self.next and abs(now_ms - self._noted_ms) >= _EVERY_MS:
            self._noted_ms = now_ms
            self._write(end)

    def _write(self, end: int) -> None:
        try:
            with own_folder(self._queue) as folder:
                folder.replace(NAME, json.dumps({"next": end}).encode() + b"\n")
        except OSError as error:  # such as a full disk: the record before it stays
            _log.warning("%s cannot be stored: path=%s reason=%s", NAME, self._queue.path, error)
        else:
            self.next = end


def _read(folder: SafeFolder) -> int:
    with suppress(OSError, UnsafePathError, ValueError, KeyError, TypeError, RecursionError):
        found = json.loads(folder.read(NAME, _LIMIT))["next"]
        if type(found) is int and found >= 0:
            return found
    return 0
