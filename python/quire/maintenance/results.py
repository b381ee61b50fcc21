"""Queues that verbs make: in a hidden folder first, so that they appear when they are complete."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from quire._common.durable import Access, SafeFolder, locked_directory, named_error, sync
from quire._common.unfinished import working_place
from quire._native import ManualClock
from quire.errors import LockHeldError, MessageTooLargeError
from quire.formats.adapters import adapter_of, journal_of, numbering_of, periods_of
from quire.formats.journal import JOURNAL
from quire.formats.numbering import start_options
from quire.formats.protocols import AnyQueue
from quire.opening.opener import OF_RESULTS, open_as


@contextmanager
def working_folder(dest: Path, sources: list[Path], suffix: str) -> Generator[SafeFolder]:
    """
    Make a hidden folder beside a destination, locked, and rename it at the end of the block.

    Where the block raises, the folder stays, for a run that resumes it.

    Args:
        dest: A directory that does not exist, or is empty; or a link to such a one, which stays.
        sources: Directories that it may not lie in, nor contain.
        suffix: The end of the folder's name: ``copying``, ``merging`` or ``splitting``.

    Raises:
        FileExistsError: The destination is not empty.
        ValueError: The destination overlaps a source, or is a mount point.
        LockHeldError: Another process works in the folder.

    """
    dest = Path(os.path.realpath(dest)) if dest.is_symlink() else dest
    for source in sources:
        one, other = dest.resolve(), source.resolve()
        if one.is_relative_to(other) or other.is_relative_to(one):
            raise ValueError(f"the destination overlaps the source: dest={dest} source={source}")
    if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
        raise FileExistsError(f"the destination is not empty: dest={dest}")
    if dest.is_mount():
        raise ValueError(f"the destination is a mount point: give a directory in it dest={dest}")
    path = working_place(dest, suffix)
    with SafeFolder.at(path, create=Access.of(dest)) as folder:
        try:
            with locked_directory(path):
                yield folder
                folder.sync_tree()
                _publish(path, dest)
        except BlockingIOError:
            raise LockHeldError.of(path) from None
        except OSError as error:
            if error.filename or error.errno is None:
                raise
            raise named_error(error, path) from error
    sync(dest.parent)


def _publish(path: Path, dest: Path) -> None:
    """
    Rename a complete result into place.

    Raises:
        OSError: The destination got files meanwhile, or is a bind mount.

    """
    try:
        os.rename(path, dest)  # noqa: PTH104 - onto an empty directory too
    except OSError as error:
        why = f"{error.strerror} (the result is complete: move it away from {path})"
        raise OSError(error.errno, why, str(dest)) from error


class CycleTimes:
    """When the cycle of each message of a queue starts; now, in a format without cycles."""

    def __init__(self, queue: AnyQueue) -> None:
        """Ask the queue."""
        self._numbering = numbering_of(queue)
        self._periods = periods_of(queue) if adapter_of(queue).has_cycles else None
        self._now_ms = time.time_ns() // 1_000_000

    def of(self, index: int) -> int:
        """Return the time in milliseconds."""
        if self._periods is None:
            return self._now_ms
        return self._periods.start_ms(self._numbering.to_cycle(index))


class Result:
    """
    A new Chronicle Queue of messages from other queues.

    Args:
        path: Its directory.
        like: The queue whose options it takes over, if it is a Chronicle Queue.
        roll_cycle: Its roll cycle; None: that of *like*, or a day.

    """

    def __init__(self, path: Path, like: AnyQueue, roll_cycle: str | None = None) -> None:
        """Create it."""
        self._clock = ManualClock(0)
        options: dict[str, Any] = {**OF_RESULTS}
        if (journal := journal_of(like)) is not None:
            options |= {"roll_cycle": journal.roll_cycle, "source_id": journal.source_id}
            if roll_cycle is None:
                options |= start_options(journal)
        if roll_cycle is not None:
            options["roll_cycle"] = roll_cycle
        self._path = path
        self._options = options
        self._open()
        self.messages = 0

    def _open(self) -> None:
        self._queue = open_as(JOURNAL.name, self._path, clock=self._clock, **self._options)
        self._appender = self._queue.appender()

    def append(self, payload: bytes, time_ms: int) -> None:
        """Append a message to the cycle of a time, or to the newest one if that is later."""
        self._clock.now_ms = time_ms
        try:
            self._appender.write_bytes(payload)
        except MessageTooLargeError:
            held = self._queue.block_bytes
            self._options["block_bytes"] = JOURNAL.block_for(len(payload), held)
            if self._options["block_bytes"] == held:
                raise
            self._queue.close()
            self._open()
            self._appender.write_bytes(payload)
        self.messages += 1

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._queue.close()


def empty(folder: SafeFolder) -> None:
    """Remove what a run that was interrupted left."""
    for name in folder.names():
        folder.remove(name)
