"""How the thread that drives a session waits when there is nothing to do."""

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
    """What a thread does until it looks again."""

    def wait(
        self, lent: socket.socket, timeout_s: float, *, has_more: bool, is_asked: bool
    ) -> None:
        """Wait until there may be something to do, or time is up."""
        ...

    def rest(self) -> None:
        """Collect messages that come faster than each of them can be sent."""
        ...

    def wake(self) -> None:
        """Wake the thread; from any thread."""
        ...


class Spinning:
    """Polls at once, so that the thread need not be woken; it yields if cores are scarce."""

    def wait(
        self, lent: socket.socket, timeout_s: float, *, has_more: bool, is_asked: bool
    ) -> None:
        """Yield to others."""
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
        sleeper: Returns what has something to read once there is more to send; None: only the peer
            wakes the thread.

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
            timeout_s: For how long at most.
            has_more: Whether there is something that the peer could not take yet.
            is_asked: Whether an append waits for the peer, and may pay for waking this thread: else
                it is not woken for each of many messages.

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
        """Leave the core to appenders and readers for a moment."""
        if self._sleeper() is not None:
            time.sleep(_REST_S)

    def wake(self) -> None:
        """End the sleep, or the next one."""
        self._waits.wake(0)
