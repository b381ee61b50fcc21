"""Sealing beside an open queue: ``quire.open(..., integrity=True)``."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

from quire._common.durable import SafeFolder
from quire._common.file_identity import identity_of
from quire._common.watching import Watch, Watcher
from quire.errors import LockHeldError, QuireError
from quire.sealed.sealer import seal_queue

if TYPE_CHECKING:
    from quire._native import Queue

_LOG: Final = logging.getLogger("quire")
_LOOK_S: Final = 1.0
_CLOSING_S: Final = 1.0
_TABLE: Final = "metadata.cq4t"


class Integrity(Watcher):
    """Seals a queue at each roll and when it is closed."""

    def watch(self, queue: Queue, options: dict[str, Any]) -> Watch:
        """Seal at each roll, by a thread, and once more when the queue is closed."""
        del options
        return _Thread(queue)


class _Thread:
    """
    Seals a queue that is open.

    It checks the newest cycle once a second: one load, no system call. It holds no reference that
    would keep the queue open.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = weakref.ref(queue)
        self._path: Final = queue.path
        self._table: Final = queue._table_identity()  # noqa: SLF001 - the package's own
        self._pid: Final = os.getpid()
        self._ended: Final = threading.Event()
        self._failure = ""
        self._thread: Final = threading.Thread(
            target=self._run, name=f"quire seal {queue.path}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread, and seal what was appended last; idempotent. A forked child has none."""
        if self._ended.is_set() or self._pid != os.getpid():
            return
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._seal(wait_s=_CLOSING_S)

    def _run(self) -> None:
        sealed = self._newest()
        while not self._ended.wait(_LOOK_S):
            newest = self._newest()
            if newest is None:
                return
            if newest != sealed and self._seal():
                sealed = newest

    def _newest(self) -> int | None:
        """Return the newest cycle, -1 if there is none; None once the queue is closed."""
        queue = self._queue()
        try:
            return None if queue is None else queue.table_value("listing.highestCycle") or -1
        except QuireError:
            return None

    def _seal(self, *, wait_s: float = 0.0) -> bool:
        """Seal the queue; return whether it is sealed up to now. A failure is logged once."""
        queue = self._queue()
        if queue is None:
            return True
        try:
            with SafeFolder.at(self._path) as folder:
                found = folder.stat(_TABLE)
                if found is None or identity_of(found) != self._table:
                    return True  # another queue took its place
                seal_queue(queue, folder, wait_s=wait_s)
        except LockHeldError as error:
            _LOG.debug("the queue is sealed by another process: %s", error)
            return False
        except (QuireError, OSError) as error:
            if self._failure != str(error):
                self._failure = str(error)
                _LOG.exception("the queue could not be sealed: %s", self._path)
            return False
        self._failure = ""
        return True
