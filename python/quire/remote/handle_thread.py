"""The thread of a remote handle, where the calls of tasks wait for the server."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class HandleThread:
    """
    One thread, started with the first call, that runs calls in their order.

    A process that was forked since then gets a thread of its own. After :meth:`close`, calls run
    where they are made: the handle is closed, and they say so at once.

    Args:
        name: Of the thread.

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._executor: ThreadPoolExecutor | None = None
        self._pid = 0
        self._is_closed = False

    async def run(self, call: Callable[[], _T]) -> _T:
        """Return the result of a call; one that has begun goes on if the task is cancelled."""
        import asyncio

        if self._is_closed:
            return call()
        if self._executor is None or self._pid != os.getpid():
            self._executor, self._pid = ThreadPoolExecutor(1, self._name), os.getpid()
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def close(self) -> None:
        """End the thread after the calls that have begun or wait; it does not wait for them."""
        self._is_closed = True
        if self._executor is not None and self._pid == os.getpid():
            self._executor.shutdown(wait=False)
