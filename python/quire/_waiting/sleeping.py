"""Sleeping until there is something to read: one kernel thread waits for all sleepers."""

from __future__ import annotations

import itertools
import math
import os
import select
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from quire._native import EventLoopWaits
from quire.pausers import Pauser, pauser_of

if TYPE_CHECKING:
    import asyncio  # doubles the import time; programs that await import it anyway

_IN_VAIN: Final = 2
"""After this many successive wake-ups without a message, a reader pauses instead of sleeping."""
_PAUSE_S: Final = 0.01
_LONGEST_S: Final = 3600.0
"""Longer sleeps are split: the milliseconds of `poll` are a C int."""


class Begun(Protocol):
    """A wait that has begun."""

    def cancel(self) -> None:
        """End it."""
        ...


@runtime_checkable
class Sleeper(Protocol):
    """An object that can be waited for: a native tailer of any format, or several as one."""

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Begun: ...


class _AllBegun:
    """The waits for several sleepers."""

    def __init__(self, sleepers: Iterable[Sleeper], waits: EventLoopWaits, number: int) -> None:
        with ExitStack() as begun:
            for sleeper in sleepers:
                wait = sleeper._begin_wait(waits, number)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                begun.callback(wait.cancel)
            self._begun = begun.pop_all()

    def cancel(self) -> None:
        """End them."""
        self._begun.close()


class AnyOf:
    """
    Several sleepers as one, which is due as soon as any of them is.

    Args:
        sleepers: Returns the sleepers to wait for, each time a wait begins.

    """

    def __init__(self, sleepers: Callable[[], Iterable[Sleeper]]) -> None:
        """Store the function."""
        self._sleepers = sleepers

    def _begin_wait(self, waits: EventLoopWaits, number: int, /) -> Begun:
        return _AllBegun(self._sleepers(), waits, number)


class Sleep(Pauser):
    """
    A pauser that sleeps until there is something to read, or an error; or shorter.

    Args:
        sleeper: What to wait for.

    """

    def __init__(self, sleeper: Sleeper) -> None:
        """Begin as after a reset."""
        super().__init__()
        self._sleeper = sleeper
        self._waits: EventLoopWaits | None = None
        self._pid = 0
        self._is_woken = False
        self._wake: Callable[[], None] | None = None

    def reset(self) -> None:
        """Reset the time: there was something to do."""
        super().reset()
        self._in_vain = 0

    def pause(self, timeout_s: float | None = None) -> None:
        """Sleep; raise if the pauses since the last reset add up to more than *timeout_s*."""
        left_s = self._left_s(timeout_s)
        began_ns = self._end_yields()
        if self._waits is None or self._pid != os.getpid():
            self._waits, self._pid = EventLoopWaits(), os.getpid()
        waits = self._waits
        if self._is_to_sleep(lambda: waits.wake(0)):
            due = select.poll()
            due.register(waits.fileno(), select.POLLIN)
            sleeper, left_s = self._chosen(left_s)
            begun = sleeper._begin_wait(waits, 1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            try:
                is_due = due.poll(math.ceil(1000 * min(left_s, _LONGEST_S)))
            finally:
                begun.cancel()
            self._woke(is_due=bool(is_due))
        waits.take_due()
        self._slept(began_ns)

    async def apause(self, timeout_s: float | None = None) -> None:
        """Sleep without blocking the event loop."""
        sleeper, left_s = self._chosen(self._left_s(timeout_s))
        began_ns = self._end_yields()
        self._woke(is_due=await sleep_async(sleeper, left_s, self))
        self._slept(began_ns)

    def unpause(self) -> None:
        """End the sleep, or the next one; from any thread, and from a signal handler."""
        self._is_woken = True
        if (wake := self._wake) is not None:
            wake()

    def _is_to_sleep(self, wake: Callable[[], None]) -> bool:
        """Return whether to sleep, as no one has ended the sleep; from now on *wake* ends it."""
        self._wake = wake
        is_woken, self._is_woken = self._is_woken, False
        return not is_woken

    def _chosen(self, left_s: float) -> tuple[Sleeper, float]:
        """Return what to wait for, and the longest time."""
        if self._in_vain < _IN_VAIN:
            return self._sleeper, left_s
        self._in_vain = 0
        return AnyOf(tuple), min(left_s, _PAUSE_S)

    def _woke(self, *, is_due: bool) -> None:
        self._in_vain = self._in_vain + 1 if is_due else 0
        self._is_woken = False


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
        self,
        loop: asyncio.AbstractEventLoop,
        sleeper: Sleeper,
        timeout_s: float,
        sleep: Sleep,
    ) -> bool:
        """Sleep until a wait is due, or time is up; whether it is due."""
        number = next(self._numbers)
        self._futures[number] = loop.create_future()
        wait = timer = None
        is_late = False

        def end() -> None:
            nonlocal is_late
            is_late = True
            self._wake(number)

        try:
            if not self._is_watched:
                loop.add_reader(self._waits.fileno(), self._wake_due)
                self._is_watched = True
            if not sleep._is_to_sleep(lambda: self._waits.wake(number)):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                return False
            wait = sleeper._begin_wait(self._waits, number)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            if timeout_s < math.inf:
                timer = loop.call_later(timeout_s, end)
            await self._futures[number]
        finally:
            del self._futures[number]
            if timer is not None:
                timer.cancel()
            if wait is not None:
                wait.cancel()
        return not is_late

    def _wake_due(self) -> None:
        for number in self._waits.take_due():
            self._wake(number)

    def _wake(self, number: int) -> None:
        future = self._futures.get(number)
        if future is not None and not future.done():
            future.set_result(None)


_sleeps: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopSleeps] = WeakKeyDictionary()


async def sleep_async(sleeper: Sleeper, timeout_s: float, sleep: Sleep | None = None) -> bool:
    """
    Return once there is something to read, or an error, or the time is up; or earlier.

    Args:
        sleeper: What to wait for.
        timeout_s: When time is up.
        sleep: The sleep that others may end; None: it cannot be ended.

    Returns:
        Whether it was due.

    """
    import asyncio

    loop = asyncio.get_running_loop()
    sleeps = _sleeps.get(loop)
    if sleeps is None:
        sleeps = _sleeps[loop] = _LoopSleeps()
    return await sleeps.sleep(loop, sleeper, timeout_s, sleep or Sleep(sleeper))


def pauser_at(sleeper: Sleeper, given: Pauser | None) -> Pauser:
    """Return the given pauser, or one that sleeps until there is something to read."""
    return Sleep(sleeper) if given is None else pauser_of(given)
