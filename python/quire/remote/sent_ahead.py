"""Appends to a remote queue that do not wait for the answers to earlier ones."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

from quire.errors import (
    ClosedError,
    MessageTooLargeError,
    RefusedError,
    ServerLostError,
    ServerSilentError,
)
from quire.formats.columns import Columns
from quire.handles.journal.acknowledging import InFlight
from quire.remote import payloads
from quire.remote.connection import Connection
from quire.remote.payloads import Batch, Numbers

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from quire._native import Value
    from quire.handles.journal.acknowledgement import History
    from quire.handles.journal.acknowledging import Awaiting, Wait
    from quire.remote.link import RemoteLink

_WINDOW: Final = 512
"""The limit of unanswered appends: the server remembers the indexes of 1,024."""
_BYTES: Final = 1 << 20
_STAYS_S: Final = 1.0
_END: Final = 2**63 - 1


class _Sent:
    """A message, its number once it was sent, and the future of its index."""

    __slots__ = ("future", "message", "number")

    def __init__(self, message: bytes) -> None:
        self.message, self.number, self.future = message, 0, Future[int]()


class AheadAppender:
    """
    Appends in a thread, which sends messages as they are written.

    Args:
        queue: The open queue.
        note: Called with the index of each message.

    """

    def __init__(self, queue: RemoteLink, note: Callable[[int], object]) -> None:
        self._queue, self._note = queue, note
        self._connection = Connection(queue.server)
        self._numbers = Numbers()
        self._searched_from: int = self._connection.call("QUIRE.INFO", queue.topic)["end"]
        self._error: BaseException | None = None
        self._begin()
        _open.add(self)

    def _begin(self) -> None:
        """Start without messages; this process does not send those of its parent."""
        self._waiting: deque[_Sent] = deque()
        self._sent = self._unplaced = 0  # how many of those that wait: the first ones
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._wake).atexit = False  # what is left is sent then

    def write_text(self, text: str, /) -> Future[int]:
        """Queue text to be appended: see :meth:`write_bytes`."""
        return self._add(payloads.of_text(self._queue, text))

    def write_map(self, values: Mapping[str, Value], /) -> Future[int]:
        """Queue named values to be appended: see :meth:`write_bytes`."""
        return self._add(payloads.of_map(self._queue, values))

    def write_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> Future[int]:
        """Queue an object to be appended: see :meth:`write_bytes`."""
        return self._add(payloads.of_message(self._queue, message, cls, typed=typed))

    def write_bytes(self, payload: Buffer, /) -> Future[int]:
        """Queue bytes to be appended as a message; return a future of its index."""
        return self._add(payloads.of_bytes(self._queue, payload))

    def _add(self, message: bytes) -> Future[int]:
        limit: int = self._queue.facts["longest"]
        if len(message) > limit:
            raise MessageTooLargeError(
                f"the message is too long: length={len(message)} limit={limit}"
            )
        if self._connection.closed:
            raise ClosedError(f"the appender is closed: path={self._queue.url}")
        if self._numbers.are_inherited:
            self._start_again()
            self._begin()
        sent = _Sent(message)
        with self._changed:
            self._waiting.append(sent)
            if self._thread is not None:
                self._changed.notify_all()
                os.eventfd_write(self._wake, 1)
            else:
                run = threading.Thread(target=self._run, name="quire-sent-ahead", daemon=True)
                self._thread = run
                run.start()
        return sent.future

    @property
    def error(self) -> BaseException | None:
        """The first error of an append."""
        return self._error

    @property
    def count(self) -> int:
        """How many messages have no answer yet."""
        return len(self._waiting)

    def reduce(self, count: int) -> None:
        """
        Wait until at most this many messages are unanswered.

        In a callback of its own thread it returns at once.
        """
        if self._numbers.are_inherited or self._thread is threading.current_thread():
            return
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) <= count)

    def close(self) -> None:
        """Close it once all messages were answered. Idempotent."""
        self.reduce(0)
        self._connection.close()

    def _start_again(self) -> None:
        """Start new numbers: the messages that follow are not retries of failed ones."""
        self._connection.drop()
        self._numbers.start_again()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and not self._changed.wait_for(
                    lambda: self._waiting, _STAYS_S
                ):
                    self._thread = None
                    return
            try:
                self._exchange()
            except BaseException as error:  # noqa: BLE001 - that of the futures
                self._fail(error)

    def _exchange(self) -> None:
        """Send messages and take the answers, until there are no more."""
        connection = self._connection
        ends = connection.deadline()
        while self._waiting:
            connection.ready(ends)
            try:
                self._send_more(ends)
                if self._take_answers(ends):
                    ends = connection.deadline()
            except ServerSilentError:
                raise
            except (ServerLostError, RefusedError) as error:
                connection.pause_after(error, ends)
                connection.drop()
                self._sent = self._unplaced  # what was not answered is sent again

    def _send_more(self, ends: float) -> None:
        fresh = self._first(_WINDOW)[self._sent :]
        while fresh:
            commands, size = list[bytes](), 0
            while fresh and size < _BYTES:
                sent = fresh.pop(0)
                if not sent.number:
                    sent.number = self._numbers.take()
                batch = Batch(sent.number, *payloads.pack_of(sent.message))
                commands.append(batch.command(self._queue.topic, self._numbers.client))
                size += len(commands[-1])
                self._sent += 1
            self._connection.send(b"".join(commands), ends)

    def _first(self, count: int) -> list[_Sent]:
        """Return the first of the waiting messages; other threads add to them meanwhile."""
        with self._changed:
            return [*islice(self._waiting, count)]

    def _take_answers(self, ends: float) -> bool:
        """Take the answers once there is one, or a message to send; return whether any came."""
        connection = self._connection
        had_any = not connection.wait(ends - monotonic(), self._wake)
        if had_any:
            self._take(connection.receive(ends))  # an error, unless it came in the last moment
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        while self._sent > self._unplaced:
            is_there, index = connection.poll()
            if not is_there:
                return had_any
            self._take(index)
            had_any = True
        return had_any

    def _take(self, index: int | None) -> None:
        """Take an answer; None: the server has forgotten the index of the appended message."""
        if index is None:
            self._unplaced += 1
            if self._unplaced == self._sent:
                self._place(_END)
            return
        self._place(index)
        self._resolve(index)

    def _resolve(self, index: int | None, error: BaseException | None = None) -> None:
        """Report the index of the first waiting message, or why it has none."""
        sent = self._waiting[0]
        if index is None:
            self._error = self._error or error
            sent.future.set_exception(error)
        else:
            self._searched_from = index + 1
            self._note(index)
            sent.future.set_result(index)
        with self._changed:
            self._waiting.popleft()
            self._sent = max(0, self._sent - 1)
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        """Report an error to all waiting messages: it is unknown whether they are in the queue."""
        self._start_again()
        self._unplaced = 0
        for _ in range(len(self._waiting)):
            self._resolve(None, error)

    def _place(self, past: int) -> None:
        """Look for messages with forgotten indexes, before the index of a later one."""
        count, self._unplaced = self._unplaced, 0
        if not count:
            return
        found = self._found([it.message for it in self._first(count)], past)
        for _ in range(count):
            lost = ServerLostError(
                "the message was appended, but its index is not known any more:"
                f" queue={self._queue.url}"
            )
            self._resolve(next(found, None), lost)

    def _found(self, messages: list[bytes], past: int) -> Iterator[int]:
        """Yield the indexes of messages that are found in the queue in this order."""
        start, wanted = self._searched_from, deque(messages)
        while wanted:
            words = ("QUIRE.READ", self._queue.topic, "FROM", start, "TO", past, "PACKED")
            start, *buffers = self._queue.ask(*words)
            columns = Columns.of(*buffers)
            if not len(columns):
                return
            for row, index in enumerate(columns.indexes):
                if wanted and bytes(columns.payload(row)) == wanted[0]:
                    wanted.popleft()
                    yield index


class RemoteInFlight(InFlight):
    """
    Messages in flight to a server and its replicas, from :meth:`RemoteAppender.in_flight`.

    Args:
        appender: The appender of the messages.
        ahead: The thread that appends them.
        limit: How many may be in flight.
        wait: The replicas that each message waits for.
        timeout_s: How long each may take, once the server has it.

    """

    def __init__(
        self,
        appender: Awaiting,
        ahead: AheadAppender,
        limit: int,
        wait: Wait,
        timeout_s: float | None,
    ) -> None:
        super().__init__(appender, limit, wait, timeout_s)
        self.ahead = ahead
        self._appender = cast("Awaiting", ahead)

    def _added(self, appended: Any, history: History) -> Future[int]:  # noqa: ANN401 - a future of an index
        outcome = Future[int]()
        outcome.set_running_or_notify_cancel()  # a message on its way cannot be called back

        def acknowledged(done: Future[int]) -> None:
            if (error := done.exception()) is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(done.result())

        def answered(done: Future[int]) -> None:
            if done.exception() is not None:
                acknowledged(done)
                return
            self._line.add(done.result(), history).add_done_callback(acknowledged)

        appended.add_done_callback(answered)
        return outcome

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for all, and raise the first error; after an exception, only for the server."""
        self.ahead.reduce(0)
        if error is None and self.ahead.error is not None:
            self._line.reduce(0)
            raise self.ahead.error
        super().__exit__(kind, error, trace)

    def _make_room(self) -> History:
        """If the limit is reached, wait for half of the messages."""
        if len(self._line.waiting) + self.ahead.count >= self._limit:
            half = self._limit // 2
            self.ahead.reduce(half)
            self._line.reduce(max(0, half - self.ahead.count))
        return self._line.history  # nothing is asked before an append that is sent ahead


_open: Final[weakref.WeakSet[AheadAppender]] = weakref.WeakSet()


@atexit.register
def _send_all() -> None:
    """Send the remaining messages when the program ends."""
    for it in [*_open]:
        it.reduce(0)
