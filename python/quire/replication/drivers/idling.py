"""How the thread that drives a session waits while there is nothing to do."""

from __future__ import annotations

import math
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Final, Protocol

from quire._native import EventLoopWaits
from quire._waiting.sleeping import Sleeper

_REST_S: Final = 0.000_1


class Idling(Protocol):
    """How a thread waits until its next check."""

    def wait(
        self, lent: socket.socket, timeout_s: float, *, has_more: bool, is_asked: bool
    ) -> None:
        """Wait until there may be something to do, or until the timeout."""
        ...

    def rest(self) -> None:
        """Let messages accumulate that arrive faster than they can be sent one by one."""
        ...

    def wake(self) -> None:
        """Wake the thread; may be called by any thread."""
        ...


class Spinning:
    """Polls continuously, so that the thread need not be woken; yields if cores are scarce."""

    def wait(
        self, lent: socket.socket, timeout_s: float, *, has_more: bool, is_asked: bool
    ) -> None:
        """Yield to other threads."""
        del lent, timeout_s, has_more, is_asked
        os.sched_yield()

    def rest(self) -> None:
        """Do nothing: each message is sent at once."""

    def wake(self) -> None:
        """Do nothing: the thread does not sleep."""


class Sleeping:
    """
    Sleeps until the peer has sent something, or there is something to send.

    Args:
        sleeper: Returns the handle that wakes the thread when there is more to send; None: only the
            peer wakes it.

    """

    def __init__(self, sleeper: Callable[[], Sleeper | None]) -> None:
        self._sleeper = sleeper
        self._waits = EventLoopWaits()
        self._poll = select.poll()
        self._poll.register(self._waits.fileno(), select.POLLIN)

    def wait(
        self, lent: socket.socket, timeout_s: float, *, has_more: bool, is_asked: bool
    ) -> None:
        """
        Sleep.

        Args:
            lent: The peer's socket.
            timeout_s: The longest time to sleep.
            has_more: Whether there are bytes that the peer could not take yet.
            is_asked: Whether an append waits for the peer, so that it is worth waking this thread
                for it; otherwise it is not woken for each of many messages.

        """
        self._poll.register(lent, select.POLLIN | (select.POLLOUT if has_more else 0))
        self._waits.is_prompt = is_asked
        sleeper = self._sleeper()
        begun = None if sleeper is None else sleeper._begin_wait(self._waits, 1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        try:
            self._poll.poll(math.ceil(1000 * timeout_s))
        finally:
            if begun is not None:
                begun.cancel()
        self._waits.take_due()

    def rest(self) -> None:
        """Yield the core to appenders and readers for a moment."""
        if self._sleeper() is not None:
            time.sleep(_REST_S)

    def wake(self) -> None:
        """End the current sleep, or the next one."""
        self._waits.wake(0)
