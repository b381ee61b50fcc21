"""Appenders of remote queues."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import accumulate
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from weakref import WeakSet

from quire import _native
from quire.errors import (
    ClosedError,
    QuireError,
    RefusedError,
    ServerLostError,
    ServerSilentError,
    UnsupportedError,
    WaitTimeoutError,
)
from quire.formats.missing import Handle
from quire.formats.remote import AnyRemoteAppender
from quire.handles.base import Appender
from quire.handles.journal.acknowledging import Acknowledging
from quire.handles.journal.subtopics import Topic
from quire.handles.wire_writing import WireWriting
from quire.remote import payloads
from quire.remote.connection import Connection
from quire.remote.handle_thread import HandleThread
from quire.remote.lacking import FORMAT, REASONS
from quire.remote.payloads import Batch, Numbers
from quire.remote.replica_waits import SLICE_S, RemoteStates, reached, replicas_word
from quire.remote.sent_ahead import AheadAppender, RemoteInFlight

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from quire._native import Value, WriteDocument
    from quire.calls.method_writer import Filter
    from quire.handles.journal.acknowledgement import History
    from quire.handles.journal.acknowledging import InFlight, Wait
    from quire.remote.link import RemoteLink

_T = TypeVar("_T")

_COUNT: Final = 32_768
_BYTES: Final = 1 << 20
_WINDOW: Final = 8
_GAP: Final = "GAP "
"""The code of an append that leaves a gap in the client's numbers."""


class RemoteAppender(WireWriting, Appender, Acknowledging, AnyRemoteAppender, Handle):
    """
    Writes messages at the end of a remote queue, from :meth:`RemoteQueue.appender`.

    Each write returns once the server has answered. If the connection is lost, the write is sent
    again on a new one, with the same append id, so that each message is appended once. Calls from
    several threads are serialised.

        with quire.open("quire://127.0.0.1:7000/orders") as queue:
            index = queue.appender().write_text("hello")
    """

    _format, _missing = FORMAT, REASONS
    _slice_s = SLICE_S

    def __init__(
        self, queue: RemoteLink, limit: int | None = None, wait: Wait | None = None
    ) -> None:
        self._queue = queue
        self._connection = Connection(queue.server)
        self._lock = RLock()
        self._numbers = Numbers()
        self._was_silent = False
        self._last: int | None = None
        self._thread = HandleThread("quire-remote-appender")
        self._limit = limit
        self._slots: Any = None
        self._wait = wait
        self._longest_waits: dict[str, float] = {}
        self._aheads: WeakSet[AheadAppender] = WeakSet()
        self._waits(None)

    @property
    def path(self) -> str:
        """The address of the queue."""
        return self._queue.url

    @property
    def closed(self) -> bool:
        """Whether the appender was closed."""
        return self._connection.closed

    def close(self) -> None:
        """Close it. Idempotent."""
        for ahead in [*self._aheads]:
            ahead.close()
        self._connection.close()
        self._thread.close()

    @property
    def is_wire(self) -> bool:
        """Whether the queue's messages are BinaryWire."""
        return self._queue.is_wire

    @property
    def longest(self) -> int:
        """The length of the longest message that the queue accepts."""
        return self._limits[0]

    @property
    def last_index_appended(self) -> int | None:
        """The index of the last message that this appender wrote; None before the first."""
        return self._last

    def write_bytes(self, payload: Buffer, /, *, wait: Wait | None = None) -> int:
        """
        Append bytes as a message; return its index.

        Args:
            payload: The bytes.
            wait: Return once ``"any"`` replica, ``"all"`` members of the in-sync set, or a given
                number of them have the message.

        Raises:
            WaitTimeoutError: Replicas did not acknowledge the message in time; it stays in the
                queue.
            ReplicationError: The queue is not replicated.

        """
        waits = self._waits(wait)
        found = self._append(
            iter([payloads.pack_of(payloads.of_bytes(self._queue, payload))]), waits
        )
        if found is None:
            raise ServerLostError(
                "the message was appended, but the server has forgotten its"
                f" index: queue={self.path}"
            )
        return found

    def write_text(self, text: str, /, *, wait: Wait | None = None) -> int:
        """Append text as a message; return its index."""
        return self.write_bytes(payloads.of_text(self._queue, text), wait=wait)

    def write_map(self, values: Mapping[str, Value], /, *, wait: Wait | None = None) -> int:
        """Append named values: see :meth:`quire.JournalAppender.write_map`."""
        return self.write_bytes(payloads.of_map(self._queue, values), wait=wait)

    def write_message(
        self,
        message: object,
        cls: type | None = None,
        /,
        *,
        typed: bool = False,
        wait: Wait | None = None,
    ) -> int:
        """Append an object: see :meth:`quire.JournalAppender.write_message`."""
        data = payloads.of_message(self._queue, message, cls, typed=typed)
        return self.write_bytes(data, wait=wait)

    def write_yaml(self, text: str, *, wait: Wait | None = None) -> int:
        """Append the message that *text* stands for (:func:`quire.types.parse_yaml`)."""
        self._queue.need_wire("write_yaml")
        return self.write_bytes(_native.parse_yaml(text), wait=wait)

    def write_json(self, text: str, *, wait: Wait | None = None) -> int:
        """Append the message that *text* stands for (:func:`quire.types.parse_json`)."""
        self._queue.need_wire("write_json")
        return self.write_bytes(_native.parse_json(text), wait=wait)

    def write_many(self, payloads: Iterable[Buffer], /, *, wait: Wait | None = None) -> int | None:
        """
        Append each payload; None if there are none.

        They are sent in batches, up to eight at a time; *wait* applies to the last message.
        """
        return self._append(_packs(self._queue, payloads), self._waits(wait))

    def topic(self, key: Any, *, event: str = "to") -> Topic:  # noqa: ANN401 - any value
        """Return a writer of messages that begin with a routing key."""
        self._queue.need_wire("topic")
        appender: Any = self
        return Topic(appender, key, event)

    def method_writer(  # noqa: PLR0913 - by keywords
        self,
        interface: Callable[..., _T],
        *more: Callable[..., Any],
        record_history: bool | None = None,
        history_form: Literal["packed", "fields"] = "packed",
        metadata: bool = False,
        document: WriteDocument | None = None,
        filter: Filter | None = None,  # noqa: A002 - its name as a keyword
    ) -> _T:
        """Return an object whose calls become messages, as a local appender does."""
        from quire.calls.method_writer import method_writer
        from quire.types import names_around

        self._queue.need_wire("method_writer")
        return method_writer(
            self,
            interface,
            more,
            record_history=record_history,
            history_form=history_form,
            metadata=metadata,
            document=document,
            filter=filter,
            names=names_around(),
        )

    def writing_document(
        self, *, metadata: bool = False, wait: Wait | None = None
    ) -> WriteDocument:
        """
        Begin a message that is written value by value, and appended when the block ends.

        The message is built in the client and sent as a whole: nothing is locked meanwhile, and its
        index is not yet known. After an exception nothing is sent.

            with queue.appender().writing_document() as document:
                document.write("symbol", "EURUSD")

        Args:
            metadata: Write a metadata document, which readers skip. It is sent only once: if the
                connection is lost, it may or may not be in the queue.
            wait: How many replicas to wait for: see :meth:`write_bytes`.

        """
        self._queue.need_wire("writing_document")
        if metadata and wait is not None:
            raise ValueError(
                "a metadata document has no index that replicas could acknowledge: wait="
            )
        self._check_open()
        self._waits(wait)
        return _native.document_to_send(self, metadata=metadata, wait=wait)

    def _send(self, message: bytes, is_metadata: bool, wait: Wait | None) -> int:  # noqa: FBT001 - of the kernel
        if not is_metadata:
            return self.write_bytes(message, wait=wait)
        self._check_open()
        with self._lock:
            connection, ends = self._connection, self._connection.deadline()
            connection.ready(ends)
            words = ("QUIRE.APPEND", self._queue.topic, "METADATA", "VALUES", message)
            connection.ask(words, ends)
        return int(self._queue.info()["end"])

    def sync(self) -> None:
        """Wait until all appended messages are on the server's medium."""
        with self._lock:
            self._connection.call("QUIRE.SYNC", self._queue.topic)

    @property
    def _has_field_names(self) -> bool:
        return not self._queue.is_fieldless

    @property
    def _is_fieldless(self) -> bool:
        return self._queue.is_fieldless

    @property
    def _source_id(self) -> int:
        return self._queue.source_id

    @property
    def _limits(self) -> tuple[int, int]:
        facts = self._queue.facts
        return facts["longest"], facts.get("block_bytes", 0)

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"the appender is closed: path={self.path}")

    def _check_wait(self, wait: Wait | None, /) -> History | None:
        """
        Check *wait*, or that of the appender, as an append does beforehand.

        Returns the history in which the append would wait; None if it would not wait.
        """
        words = self._waits(wait)
        return reached(self._queue.ask, self._queue.topic, words[1])[1] if words else None

    def _waits(self, wait: Wait | None) -> tuple[str, ...]:
        """Return the words of a command that let the server wait for replicas, if it should."""
        asked = self._wait if wait is None else wait
        if asked is None:
            return ()
        how = replicas_word(asked)
        if how not in self._longest_waits:
            longest_ms: int = self._queue.ask("QUIRE.WAIT", self._queue.topic, how)
            self._longest_waits[how] = longest_ms / 1000
        return "WAIT", how

    @property
    def _timeout_s(self) -> float:
        """How long appends wait for replicas at most, as set at the server."""
        return max(self._longest_waits.values(), default=0.0)

    def _wait_for(
        self,
        index: int,
        wait: Wait | None,
        /,
        *,
        timeout_s: float | None = None,
        history: History | None = None,
        waited_s: float = 0.0,
    ) -> None:
        """Wait until replicas have the message of an index; None: for the server's timeout."""
        asked = self._wait if wait is None else wait
        if asked is None:
            return
        self._waits(asked)
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        with closing(self._replica_states()) as states:
            states.wait_until(index, asked, limit_s, history, waited_s)

    def _replica_states(self) -> RemoteStates:
        return RemoteStates(self._queue)

    def _new_flight(self, limit: int, wait: Wait, timeout_s: float | None) -> InFlight:
        self._check_open()
        made = RemoteInFlight(self, AheadAppender(self._queue, self._note), limit, wait, timeout_s)
        self._aheads.add(made.ahead)
        return made

    def _note(self, index: int) -> None:
        """Record the index of a message that was sent ahead."""
        self._last = index

    def _without_wait(self) -> RemoteAppender:
        """Return an appender of the same queue that waits for no replica."""
        return self if self._wait is None else RemoteAppender(self._queue)

    def _write_column(  # noqa: PLR0913 - those of the kernel
        self,
        offsets: Buffer,
        data: Buffer,
        *,
        count: int,
        start: int,
        wide: bool,
        text: bool = False,
        note: bytes | None = None,
    ) -> int | None:
        if note is not None:
            raise UnsupportedError(f"not supported in a {FORMAT}: metadata before a batch")
        places = memoryview(offsets).cast("B").cast("q" if wide else "i")[start : start + count + 1]
        content = memoryview(data)
        messages = (bytes(content[places[it] : places[it + 1]]) for it in range(count))
        if text:
            messages = (_native.text_bytes(it.decode()) for it in messages)
        return self._append(_packs(self._queue, messages))

    def _append(
        self, packs: Iterator[tuple[bytes, bytes]], waits: tuple[str, ...] = ()
    ) -> int | None:
        """Send batches, a few ahead of the answers; return the index of the last message."""
        self._check_open()
        if self._aheads:
            self._reduce_aheads()
        with self._lock:
            if self._numbers.are_inherited:
                self._start_again()
            try:
                return self._pipeline(packs, waits)
            except WaitTimeoutError as error:  # the messages are in the queue
                self._last = error.index
                raise
            except ServerSilentError:
                raise
            except BaseException:
                self._start_again()
                raise

    def _reduce_aheads(self) -> None:
        """Wait for the answers to messages that were sent ahead."""
        for ahead in [*self._aheads]:
            ahead.reduce(0)

    def _start_again(self) -> None:
        """Start new numbers: the messages that follow are not retries of failed ones."""
        self._connection.drop()
        self._numbers.start_again()
        self._was_silent = False

    def _pipeline(self, packs: Iterator[tuple[bytes, bytes]], waits: tuple[str, ...]) -> int | None:
        connection = self._connection
        topic = self._queue.topic
        waiting: deque[Batch] = deque()
        ends, last = connection.deadline(), None
        is_sent, pack = 0, next(packs, None)
        while pack is not None or waiting:
            connection.ready(ends)
            try:
                while pack is not None and len(waiting) < _WINDOW:
                    number = self._numbers.take(payloads.count_of(pack[0]))
                    waiting.append(Batch(number, *pack))
                    pack = next(packs, None)
                while is_sent < len(waiting):
                    is_last = pack is None and is_sent + 1 == len(waiting)
                    last_words = waits if is_last else ()
                    command = waiting[is_sent].command(topic, self._numbers.client, last_words)
                    connection.send(command, ends)
                    is_sent += 1
                if waits and pack is None:
                    ends = connection.deadline() + self._timeout_s
                if waiting:
                    last = connection.receive(ends)
                    waiting.popleft()
                    is_sent -= 1
                    ends = connection.deadline()
            except ServerSilentError:
                self._was_silent = True
                raise
            except (ServerLostError, RefusedError) as error:
                if not self._renumbered(error, waiting):
                    connection.pause_after(error, ends)
                connection.drop()
                is_sent = 0  # all that was not answered is sent again
        self._last = last if last is not None else self._last
        return last

    def _renumbered(self, error: QuireError, batches: Iterable[Batch]) -> bool:
        """
        Renumber batches if the server lacks messages that were sent while it was silent.

        They get another client id: requests that the server has not read yet may still arrive.
        """
        if not (self._was_silent and str(error).startswith(_GAP)):
            return False
        self._start_again()
        for batch in batches:
            batch.number = self._numbers.take(batch.count)
        return True

    # In event loops.

    async def awrite_bytes(self, payload: Buffer, /) -> int:
        """Append bytes without blocking the event loop; calls are served in their order."""
        return await self._awrite(lambda: self.write_bytes(payload))

    async def awrite_text(self, text: str, /) -> int:
        """Append text without blocking the event loop: see :meth:`awrite_bytes`."""
        return await self._awrite(lambda: self.write_text(text))

    async def awrite_map(self, values: Mapping[str, Value], /) -> int:
        """Append named values without blocking the event loop: see :meth:`awrite_bytes`."""
        return await self._awrite(lambda: self.write_map(values))

    async def awrite_message(
        self, message: object, cls: type | None = None, /, *, typed: bool = False
    ) -> int:
        """Append an object without blocking the event loop: see :meth:`awrite_bytes`."""
        return await self._awrite(lambda: self.write_message(message, cls, typed=typed))

    async def awrite_yaml(self, text: str) -> int:
        """Append YAML as values without blocking the event loop: see :meth:`awrite_bytes`."""
        return await self._awrite(lambda: self.write_yaml(text))

    async def awrite_json(self, text: str) -> int:
        """Append JSON as values without blocking the event loop: see :meth:`awrite_bytes`."""
        return await self._awrite(lambda: self.write_json(text))

    async def awrite_many(self, payloads: Iterable[Buffer], /) -> int | None:
        """Append many messages without blocking the event loop: see :meth:`awrite_bytes`."""
        return await self._awrite(lambda: self.write_many(payloads))

    async def awrite_batch(self, batch: Any, **options: Any) -> int | None:  # noqa: ANN401 - see write_batch
        """Append columns without blocking the event loop: see :meth:`awrite_bytes`."""
        return await self._awrite(lambda: self.write_batch(batch, **options))

    async def _awrite(self, write: Callable[[], _T]) -> _T:
        """Write in the appender's only thread, so that calls keep their order."""
        if self._limit is None:
            return await self._thread.run(write)
        from quire._common.slots import Slots

        if self._slots is None:
            self._slots = Slots(self._limit)
        async with self._slots.slot():
            return await self._thread.run(write)

    def __repr__(self) -> str:
        """Return the address."""
        return f"RemoteAppender({self.path!r}{', closed' if self.closed else ''})"


def _packs(queue: RemoteLink, messages: Iterable[Buffer]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the offsets and bytes of one batch after another."""
    items: list[Buffer] = []
    size = 0
    for payload in messages:
        length = len(payload) if isinstance(payload, bytes) else memoryview(payload).nbytes
        if length > _BYTES:
            payloads.check_length(queue, length)
            if items:  # a request has a limit, too
                yield _pack(items)
                items, size = [], 0
        items.append(payload)
        size += length
        if len(items) >= _COUNT or size >= _BYTES:
            yield _pack(items)
            items, size = [], 0
    if items:
        yield _pack(items)


def _pack(items: list[Buffer]) -> tuple[bytes, bytes]:
    parts = [it if isinstance(it, bytes) else bytes(it) for it in items]
    if not all(parts):
        raise ValueError("a message holds at least one byte: length=0")
    return array("i", accumulate(map(len, parts), initial=0)).tobytes(), b"".join(parts)
