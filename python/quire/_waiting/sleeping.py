"""Sleeping until a tailer has something to read: one thread of the kernel waits for all of them."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from quire._native import EventLoopWaits, Wait

if TYPE_CHECKING:
    import asyncio  # doubles the import time; programs that await import it anyway


@runtime_checkable
class Sleeper(Protocol):
    """A native tailer, of any format."""

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Wait: ...


class _LoopSleeps:
    """
    The tasks of one event loop that sleep.

    It does not refer to the loop, which would then never be freed.
    """

    def __init__(self) -> None:
        self._waits = EventLoopWaits()
        self._numbers = itertools.count()
        self._futures: dict[int, asyncio.Future[None]] = {}
        self._is_watched = False

    async def sleep(
        self, loop: asyncio.AbstractEventLoop, sleeper: Sleeper, timeout_s: float
    ) -> None:
        """Sleep until a wait is due, or time is up."""
        number = next(self._numbers)
        self._futures[number] = loop.create_future()
        wait = timer = None
        try:
            if not self._is_watched:
                loop.add_reader(self._waits.fileno(), self._wake_due)
                self._is_watched = True
            wait = sleeper._begin_wait(self._waits, number)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            if timeout_s < math.inf:
                timer = loop.call_later(timeout_s, self._wake, number)
            await self._futures[number]
        finally:
            del self._futures[number]
            if timer is not None:
                timer.cancel()
            if wait is not None:
                wait.cancel()

    def _wake_due(self) -> None:
        for number in self._waits.take_due():
            self._wake(number)

    def _wake(self, number: int) -> None:
        future = self._futures.get(number)
        if future is not None and not future.done():
            future.set_result(None)


_sleeps: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopSleeps] = WeakKeyDictionary()


async def sleep_async(sleeper: Sleeper, timeout_s: float = math.inf) -> None:
    """Return once a tailer has something to read, or an error, or time is up; or earlier."""
    import asyncio

    loop = asyncio.get_running_loop()
    sleeps = _sleeps.get(loop)
    if sleeps is None:
        sleeps = _sleeps[loop] = _LoopSleeps()
    await sleeps.sleep(loop, sleeper, timeout_s)
