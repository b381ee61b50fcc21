"""Waiting until a descriptor can be read or the recorder is stopped."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Final

LAST_READS: Final = 64
"""How many more reads a stopped recorder makes at most, however fast data arrives."""


class Waiter:
    """
    Waits until descriptors are readable, until it is stopped.

    Waiting is separate from reading, so a recorder that stops loses no data that was read.
    """

    def __init__(self) -> None:
        self.is_stopped = False
        self._waiting = set[asyncio.Future[bool]]()

    def stop(self) -> None:
        """End every wait, now and later."""
        self.is_stopped = True
        for future in self._waiting:
            _settle(future, is_readable=False)

    async def stopped(self) -> None:
        """Wait until the waiter is stopped."""
        if not self.is_stopped:
            future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)

    async def readable(self, descriptor: int) -> bool:
        """Wait until the descriptor is readable; return False once stopped."""
        if self.is_stopped:
            return False
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        try:
            loop.add_reader(descriptor, lambda: _settle(future, is_readable=True))
        except PermissionError:  # a regular file, which is always readable
            await asyncio.sleep(0)
            return not self.is_stopped
        self._waiting.add(future)
        try:
            return await future
        finally:
            loop.remove_reader(descriptor)
            self._waiting.discard(future)


def _settle(future: asyncio.Future[bool], *, is_readable: bool) -> None:
    if not future.done():
        future.set_result(is_readable)


class Input:
    """
    The bytes of one stream.

    Args:
        waiter: Ends the stream when it is stopped.
        descriptor: The file descriptor of the stream.
        read: Reads from the descriptor without waiting, once it is readable.
        timeout_s: How long to wait for bytes; None: for ever.

    """

    def __init__(
        self,
        waiter: Waiter,
        descriptor: int,
        read: Callable[[], bytes],
        timeout_s: float | None = None,
    ) -> None:
        self._waiter, self._descriptor, self._read = waiter, descriptor, read
        self._timeout_s = timeout_s
        self._last_reads = LAST_READS

    async def next(self) -> bytes | None:
        """
        Return the next bytes: empty at the end of the stream, None once the waiter is stopped.

        Raises:
            TimeoutError: No bytes arrived in time.

        """
        async with asyncio.timeout(self._timeout_s):
            if await self._waiter.readable(self._descriptor):
                return self._read()
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        self._last_reads -= 1
        return self._read() if self._last_reads >= 0 and poll.poll(0) else None
