"""A limit for the concurrent appends of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self, TypeVar

_T = TypeVar("_T")


class Slots:
    """Slots for the appends of each event loop, in the order in which they are asked for."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # A semaphore belongs to the first loop in which a task waits for it, and refers to it.
        self._of_loops: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    def slot(self) -> Slot:
        """Return a slot, to be entered by one append."""
        loop = asyncio.get_running_loop()
        free = self._of_loops.get(loop)
        if free is None:
            for other in [it for it in list(self._of_loops) if it.is_closed()]:
                self._of_loops.pop(other, None)
            free = self._of_loops[loop] = asyncio.Semaphore(self._limit)
        return Slot(free)


class Turns:
    """The turns of each event loop's appends: one after the other, in the order of their calls."""

    def __init__(self) -> None:
        # A lock belongs to the first loop in which a task waits for it, and refers to it.
        self._of_loops: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def turn(self) -> asyncio.Lock:
        """Return the lock that an append holds until it is done; waiters get it in their order."""
        loop = asyncio.get_running_loop()
        turn = self._of_loops.get(loop)
        if turn is None:
            for other in [it for it in list(self._of_loops) if it.is_closed()]:
                self._of_loops.pop(other, None)
            turn = self._of_loops[loop] = asyncio.Lock()
        return turn


class Slot:
    """
    Taken while an append is under way.

    A thread cannot be cancelled: a slot is free again once the thread is done with the append.
    """

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._running: asyncio.Future[Any] | None = None
        self._is_left = False

    async def __aenter__(self) -> Self:
        await self._free.acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_left = True
        if self._running is None or self._running.done():
            self._free.release()
        else:
            self._running.add_done_callback(lambda _: self._free.release())

    async def in_thread(self, write: Callable[[], _T]) -> _T:
        """Call *write* in a thread, unless the append is cancelled before that."""

        def run() -> _T:
            if self._is_left:
                raise asyncio.CancelledError
            return write()

        running = asyncio.ensure_future(asyncio.to_thread(run))
        self._running = running
        return await asyncio.shield(running)
