"""Appends that learn when replicas have their messages, without waiting for each."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias, cast

from quire._common import arguments
from quire.errors import QuireError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from typing_extensions import Buffer

    from quire._native import Value

Wait: TypeAlias = Literal["any", "all"] | int
"""How many members of the in-sync set: any one, all, or a number of them."""

_SLICE_S: Final = 0.05
_STAYS_S: Final = 1.0
_LIMIT = arguments.whole(1, 2**20)


class States(Protocol):
    """What is known of the replicas of a queue."""

    def wait(self, index: int, quorum: Wait, /, *, timeout_s: float | None = None) -> bool:
        """Return whether n replicas have acknowledged the message of an index, within a time."""
        ...

    def acknowledged(self, quorum: Wait, /) -> int | None:
        """Return the last index that n replicas have acknowledged; None: there is none."""
        ...


class Awaiting(Protocol):
    """An appender whose messages replicas acknowledge."""

    _slice_s: float

    def write_bytes(self, payload: Buffer, /) -> int:
        """Append bytes."""
        ...

    def write_text(self, text: str, /) -> int:
        """Append text."""
        ...

    def write_map(self, values: Mapping[str, Value], /) -> int:
        """Append named values."""
        ...

    def write_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> int:
        """Append an object."""
        ...

    @property
    def _timeout_s(self) -> float: ...
    def _check_wait(self, wait: Wait | None, /) -> None: ...
    def _wait_for(
        self, index: int, wait: Wait | None, /, *, timeout_s: float | None = None
    ) -> None: ...
    def _without_wait(self) -> Awaiting: ...
    def _replica_states(self) -> States: ...


class Acknowledging:
    """What an appender says about the replicas that have its messages."""

    _wait: Wait | None = None
    _slice_s = _SLICE_S
    _lines: dict[tuple[Wait, float | None], Line] | None = None

    def acknowledged(
        self, index: int, *, wait: Wait | None = None, timeout_s: float | None = None
    ) -> None:
        """
        Return once replicas have acknowledged the message of an index, and all before it.

        Args:
            index: The message's, which any process may have appended.
            wait: ``"any"`` member of the in-sync set, ``"all"`` of them, or a number of them; None:
                what the appender waits for, or else any.
            timeout_s: How long to wait; None: the queue's ``timeout_s``.

        Raises:
            WaitTimeoutError: Replicas did not acknowledge the message in time.
            ReplicationError: The queue is not replicated.

        Examples:
            >>> index = appender.write_text("hello")
            >>> appender.acknowledged(index)
            Traceback (most recent call last):
            quire.errors.ReplicationError: the queue is not replicated...

        """
        arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        self._appender._wait_for(index, self._asked(wait), timeout_s=timeout_s)  # noqa: SLF001

    async def aacknowledged(
        self, index: int, *, wait: Wait | None = None, timeout_s: float | None = None
    ) -> None:
        """
        Do as :meth:`acknowledged`, without blocking the event loop.

            await appender.aacknowledged(await appender.awrite_text("hello"))
        """
        import asyncio

        future = self.when_acknowledged(index, wait=wait, timeout_s=timeout_s)
        await asyncio.shield(asyncio.wrap_future(future))

    def when_acknowledged(
        self, index: int, *, wait: Wait | None = None, timeout_s: float | None = None
    ) -> Future[int]:
        """
        Return a future of the index, for a callback; a thread resolves it.

            appender.when_acknowledged(index).add_done_callback(lambda done: print(done.result()))

        The arguments are those of :meth:`acknowledged`; its ``WaitTimeoutError``
        is the future's.
        """
        arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        return self._line(self._asked(wait), timeout_s).add(index)

    def in_flight(
        self, limit: int = 64, *, wait: Wait | None = None, timeout_s: float | None = None
    ) -> InFlight:
        """
        Return what appends messages that replicas have not acknowledged yet, at most *limit*.

            with appender.in_flight(64) as flight:
                futures = [flight.write_bytes(payload) for payload in payloads]

        Each append returns a ``Future`` of its index, which is resolved
        when replicas have acknowledged the message. With *limit* of them under way, an append waits
        for the oldest. Leaving the block waits for all, and raises the first error.

        Args:
            limit: How many messages may be under way.
            wait: As for :meth:`acknowledged`.
            timeout_s: The same.

        Raises:
            ReplicationError: The queue is not replicated.

        """
        arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        return InFlight(self._appender, _LIMIT("limit", limit), self._asked(wait), timeout_s)

    @property
    def _appender(self) -> Awaiting:
        return cast("Awaiting", self)

    def _asked(self, wait: Wait | None) -> Wait:
        if wait is None:
            wait = self._wait
        return "any" if wait is None else wait

    def _line(self, wait: Wait, timeout_s: float | None) -> Line:
        if self._lines is None:
            self._lines = {}
        line = self._lines.get((wait, timeout_s))
        if line is None:
            line = self._lines[wait, timeout_s] = Line(self._appender, wait, timeout_s)
        return line


class Line:
    """
    Indexes that wait for the same replicas, the lowest first.

    Args:
        appender: Of the queue.
        wait: For how many.
        timeout_s: For how long each; None: the queue's ``timeout_s``.

    """

    def __init__(self, appender: Awaiting, wait: Wait, timeout_s: float | None) -> None:
        appender._check_wait(wait)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._appender, self._states = appender, appender._replica_states()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._wait: Wait = wait
        self._timeout_s = appender._timeout_s if timeout_s is None else timeout_s  # noqa: SLF001
        from concurrent.futures import Future  # takes logging along

        self._new_future: type[Future[int]] = Future
        self._heap: list[tuple[int, int, float, Future[int]]] = []
        self._numbers = count()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._has_thread = False

    def add(self, index: int) -> Future[int]:
        """Return a future that is resolved when the index is acknowledged."""
        future = self._new_future()
        future.set_running_or_notify_cancel()
        with self._lock:  # the condition's own, which costs an append less
            deadline = monotonic() + self._timeout_s
            heappush(self._heap, (index, next(self._numbers), deadline, future))
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="quire-acknowledged", daemon=True).start()
            elif len(self._heap) == 1:
                self._changed.notify()
        return future

    def help(self) -> None:
        """Wait for the lowest index in this thread, for a moment, and resolve what is due."""
        with self._changed:
            if not self._heap:
                return
            index, _, deadline, _ = self._heap[0]
        left = min(max(0.0, deadline - monotonic()), self._appender._slice_s)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        try:
            self._states.wait(index, self._wait, timeout_s=left)
            up_to = self._states.acknowledged(self._wait)
        except (QuireError, OSError) as error:
            self._fail_all(error)
        else:
            self._resolve(up_to)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._heap and not self._changed.wait_for(lambda: self._heap, _STAYS_S):
                    self._has_thread = False
                    return
            self.help()

    def _resolve(self, up_to: int | None) -> None:
        now = monotonic()
        done: list[tuple[int, Future[int]]] = []
        late: list[tuple[int, Future[int]]] = []
        with self._changed:
            while self._heap:
                index, _, deadline, future = self._heap[0]
                if up_to is not None and index <= up_to:
                    done.append((index, future))
                elif deadline <= now:
                    late.append((index, future))
                else:
                    break
                heappop(self._heap)
        for index, future in done:
            future.set_result(index)
        for index, future in late:
            self._fail(index, future)

    def _fail_all(self, error: Exception) -> None:
        with self._changed:
            futures = [row[-1] for row in self._heap]
            self._heap.clear()
        for future in futures:
            future.set_exception(error)

    def _fail(self, index: int, future: Future[int]) -> None:
        try:
            self._appender._wait_for(index, self._wait, timeout_s=0)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        except (QuireError, OSError) as error:
            future.set_exception(error)
        else:
            future.set_result(index)  # in the last moment


class InFlight:
    """
    Messages on their way to replicas, from :meth:`quire.JournalAppender.in_flight`.

    Args:
        appender: What appends them.
        limit: How many may be under way.
        wait: How many replicas each waits for.
        timeout_s: How long each may take.

    """

    def __init__(self, appender: Awaiting, limit: int, wait: Wait, timeout_s: float | None) -> None:
        self._line = Line(appender, wait, timeout_s)
        self._limit = limit
        self._appender = appender._without_wait()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._under_way: deque[Future[int]] = deque()
        self._error: BaseException | None = None

    def write_bytes(self, payload: Buffer, /) -> Future[int]:
        """Append bytes, as :meth:`quire.JournalAppender.write_bytes`."""
        self._make_room()
        return self._add(self._appender.write_bytes(payload))

    def write_text(self, text: str, /) -> Future[int]:
        """Append text, as :meth:`quire.JournalAppender.write_text`."""
        self._make_room()
        return self._add(self._appender.write_text(text))

    def write_map(self, values: Mapping[str, Value], /) -> Future[int]:
        """Append named values, as :meth:`quire.JournalAppender.write_map`."""
        self._make_room()
        return self._add(self._appender.write_map(values))

    def write_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> Future[int]:
        """Append an object, as :meth:`quire.JournalAppender.write_message`."""
        self._make_room()
        return self._add(self._appender.write_message(message, cls, typed=typed))

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for all, and raise the first error; after an exception, wait for none."""
        if error is not None:
            return
        while self._under_way:
            self._make_room(len(self._under_way))
        if self._error is not None:
            raise self._error

    def _add(self, index: int) -> Future[int]:
        future = self._line.add(index)
        self._under_way.append(future)
        return future

    def _make_room(self, limit: int | None = None) -> None:
        under_way = self._under_way
        limit = self._limit if limit is None else limit
        while len(under_way) >= limit > 0:
            while under_way and under_way[0].done():
                error = under_way.popleft().exception()
                self._error = self._error or error
            if len(under_way) >= limit:
                self._line.help()
