"""Futures of indexes, of which many are resolved at a time."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, TypeAlias

History: TypeAlias = tuple[int, int]
"""The epoch, and how often messages were cut off: meanwhile an index belongs to one message."""


class Acknowledgement(Future[int]):
    """
    A future of an index that waits for replicas.

    To make a future of the standard library costs several times as much as the append itself, so
    its parts are made only when a caller asks for more than whether it is done.

    Args:
        index: The message's.
        history: In which it has the index.
        deadline_s: When time is up, by the monotonic clock.
        lock: What those that resolve it hold when they call :meth:`end`.

    """

    _has_ended = _is_whole = False
    _error: BaseException | None = None

    # The base's own initializer is called by `__getattr__`.
    def __init__(
        self, index: int, history: History, deadline_s: float, lock: threading.RLock
    ) -> None:
        self.index, self.history, self.deadline_s, self._lock = index, history, deadline_s, lock

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as it is asked for
        """Become a whole future, if an attribute of one is missing."""
        if not self._is_whole:
            self._become_whole()
        return object.__getattribute__(self, name)

    def _become_whole(self) -> None:
        with self._lock:
            if self._is_whole:
                return
            super().__init__()  # lock-free: the holder of the future's lock may want ours
            self._is_whole, has_ended = True, self._has_ended
        if has_ended:
            self.report()

    def end(self, error: BaseException | None = None) -> bool:
        """Note the outcome, under the lock; whether :meth:`report` is due after it."""
        self._error, self._has_ended = error, True
        return self._is_whole

    def report(self) -> None:
        """Wake those who wait, and call back."""
        if self._error is None:
            self.set_result(self.index)
        else:
            self.set_exception(self._error)

    def cancel(self) -> bool:
        """Return that it cannot be cancelled: the message is in the queue."""
        return False

    def running(self) -> bool:
        """Return whether replicas may still acknowledge the message."""
        return not self._has_ended

    def done(self) -> bool:
        """Return whether replicas have the message, or time is up."""
        return self._has_ended

    def result(self, timeout: float | None = None) -> int:
        """Return the index once replicas have the message."""
        if self._has_ended and self._error is None:
            return self.index
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return why replicas do not have it, once that is known."""
        if self._has_ended:
            return self._error
        return super().exception(timeout)
