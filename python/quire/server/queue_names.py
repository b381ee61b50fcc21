"""The names of all queues of a server, found by a thread that concurrent requests share."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Final, TypeVar

_T = TypeVar("_T")
_KEPT_S: Final = 5.0


class QueueNames:
    """
    Looks for the names of all queues, once for any number of concurrent requests.

    Args:
        look: Returns the names.

    """

    def __init__(self, look: Callable[[], list[str]]) -> None:
        self._look = look
        self._thread = ThreadPoolExecutor(1, "quire-names")
        self._lock = Lock()
        self._next: Future[list[str]] | None = None
        self._kept: tuple[float, list[str]] = (float("-inf"), [])

    def ask(self, make: Callable[[list[str]], _T]) -> Future[_T]:
        """Return a future of *make*'s result for the names, new ones included."""
        with self._lock:
            if self._next is None:
                self._next = self._thread.submit(self._looked)
            names = self._next
        made: Future[_T] = Future()
        made.set_running_or_notify_cancel()

        def finish(found: Future[list[str]]) -> None:
            try:
                made.set_result(make(found.result()))
            except BaseException as error:  # noqa: BLE001 - of the one who asked
                made.set_exception(error)

        names.add_done_callback(finish)
        return made

    def _looked(self) -> list[str]:
        with self._lock:
            self._next = None  # who asks from now on may have made a queue that is missed here
        names = self._look()
        self._kept = time.monotonic(), names
        return names

    def kept(self) -> list[str] | None:
        """Return the names if they were looked for a moment ago, else None."""
        kept_s, names = self._kept
        return names if time.monotonic() - kept_s < _KEPT_S else None

    def close(self) -> None:
        """End the thread after its current search."""
        self._thread.shutdown(wait=False, cancel_futures=True)
