"""The threads that execute long commands, and the lines of appends to locked queues."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from quire.errors import LockTimeoutError, RefusedError

if TYPE_CHECKING:
    from quire.server.answers import Answer
    from quire.server.client_session import Later, Session

_THREADS: Final = 8
_APPENDING: Final = 32


class _Line:
    """Appends to one queue that may wait for its lock: only a number of them have threads."""

    def __init__(self, together: int) -> None:
        self.length = 0
        self.turn = asyncio.Semaphore(together)
        self._error: Exception | None = None
        self._began_s = self._failed_s = 0.0

    def failed(self, error: Exception, began_s: float) -> None:
        """Record that the lock was not available in time."""
        found = error if isinstance(error, LockTimeoutError) else error.__cause__
        if isinstance(found, LockTimeoutError):
            self._error, self._began_s, self._failed_s = found, began_s, time.monotonic()

    def check(self, later: Later, since_s: float) -> None:
        """Raise the error of the preceding append for one that has waited nearly as long."""
        if self._error is not None and since_s < (self._began_s + self._failed_s) / 2:
            raise later.gives_up(self._error)


class CommandThreads:
    """
    The threads of a server: some for appends that wait, and some for all other commands.

    So neither a locked queue nor its appends delay the other commands.
    """

    def __init__(self) -> None:
        self._appending = ThreadPoolExecutor(_APPENDING, "quire-append")
        self._others = ThreadPoolExecutor(_THREADS, "quire-serve")
        self._lines: dict[str, _Line] = {}

    def submit(self, call: Callable[[], object]) -> None:
        """Let a thread call a function."""
        self._others.submit(call)

    async def carried_out(self, session: Session, later: Later) -> Answer:
        """Return the answer of a command that a thread executes."""
        found = await (self._call(later) if later.line is None else self._append(session, later))
        if not isinstance(found, Future):
            return found
        if later.limit_s is None:
            return await asyncio.wrap_future(found)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(found), later.limit_s)
        return await asyncio.get_running_loop().run_in_executor(self._others, later.ends_with)

    async def _call(self, later: Later) -> Answer | Future[Answer]:
        return await asyncio.get_running_loop().run_in_executor(self._others, later.call)

    async def _append(self, session: Session, later: Later) -> Answer | Future[Answer]:
        """Execute an append once the earlier ones in its line are done."""
        topic, since_s = later.line or "", time.monotonic()
        line = self._lines.setdefault(topic, _Line(later.together))
        line.length += 1
        try:
            async with line.turn:
                if session.is_closing:
                    raise later.gives_up(RefusedError("the client has gone"))
                line.check(later, since_s)
                began_s = time.monotonic()
                try:
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(self._appending, later.call)
                except Exception as error:
                    line.failed(error, began_s)
                    raise
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[topic]

    def end(self) -> None:
        """End the threads once their commands are done."""
        self._appending.shutdown(wait=True)
        self._others.shutdown(wait=True)
