"""
The digests of a queue's cycles, kept in the file ``replication.digests`` of the queue.

A stored digest is trusted while the roll file's inode, size and time of change are the same. All
others are computed again, from the documents. The digest of the newest cycle, which grows, is not
stored.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from contextlib import suppress
from threading import Lock
from typing import Final, NamedTuple

from quire._native import whole_cycle_digest
from quire.errors import CorruptError, UnsafePathError
from quire.handles.journal.queue import JournalQueue
from quire.replication.own_folder import own_folder

NAME: Final = "replication.digests"
_log = logging.getLogger("quire")
_MAGIC: Final = b"QDIGEST1"
_KEPT: Final = struct.Struct("<iIqQQq32s")
_HASHED: Final = struct.Struct("<iqI32s")
_SUM_BYTES: Final = hashlib.sha256().digest_size
_LIMIT: Final = 64 << 20
_UNREADABLE: Final = bytes(32)


class CycleDigest(NamedTuple):
    """
    The documents of a cycle.

    Attributes:
        next: The index after the last message.
        metadata: How many metadata documents follow that message.
        digest: The digest of all documents; zeros if the file cannot be read.

    """

    next: int
    metadata: int
    digest: bytes

    @property
    def is_readable(self) -> bool:
        """Whether the file can be read."""
        return self.digest != _UNREADABLE


class _Identity(NamedTuple):
    inode: int
    size: int
    changed_ns: int


class CycleDigests:
    """
    The digests of a queue's cycles.

    Args:
        queue: The open queue.

    """

    def __init__(self, queue: JournalQueue) -> None:
        self._queue = queue
        self._kept = _read(queue)
        self._has_news = False
        self._lock = Lock()

    def cycles(self) -> list[int]:
        """Return the cycles that have files, in order; one without documents may have lost them."""
        return self._queue.cycles

    def of_range(self, first: int, last: int) -> tuple[int, bytes]:
        """Return how many cycles of a range have documents, and their hash."""
        hashed, count = hashlib.sha256(), 0
        with self._lock:
            for cycle in self._queue.cycles:
                if not first <= cycle <= last:
                    continue
                found = self.of_cycle(cycle)
                if found is not None and not self._is_empty(cycle, found):
                    count += 1
                    hashed.update(_HASHED.pack(cycle, *found))
            self._keep()
        return count, hashed.digest()

    def of_cycle(self, cycle: int) -> CycleDigest | None:
        """Return the digest of a cycle, zeros if its file cannot be read; None without a file."""
        identity = self._identity(cycle)
        if identity is None:
            return None
        kept = self._kept.get(cycle)
        if kept is not None and kept[0] == identity:
            return kept[1]
        try:
            found = whole_cycle_digest(self._queue, cycle)
        except CorruptError as error:
            _log.warning("a cycle cannot be compared: %s", error)
            return CycleDigest(self._queue.roll_cycle.to_index(cycle, 0), 0, _UNREADABLE)
        if found is None:
            return None
        (following, metadata, _), digest = found
        result = CycleDigest(following, metadata, digest)
        if identity == self._identity(cycle) and cycle != self._newest():
            self._kept[cycle] = identity, result
            self._has_news = True
        return result

    def _is_empty(self, cycle: int, found: CycleDigest) -> bool:
        """Return whether a cycle has a file but no documents, as only sources have."""
        start = self._queue.roll_cycle.to_index(cycle, 0)
        return found.is_readable and (found.next, found.metadata) == (start, 0)

    def _newest(self) -> int | None:
        return self._queue.cycles[-1] if self._queue.cycles else None

    def _identity(self, cycle: int) -> _Identity | None:
        try:
            found = os.lstat(self._queue.file_for_cycle(cycle))
        except FileNotFoundError:
            return None
        return _Identity(found.st_ino, found.st_size, found.st_ctime_ns)

    def _keep(self) -> None:
        """Store new digests for the next process."""
        if not self._has_news:
            return
        self._has_news = False
        existing = set(self._queue.cycles)
        self._kept = {cycle: it for cycle, it in self._kept.items() if cycle in existing}
        entries = b"".join(
            _KEPT.pack(cycle, found.metadata, found.next, *identity, found.digest)
            for cycle, (identity, found) in sorted(self._kept.items())
        )
        content = _MAGIC + entries
        try:
            with own_folder(self._queue) as folder:
                folder.replace(NAME, content + hashlib.sha256(content).digest())
        except OSError as error:  # a full disk: they are computed again
            _log.warning("the digests of cycles cannot be stored: reason=%s", error)


_Kept = dict[int, tuple[_Identity, CycleDigest]]


def _read(queue: JournalQueue) -> _Kept:
    """Return the stored digests; none if the file is damaged."""
    content = b""
    with suppress(OSError, UnsafePathError), own_folder(queue) as folder:
        content = folder.read(NAME, _LIMIT)
    body, found = content[:-_SUM_BYTES], content[-_SUM_BYTES:]
    entries = body[len(_MAGIC) :]
    is_whole = body.startswith(_MAGIC) and len(entries) % _KEPT.size == 0
    if not is_whole or hashlib.sha256(body).digest() != found:
        if content:
            _log.warning("%s is damaged, and is created again: path=%s", NAME, queue.path)
        return {}
    kept: _Kept = {}
    for cycle, metadata, following, *identity, digest in _KEPT.iter_unpack(entries):
        kept[cycle] = _Identity(*identity), CycleDigest(following, metadata, digest)
    return kept
