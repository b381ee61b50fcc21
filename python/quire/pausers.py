"""
Pausers: how a loop waits when there is nothing to do.

>>> pauser = quire.pausers.balanced()
>>> while queue.entry_count < 3:  # until there is something to do
...     _ = appender.write_text("hello")
...     pauser.pause()  # another thread may call pauser.unpause()
>>> pauser.reset()

A pauser first returns immediately, then yields, then sleeps, longer each time, until it is reset.
Each loop needs a pauser of its own; only :meth:`Pauser.unpause` may be called from other threads.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from typing import TYPE_CHECKING

from quire._common import arguments
from quire.errors import WaitTimeoutError

if TYPE_CHECKING:
    import asyncio  # doubles the import time; programs that await a pauser import it anyway

__all__ = [
    "Pauser",
    "async_",
    "balanced",
    "busy",
    "millis",
    "sleepy",
    "timeout",
    "yielding",
]

TURN_S = 0.002
"""For this long an event loop's other tasks wait while there are messages."""

_GROWTH = 1 / 64
_GROWTH_S = 0.000_02
_NS_PER_S = 1_000_000_000


class Pauser:
    """
    Escalates from spinning over yielding to sleeping.

    Args:
        busy_count: This many pauses return at once.
        yield_count: This many more let other threads and processes run.
        min_s: Then the first sleep, in seconds.
        max_s: Each sleep is longer than the one before, up to this.
        timeout_s: Pausing for longer, without a reset, raises.

    Examples:
        >>> pauser = quire.pausers.Pauser(busy_count=10, min_s=0.001, max_s=0.01, timeout_s=5)
        >>> for _ in range(12):
        ...     pauser.pause()
        >>> pauser.count_paused
        2
        >>> pauser.time_paused_s > 0
        True
        >>> pauser.unpause()  # from another thread: ends the sleep
        >>> pauser.reset()

    """

    # Refuses other attributes, and costs a pause less than KnownAttributes would.
    __slots__ = (
        *("__weakref__", "_busy_count", "_yield_count", "_min_s", "_max_s", "_timeout_s"),
        *("_permit", "_waiter", "_yields_since_ns", "_time_paused_ns", "_count_paused"),
        *("_count", "_sleep_s", "_began_s"),
    )

    def __init__(
        self,
        *,
        busy_count: float = 0,
        yield_count: float = 0,
        min_s: float = 0.000_05,
        max_s: float = 0.02,
        timeout_s: float | None = None,
    ) -> None:
        """Begin as after a reset."""
        self._busy_count = arguments.count("busy_count", busy_count)
        self._yield_count = self._busy_count + arguments.count("yield_count", yield_count)
        self._min_s = arguments.seconds("min_s", min_s)
        self._max_s = arguments.seconds("max_s", max_s)
        self._timeout_s = arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        if not 0 < self._min_s <= self._max_s < math.inf:
            raise ValueError(f"min_s must not exceed max_s: min_s={min_s} max_s={max_s}")
        # Held while nobody called unpause: to sleep is to wait for it.
        self._permit = threading.Lock()
        self._permit.acquire()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._yields_since_ns = 0
        self._time_paused_ns = 0
        self._count_paused = 0
        self.reset()

    def reset(self) -> None:
        """Begin again with the shortest pause: there was something to do."""
        self._end_yields()
        self._count = 0
        self._sleep_s = self._min_s
        self._began_s: float | None = None

    def pause(self, timeout_s: float | None = None) -> None:
        """
        Pause, longer than the last time.

        Args:
            timeout_s: Raise when the pauses since the last reset add up to more than this.

        Raises:
            WaitTimeoutError: The pauser's timeout is over.

        """
        self._count += 1
        left_s = self._left_s(timeout_s)
        if self._count <= self._busy_count:
            return
        if self._count <= self._yield_count:
            self._begin_yields()
            _let_others_run()
            return
        began_ns = self._end_yields()
        self._permit.acquire(timeout=min(self._sleep_s, left_s))
        self._slept(began_ns)

    async def apause(self, timeout_s: float | None = None) -> None:
        """
        Pause without blocking the event loop.

        Raises:
            WaitTimeoutError: The pauses since the last reset add up to more than *timeout_s*.

        Examples:
            >>> import asyncio
            >>> asyncio.run(quire.pausers.async_().apause())

        """
        import asyncio

        self._count += 1
        left_s = self._left_s(timeout_s)
        if self._count <= self._yield_count:
            self._begin_yields()
            await asyncio.sleep(0)
            return
        began_ns = self._end_yields()
        await self._sleep_async(min(self._sleep_s, left_s))
        self._slept(began_ns)

    def unpause(self) -> None:
        """
        End the sleep of the pauser, or its next one if it does not sleep now.

        From any thread, and from a signal handler.
        """
        try:
            self._permit.release()
        except RuntimeError:
            return  # said already, and not heard yet
        if (waiter := self._waiter) is not None:
            loop, woken = waiter
            try:
                loop.call_soon_threadsafe(woken.set)
            except RuntimeError:
                return  # the loop was closed: nobody sleeps there

    @property
    def time_paused_s(self) -> float:
        """The seconds slept or yielded; a run of yields counts when it is over."""
        return self._time_paused_ns / _NS_PER_S

    @property
    def count_paused(self) -> int:
        """The number of sleeps and of runs of yields."""
        return self._count_paused

    def __repr__(self) -> str:
        """Show what was counted."""
        return (
            f"<{type(self).__name__} count_paused={self.count_paused} "
            f"time_paused_s={self.time_paused_s:.6f}>"
        )

    async def _sleep_async(self, sleep_s: float) -> None:
        import asyncio

        woken = asyncio.Event()
        self._waiter = asyncio.get_running_loop(), woken
        try:
            if not self._permit.acquire(blocking=False):
                async with asyncio.timeout(sleep_s):
                    await woken.wait()
                self._permit.acquire(blocking=False)
        except TimeoutError:
            return
        finally:
            self._waiter = None

    def _left_s(self, timeout_s: float | None) -> float:
        if timeout_s is None:
            timeout_s = self._timeout_s
        if timeout_s is None:
            return math.inf
        now_s = time.monotonic()
        if self._began_s is None:
            self._began_s = now_s
        left_s = self._began_s + timeout_s - now_s
        if left_s <= 0:
            raise WaitTimeoutError(f"no message arrived in time: timeout_s={timeout_s}")
        return left_s

    def _slept(self, began_ns: int) -> None:
        self._time_paused_ns += time.monotonic_ns() - began_ns
        self._count_paused += 1
        self._sleep_s = min(self._max_s, self._sleep_s * (1 + _GROWTH) + _GROWTH_S)

    def _begin_yields(self) -> None:
        if not self._yields_since_ns:
            self._yields_since_ns = time.monotonic_ns()

    def _end_yields(self) -> int:
        now_ns = time.monotonic_ns()
        if self._yields_since_ns:
            self._time_paused_ns += now_ns - self._yields_since_ns
            self._count_paused += 1
            self._yields_since_ns = 0
        return now_ns


def busy() -> Pauser:
    """
    Never pause: the lowest latency, at the cost of a processor; the GIL is shared as usual.

    Examples:
        >>> pauser = quire.pausers.busy()

    """
    return Pauser(busy_count=math.inf)


def yielding(busy_count: int = 2) -> Pauser:
    """
    Let other threads and processes run, and never sleep.

    Examples:
        >>> pauser = quire.pausers.yielding()

    """
    return Pauser(busy_count=busy_count, yield_count=math.inf)


def balanced(max_ms: float = 20) -> Pauser:
    """
    Spin for part of a millisecond, yield, then sleep from 50 us up to *max_ms*.

    Examples:
        >>> pauser = quire.pausers.balanced(max_ms=5)

    """
    return Pauser(busy_count=500, yield_count=250, min_s=0.000_05, max_s=_seconds("max_ms", max_ms))


def sleepy() -> Pauser:
    """
    Yield a little, then sleep from 0.5 ms up to 20 ms: next to no processor time.

    Examples:
        >>> pauser = quire.pausers.sleepy()

    """
    return Pauser(yield_count=100, min_s=0.000_5, max_s=0.02)


def millis(min_ms: float, max_ms: float | None = None) -> Pauser:
    """
    Sleep at once: *min_ms*, then longer up to *max_ms*; without that always alike.

    Examples:
        >>> pauser = quire.pausers.millis(1)

    """
    min_s = _seconds("min_ms", min_ms)
    return Pauser(min_s=min_s, max_s=min_s if max_ms is None else _seconds("max_ms", max_ms))


def timeout(timeout_s: float, *, busy_count: int = 500) -> Pauser:
    """
    Spin, then yield, and raise ``WaitTimeoutError`` *timeout_s* seconds after a reset.

    Examples:
        >>> pauser = quire.pausers.timeout(30)

    """
    return Pauser(busy_count=busy_count, yield_count=math.inf, timeout_s=timeout_s)


def async_(max_ms: float = 1) -> Pauser:
    """
    For :meth:`Pauser.apause`: 100 turns of the event loop, then sleeps up to *max_ms*.

    Examples:
        >>> pauser = quire.pausers.async_()

    """
    return Pauser(yield_count=100, min_s=0.000_05, max_s=_seconds("max_ms", max_ms))


def pauser_of(given: Pauser | None) -> Pauser:
    """Return the pauser that was given, or one that sleeps for at most a millisecond."""
    if given is None:
        return Pauser(yield_count=100, min_s=0.000_05, max_s=0.001)
    if not hasattr(given, "pause"):
        raise arguments.refusal("pauser", "one of quire.pausers", given)
    return given


def _seconds(name: str, ms: object) -> float:
    seconds = arguments.count(name, ms) / 1000
    if not 0 < seconds < math.inf:
        raise arguments.out_of_range(name, "some milliseconds", ms)
    return seconds


def _let_others_run() -> None:
    select.select((), (), (), 0)  # releases the GIL, which `sched_yield` alone may not
    os.sched_yield()
