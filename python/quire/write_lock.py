"""The write lock of a queue: its holder, and how to free it by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from quire._native import Queue
from quire.formats.journal import APPEND_LOCK, WRITE_LOCK, held_lock

_TAILER, _LOCK = "index.", ".lock"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class LockHolder(NamedTuple):
    """
    The process that holds a lock.

    Attributes:
        pid: Its process id, in its own container.
        alive: Whether it is alive, as far as this process can see.
        command: How it was started; None if that cannot be seen.
        since: When the lock was taken, by the holder's own record; None without one. A writer
            records it while it keeps a document open; appends, which take microseconds, and Java do
            not.

    Examples:
        >>> import os
        >>> with queue.appender().writing_document():
        ...     holder = queue.write_lock.holder
        >>> holder.pid == os.getpid(), holder.alive
        (True, True)

    """

    pid: int
    alive: bool
    command: str | None
    since: datetime | None


class WriteLock:
    """
    The write lock of a queue, from :attr:`JournalQueue.write_lock`.

    Appends take and free it by themselves, and take it over from a dead process. Free it by hand
    only if that fails, as for a dead Java process in another container.

    Examples:
        >>> lock = queue.write_lock
        >>> lock.locked, lock.holder, lock.unlock()
        (False, None, None)

    """

    def __init__(self, queue: Queue) -> None:
        """Use :attr:`JournalQueue.write_lock`."""
        self._queue = queue

    @property
    def locked(self) -> bool:
        """Whether a process holds the lock, dead or alive."""
        return self._queue.lock_holder(WRITE_LOCK) is not None

    @property
    def holder(self) -> LockHolder | None:
        """The holder of the lock; None while the lock is free."""
        found = held_lock(self._queue, WRITE_LOCK)
        return None if found is None else _holder(found.pid, found.alive, found.since_ms)

    def unlock(self) -> LockHolder | None:
        """
        Free the lock of a dead process.

        Returns:
            Who held it; None if it was free.

        Raises:
            WriterInUseError: The process that holds the lock is alive.
            ReadOnlyError: The queue was opened read-only.

        """
        return self._free(force=False)

    def force_unlock(self) -> LockHolder | None:
        """
        Free the lock, even that of a living process.

        A living Quire holder then raises :class:`quire.errors.LockLostError` and publishes nothing;
        a Java holder may overwrite what others append meanwhile. Stop it first.

        Returns:
            Who held it; None if it was free.

        Raises:
            ReadOnlyError: The queue was opened read-only.

        Examples:
            >>> queue.write_lock.force_unlock()

        """
        return self._free(force=True)

    def __repr__(self) -> str:
        """Return who holds it."""
        holder = self.holder
        if holder is None:
            return "WriteLock(free)"
        return f"WriteLock(pid={holder.pid}, alive={holder.alive})"

    def _free(self, *, force: bool) -> LockHolder | None:
        before = self.holder
        found = self._queue._unlock(WRITE_LOCK, force=force)  # noqa: SLF001
        if found is None:
            return None
        same = before is not None and before[:2] == found
        return before if same else _holder(*found, None)


def lock_keys(queue: Queue) -> list[str]:
    """Return the table's keys of locks, including locks of replicated tailers."""
    tailers = {_TAILER + name for name, _ in queue.named_tailers()}
    return [
        key
        for key, _ in queue.table_entries()
        if key in {WRITE_LOCK, APPEND_LOCK}
        or (key.startswith(_TAILER) and key.endswith(_LOCK) and key not in tailers)
    ]


def _holder(pid: int, alive: bool, since_ms: int | None) -> LockHolder:  # noqa: FBT001 - a row
    since = None if since_ms is None else _EPOCH + timedelta(milliseconds=since_ms)
    return LockHolder(pid, alive, _command(pid) if alive else None, since)


def _command(pid: int) -> str | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return None
    return b" ".join(words).decode(errors="replace") or None
