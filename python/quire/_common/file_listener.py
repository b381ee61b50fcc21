"""Calls the listeners of :func:`quire.open` when files of the queue are opened and released."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from quire._native import FileEvents

FileListener: TypeAlias = Callable[[int, str], object]


class FileListening:
    """
    The thread that calls the listeners, so that no lock is held meanwhile and no handle waits.

    Args:
        events: What the queue says of its files.
        acquired: Called with the cycle and the path of a file that was opened.
        released: Called when the last handle has released it.

    """

    def __init__(
        self, events: FileEvents, acquired: FileListener | None, released: FileListener | None
    ) -> None:
        """Start the thread."""
        self._events: Final = events
        self._listeners: Final = {True: acquired, False: released}
        self._thread: Final = _Thread(target=self._run, daemon=True, name="quire-files")
        # A daemon thread must not wait in the kernel while the interpreter is torn down.
        atexit.register(self._finish)
        self._thread.start()

    def close(self) -> None:
        """Wait until the listeners know all that happened before the queue was closed."""
        # A listener that closes a queue must not wait for itself, nor for one that waits for it.
        if not isinstance(threading.current_thread(), _Thread):
            self._thread.join()

    def _finish(self) -> None:
        self._events.end()
        if self._thread.is_alive():  # not yet, in a child that was forked just before the start
            self._thread.join()

    def _run(self) -> None:
        while events := self._events.take():
            for cycle, path, is_acquired in events:
                self._call(self._listeners[is_acquired], cycle, path)
        atexit.unregister(self._finish)

    def _call(self, listener: FileListener | None, cycle: int, path: str) -> None:
        if listener is None:
            return
        try:
            listener(cycle, path)
        except BaseException:  # `sys.exit` would end the thread, and the counts differ
            import logging  # imported late: `quire read` starts without it

            name = getattr(listener, "__qualname__", type(listener).__name__)
            logging.getLogger("quire").exception(
                "a file listener failed: listener=%s cycle=%d file=%s", name, cycle, path
            )


class _Thread(threading.Thread):
    """A thread that calls listeners."""
