"""Appends that learn when replicas have their messages, without waiting for each."""

from __future__ import annotations

import threading
from bisect import insort
from collections import deque
from collections.abc import Iterator, Mapping
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias, cast

from quire._common import arguments
from quire.errors import QuireError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from typing_extensions import Buffer

    from quire._native import Value
    from quire.handles.journal.acknowledgement import Acknowledgement, History

Wait: TypeAlias = Literal["any", "all"] | int
"""How many members of the in-sync set: any one, all, or a number of them."""

_SLICE_S: Final = 0.05
_STAYS_S: Final = 1.0
_HELPED_S: Final = 0.001
_LIMIT = arguments.whole(1, 2**20)


class States(Protocol):
    """The known state of a queue's replicas."""

    def wait(self, index: int, quorum: Wait, /, *, timeout_s: float | None = None) -> bool:
        """Return whether n replicas have acknowledged the message of an index, within a time."""
        ...

    def reached(self, quorum: Wait, /) -> tuple[int | None, History]:
        """Return the last index that n replicas have, or None, and in which history."""
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
    def _check_wait(self, wait: Wait | None, /) -> History | None: ...
    def _wait_for(
        self,
        index: int,
        wait: Wait | None,
        /,
        *,
        timeout_s: float | None = None,
        history: History | None = None,
        waited_s: float = 0.0,
    ) -> None: ...
    def _without_wait(self) -> Awaiting: ...
    def _replica_states(self) -> States: ...


class Acknowledging:
    """Waiting until replicas have an appender's messages."""

    _wait: Wait | None = None
    _slice_s = _SLICE_S
    _lines: dict[tuple[Wait, float | None], Line] | None = None

    def acknowledged(
        self, index: int, *, wait: Wait | None = None, timeout_s: float | None = None
    ) -> None:
        """
        Return once replicas have acknowledged the message of an index, and all before it.

        Args:
            index: The index of the message, which any process may have appended.
            wait: ``"any"`` member of the in-sync set, ``"all"`` of them, or a number of them; None:
                what the appender waits for, or else any.
            timeout_s: How long to wait; None: the queue's ``timeout_s``.

        Raises:
            WaitTimeoutError: Replicas did not acknowledge the message in time.
            ReplicationError: The queue is not replicated, or it got another source meanwhile, or
                lost its end: another message may have the index now.

        Examples:
            >>> index = appender.write_text("hello")
            >>> appender.acknowledged(index)
            Traceback (most recent call last):
            quire.errors.ReplicationError: the queue is not replicated...

        """
        arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        self._appender._wait_for(index, self._asked(wait), timeout_s=timeout_s)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    async def aacknowledged(
        self, index: int, *, wait: Wait | None = None, timeout_s: float | None = None
    ) -> None:
        """
        Wait as :meth:`acknowledged` does, without blocking the event loop.

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
        line = self._line(self._asked(wait), timeout_s)
        return line.add(index, line.current_history())

    def _when_acknowledged(self, index: int, wait: Wait, history: History) -> Future[int]:
        """Return the future of a message that was appended in a history."""
        return self._line(wait, None).add(index, history)

    def in_flight(
        self, limit: int = 64, *, wait: Wait | None = None, timeout_s: float | None = None
    ) -> InFlight:
        """
        Return a writer that appends up to *limit* messages ahead of the replicas' acknowledgements.

            with appender.in_flight(64) as flight:
                futures = [flight.write_bytes(payload) for payload in payloads]

        Each append returns a ``Future`` of its index, which is resolved
        when replicas have acknowledged the message. With *limit* unacknowledged messages, an append
        waits for half of them. Leaving the block waits for all, and raises the first error.

        Args:
            limit: How many messages may be under way.
            wait: As for :meth:`acknowledged`.
            timeout_s: The same.

        Raises:
            ReplicationError: The queue is not replicated; or, from a future, the queue got another
                source since the append, or lost its end.

        """
        arguments.optional(arguments.seconds)("timeout_s", timeout_s)
        return self._new_flight(_LIMIT("limit", limit), self._asked(wait), timeout_s)

    def _new_flight(self, limit: int, wait: Wait, timeout_s: float | None) -> InFlight:
        return InFlight(self._appender, limit, wait, timeout_s)

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

    Each has a history that was looked at before its message was appended. It is resolved by what
    replicas have in that history alone: in another one the index may be that of another message.

    Args:
        appender: Of the queue.
        wait: For how many.
        timeout_s: For how long each; None: the queue's ``timeout_s``.

    Attributes:
        waiting: Those that wait.
        error: The first one.

    """

    def __init__(self, appender: Awaiting, wait: Wait, timeout_s: float | None) -> None:
        appender._check_wait(wait)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._appender, self._states = appender, appender._replica_states()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._wait: Wait = wait
        own_s = appender._timeout_s  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._timeout_s = own_s if timeout_s is None else timeout_s
        # Takes logging along.
        from quire.handles.journal.acknowledgement import Acknowledgement

        self._new_future = Acknowledgement
        self.waiting: Final[deque[Acknowledgement]] = deque()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._has_thread = self._is_helped = False
        self.error: BaseException | None = None
        _, self.history = self._states.reached(wait)

    def current_history(self) -> History:
        """Return the history to append in; while indexes wait it is looked at all the time."""
        if not self.waiting:
            _, self.history = self._states.reached(self._wait)
        return self.history

    def add(self, index: int, history: History) -> Future[int]:
        """Return a future that is resolved when the index is acknowledged in this history."""
        future = self._new_future(index, history, monotonic() + self._timeout_s, self._lock)
        with self._lock:  # the condition's own, which costs an append less
            waiting = self.waiting
            if waiting:
                if waiting[-1].index > index:
                    insort(waiting, future, key=_index_of)
                else:
                    waiting.append(future)
                return future
            waiting.append(future)
            if self._has_thread:
                self._changed.notify()
            else:
                self._has_thread = True
                threading.Thread(target=self._run, name="quire-acknowledged", daemon=True).start()
        return future

    def reduce(self, count: int) -> None:
        """Wait in this thread until no more than a number of indexes wait."""
        while len(self.waiting) > count:
            self._is_helped = True
            self._help(count)

    def _help(self, count: int) -> None:
        """Wait for a moment until *count* are left, and resolve what is due."""
        with self._lock:
            if len(self.waiting) <= count:
                return
            index = self.waiting[len(self.waiting) - count - 1].index
            deadline_s = self.waiting[0].deadline_s
        left_s = min(max(0.0, deadline_s - monotonic()), self._appender._slice_s)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        try:
            self._states.wait(index, self._wait, timeout_s=left_s)
            up_to, history = self._states.reached(self._wait)
        except (QuireError, OSError) as error:
            self._fail_all(error)
        else:
            self.history = history
            self._resolve(up_to, history)

    def _run(self) -> None:
        while True:
            if self._is_helped:  # another thread resolves them: two would wake for each other
                self._is_helped = False
                sleep(_HELPED_S)
                continue
            with self._changed:
                if not self.waiting and not self._changed.wait_for(lambda: self.waiting, _STAYS_S):
                    self._has_thread = False
                    return
                count = len(self.waiting) - 1
            self._help(count)

    def _resolve(self, up_to: int | None, history: History) -> None:
        """Resolve those up to an index, and those of another history, or whose time is up."""
        last = -1 if up_to is None else up_to
        while True:
            with self._lock:
                whole = [*filter(self._new_future.end, self._taken(last, history))]
            for future in whole:
                future.report()
            due = self._due(history)
            if due is None:
                return
            self._fail(due)

    def _due(self, history: History) -> Acknowledgement | None:
        """Return the one with the lowest index if nothing it waits for can come."""
        with self._lock:
            first = self.waiting[0] if self.waiting else None
        if first is None or (first.history == history and first.deadline_s > monotonic()):
            return None
        return first

    def _taken(self, up_to: int, history: History) -> Iterator[Acknowledgement]:
        """Take those up to an index from the line."""
        waiting = self.waiting
        while waiting and waiting[0].index <= up_to and waiting[0].history == history:
            yield waiting.popleft()

    def _fail(self, late: Acknowledgement) -> None:
        error: Exception | None = None  # none if it was acknowledged in the last moment
        try:
            self._appender._wait_for(  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                late.index,
                self._wait,
                timeout_s=0,
                history=late.history,
                waited_s=self._timeout_s,
            )
        except (QuireError, OSError) as found:
            error = found
        with self._lock:
            if not self.waiting or self.waiting[0] is not late:
                return  # another thread was faster
            self.waiting.popleft()
            self.error = self.error or error
            is_whole = late.end(error)
        if is_whole:
            late.report()

    def _fail_all(self, error: Exception) -> None:
        with self._lock:
            failed = [*self.waiting]
            self.waiting.clear()
            self.error = self.error or error
            whole = [it for it in failed if it.end(error)]
        for future in whole:
            future.report()


def _index_of(future: Acknowledgement) -> int:
    return future.index


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
        self._waiting, self._limit = self._line.waiting, limit
        self._appender = appender._without_wait()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def write_bytes(self, payload: Buffer, /) -> Future[int]:
        """Append bytes, as :meth:`quire.JournalAppender.write_bytes`."""
        history = self._make_room()
        return self._added(self._appender.write_bytes(payload), history)

    def write_text(self, text: str, /) -> Future[int]:
        """Append text, as :meth:`quire.JournalAppender.write_text`."""
        history = self._make_room()
        return self._added(self._appender.write_text(text), history)

    def write_map(self, values: Mapping[str, Value], /) -> Future[int]:
        """Append named values, as :meth:`quire.JournalAppender.write_map`."""
        history = self._make_room()
        return self._added(self._appender.write_map(values), history)

    def write_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> Future[int]:
        """Append an object, as :meth:`quire.JournalAppender.write_message`."""
        history = self._make_room()
        appended = self._appender.write_message(message, cls, typed=typed)
        return self._added(appended, history)

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
        self._line.reduce(0)
        if self._line.error is not None:
            raise self._line.error

    def _added(self, appended: int, history: History) -> Future[int]:
        """Return the future of a message that was appended in a history."""
        return self._line.add(appended, history)

    def _make_room(self) -> History:
        """
        Wait for half of the messages if as many are under way as may be.

        Returns the history to append in, which has to be known before the append.
        """
        if len(self._waiting) >= self._limit:
            self._line.reduce(self._limit // 2)
        return self._line.current_history()
