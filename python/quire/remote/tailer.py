"""Tailers of remote queues: messages come in batches, and waiting is done at the server."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, TypeVar, cast, overload

from quire._common import arguments
from quire.errors import ClosedError, ServerLostError, ServerSilentError, WireError
from quire.formats.columns import Columns
from quire.formats.missing import Handle
from quire.handles.base import BATCH_BYTES, AnyExcerpt, Tailer
from quire.handles.wire_reading import WireReading
from quire.remote import payloads
from quire.remote.connection import Connection, packed
from quire.remote.documents import DocumentReading
from quire.remote.handle_thread import HandleThread
from quire.remote.lacking import FORMAT, REASONS
from quire.remote.reconnecting import BLOCK_MS, ReconnectingTailer

if TYPE_CHECKING:
    from datetime import date
    from types import TracebackType

    from quire._native import Buffer, Column, Plan, Table
    from quire.remote.link import RemoteLink
    from quire.remote.metadata import Documents

_T = TypeVar("_T")
_END: Final = 2**63 - 1
_COUNT: Final = 65_536
_BYTES: Final = 4 << 20
_MANY: Final = 4096
"""After a batch of this length the next one is requested at once."""
Direction: TypeAlias = Literal["forward", "backward", "none"]
_DIRECTION: Final = arguments.one_of("forward", "backward", "none")
_COUNTED: Final = arguments.whole(0, 2**64 - 1)
_INDEX: Final = arguments.whole(-(2**63), 2**63 - 1)


class RemoteTailer(ReconnectingTailer, WireReading, Tailer[AnyExcerpt], DocumentReading, Handle):
    """
    Reads messages of a remote queue, from :meth:`RemoteQueue.tailer`.

    Messages come in batches, and the next batch is requested while you read one. The position of a
    named tailer is in the queue's table, as for local tailers; it is stored with each batch, by
    :meth:`commit` and by :meth:`close`: after a crash, messages read since then are delivered
    again.

        with quire.open("quire://127.0.0.1:7000/orders") as queue, queue.tailer() as tailer:
            for message in tailer.follow():
                print(message.index, message.data)
    """

    _format, _missing = FORMAT, REASONS

    def __init__(
        self,
        queue: RemoteLink,
        handle: Any,  # noqa: ANN401 - the queue's, for searches
        name: str | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._queue, self._handle = queue, handle
        self._name, self._shared = name, shared
        self._topic_name = queue.topic
        server = queue.server
        self._connection = Connection(server, self._greet if name is not None else None)
        self._lock = RLock()
        self._thread = HandleThread("quire-remote-tailer")
        self._columns = Columns.empty()
        self._offsets: array[int] | memoryview = self._columns.offsets
        self._data = b""
        self._at, self._count = 0, 0
        self._position = self._before = 0
        self._last_read: int | None = None
        self._stored: int | None = None
        self._unfinished: int | None = None  # where the last read began
        self._is_amid = False  # a read goes on, and has delivered nothing
        self._is_asked = False
        self._direction: Direction = "forward"
        self._is_backward = False
        self._step = 1  # 0 without a direction
        self._follows: int | None = None  # what was read before the batch
        self._documents: Documents | None = None
        if name is not None:
            self._connection.ready(self._connection.deadline())

    def _greet(self, connection: Connection) -> None:
        words = ["QUIRE.TAILER", "OPEN", self._topic_name, self._name or ""]
        if self._shared:
            words.append("SHARED")
        found: int = connection.ask(words, connection.deadline())
        if self._stored is None:
            self._position = self._stored = found

    # Its state.

    @property
    def path(self) -> str:
        """The address of the queue."""
        return self._queue.url

    @property
    def name(self) -> str | None:
        """The name under which the position is stored; None without a name."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether the tailer was closed."""
        return self._connection.closed

    @property
    def index(self) -> int:
        """The index of the next message."""
        if self._at < self._count:
            return self._columns.indexes[self._at]
        return self._position or self._queue.info()["first"] or 0

    @property
    def last_read_index(self) -> int | None:
        """The index of the message that was read last; None before the first."""
        return self._last_read

    @property
    def direction(self) -> Direction:
        """
        The direction of reads: ``forward``, ``backward`` or ``none``. Can be set.

        With ``none``, each read returns the same message.

        Raises:
            ValueError: There is no such direction.

        """
        return self._direction

    @direction.setter
    def direction(self, value: Direction) -> None:
        _DIRECTION("direction", value)
        with self._lock:
            self._check_open()
            if self._is_backward != (value == "backward"):
                place = self._turning_place()
                self._is_backward = value == "backward"
                self._go(place)
            self._direction, self._step = value, int(value != "none")

    def _turning_place(self) -> int:
        """Return the index from which reads continue in the other direction."""
        if self._is_backward:
            self._fill()  # what comes next may lie in an earlier cycle
            return max(0, self.index)
        if 0 < self._at <= self._count:
            return self._columns.indexes[self._at - 1] + 1  # perhaps that of no message
        return self._before if self._at < self._count and self._before else self.index

    def close(self) -> None:
        """Close it; messages that a named tailer has delivered are finished. Idempotent."""
        self._unfinished = None
        self._leave()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it; after an exception, the last read is delivered again."""
        (self.close if exc_type is None else self._leave)()

    def _leave(self) -> None:
        """Close it; the last read of a named tailer stays unfinished."""
        if self.closed:
            return
        with self._lock:
            try:
                if self._name is not None and self._connection.is_connected:
                    self._keep_place()
                    self._ask("QUIRE.TAILER", "CLOSE", self._topic_name, self._name)
            except (ServerLostError, ConnectionError):
                pass  # the position is that of the last batch
            finally:
                self._connection.close()
                self._thread.close()

    def commit(self) -> None:
        """Store the position of a named tailer: delivered messages are finished."""
        with self._lock:
            self._unfinished = None
            self._keep_place()

    async def acommit(self) -> None:
        """Store the position of a named tailer without blocking the event loop."""
        await self._thread.run(self.commit)

    def _keep_place(self) -> None:
        with self._lock:
            self._forget_asked()
            index = max(0, self.index if self._unfinished is None else self._unfinished)
            self._ask("QUIRE.TAILER", "COMMIT", self._topic_name, self._name or "", index)
            self._stored = index

    # Batches.

    @property
    def _is_wire(self) -> bool:
        return self._queue.is_wire

    def _ask(self, *words: bytes | str | int) -> Any:  # noqa: ANN401 - whatever the server says
        self._check_open()
        with self._lock:
            self._forget_asked()
            return self._connection.call(*words)

    def _check_open(self) -> None:
        if self.closed or self._queue.closed:
            raise ClosedError(f"the tailer is closed: path={self.path}")

    def _request(self, block_ms: int | None, past: int = _END) -> bytes:
        words: list[bytes | str | int] = ["QUIRE.READ", self._topic_name, "FROM"]
        if self._is_backward:
            words += [0, "TO", self._position + 1, "COUNT", _MANY, "BYTES", _BYTES]
            words += ["LAST", "PACKED"]
            return packed(words)
        words += [self._position, "COUNT", _COUNT, "BYTES", _BYTES, "PACKED"]
        if past != _END:
            words += ["TO", past]
        if block_ms is not None:
            words += ["BLOCK", block_ms]
        return packed(words)

    def _take(self, answer: list[Any]) -> bool:
        """Store the messages of an answer; False if there are none."""
        following, indexes, offsets, data = answer
        columns = Columns.of(indexes, offsets, data)
        if self._is_backward:
            columns = columns.reversed()
            data = bytes(columns.data)
            following -= 1
        if self._at:
            self._follows, self._documents = self._read_before, None
        self._columns, self._before = columns, self._position
        self._offsets, self._data = columns.offsets, data
        self._at, self._count = 0, len(columns)
        if self._count:
            self._position = following
        return self._count > 0

    def _begin(self) -> None:
        """Request the next batch; the server answers when there is one."""
        connection = self._connection
        connection.ready(connection.deadline())
        connection.send(self._request(BLOCK_MS), connection.deadline())
        self._is_asked = True

    def _forget_asked(self) -> None:
        """End the pending request: the server answers when it receives the next command."""
        if self._is_asked:
            self._is_asked = False
            if self._connection.is_connected:
                connection, ends = self._connection, self._connection.deadline()
                try:
                    connection.send(packed(["PING"]), ends)
                    answer = connection.receive(ends)
                    connection.receive(ends)
                except ServerSilentError:
                    raise
                except ServerLostError:  # what was asked for is forgotten with the connection
                    return
                if self._at >= self._count:
                    self._take(answer)

    def _fill(self) -> bool:
        """Get the messages that exist now; False if there are none."""
        self._check_open()
        if self._at < self._count:
            return True
        self._store()
        if self._is_backward and self._position < 0:
            return False
        ends = self._connection.deadline()
        self._connection.repeated(lambda: self._get_batch(ends), ends)
        if self._count >= _MANY and self._name is None and not self._is_backward:
            self._begin()
        return self._at < self._count

    def _get_batch(self, ends: float) -> None:
        self._is_asked = self._is_asked and self._connection.is_connected
        self._connection.ready(ends)
        self._forget_asked()
        if self._at >= self._count:
            self._connection.send(self._request(None), ends)
            self._take(self._connection.receive(ends))

    def _store(self) -> None:
        """Store the position of a named tailer: messages that it delivered are finished."""
        if self._is_to_store():
            self.commit()

    def _is_to_store(self) -> bool:
        is_old = self._name is not None and max(0, self._position) != self._stored
        return is_old and not self._is_amid

    def _look(self) -> bool:
        """Request the next batch unless it was requested; return whether it has arrived."""
        if self._is_backward:
            return self._fill()
        while True:
            if not self._is_asked or not self._connection.is_connected:
                self._store()
                self._begin()
            is_there, answer = self._connection.poll()
            if not is_there:
                return False
            self._is_asked = False
            if self._take(answer):
                return True

    def _is_buffered(self) -> bool:
        """Return whether the next message is here."""
        self._check_open()
        return self._at < self._count

    def _needs_server(self) -> bool:
        return super()._needs_server() or self._is_to_store()

    def _reconnect(self) -> None:
        with self._lock:
            self._is_asked = self._is_asked and self._connection.is_connected
            self._connection.ready(self._connection.deadline())
            self._store()

    # Reading.

    def _next(self) -> tuple[int, bytes] | None:
        with self._lock:
            if self._at >= self._count and not self._fill():
                return None
            at = self._at
            self._at = at + self._step
            self._last_read = self._unfinished = index = self._columns.indexes[at]
            return index, self._data[self._offsets[at] : self._offsets[at + 1]]

    def read(self) -> AnyExcerpt | None:
        """Return the next message with its index; None if there is none yet."""
        found = self._next()
        return None if found is None else self._queue.excerpt(*found)

    def read_bytes(self) -> bytes | None:
        """Return the bytes of the next message; None if there is none yet."""
        found = self._next()
        return None if found is None else found[1]

    def read_text(self) -> str | None:
        """Return the next message as text; None if there is none yet."""
        with self._lock:
            excerpt = self.read()
            if excerpt is None:
                return None
            try:
                found = payloads.text_of(self._queue, excerpt)
            except WireError:
                self._return_to_message(excerpt.index)
                raise
            if found is None:
                self._return_to_message(excerpt.index)
                with self.reading_document() as document:
                    found = document.text()
                self._unfinished = excerpt.index
            return found

    def read_map(self) -> dict[str, Any] | None:
        """Return the named values of the next message; None if there is none yet."""
        self._queue.need_wire("read_map")
        found: dict[str, Any] | None = self._decoded_by(lambda excerpt: excerpt.to_dict())
        return found

    @overload
    def read_message(self, cls: type[_T], /) -> _T | None: ...
    @overload
    def read_message(self, cls: None = None, /) -> Any: ...  # noqa: ANN401 - of any class
    def read_message(self, cls: type[Any] | None = None, /) -> Any:
        """Return the next message as an object: see :meth:`quire.JournalTailer.read_message`."""
        self._queue.need_wire("read_message")
        return self._decoded_by(lambda excerpt: excerpt.to_message(cls))

    @overload
    def read_messages(self, cls: type[_T], count: int, /) -> list[_T]: ...
    @overload
    def read_messages(self, cls: None, count: int, /) -> list[Any]: ...
    def read_messages(self, cls: type[Any] | None, count: int, /) -> list[Any]:
        """Return at most *count* messages as objects."""
        found: list[Any] = []
        first: int | None = None
        with self._lock:
            try:
                while len(found) < count and (message := self.read_message(cls)) is not None:
                    first = self._last_read if first is None else first
                    self._is_amid = True
                    found.append(message)
            finally:
                self._is_amid = False
            self._unfinished = first
        return found

    def _decoded_by(self, decode: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - of any class
        """Decode the next message; if that fails, the position does not move."""
        with self._lock:
            excerpt = self.read()
            if excerpt is None:
                return None
            try:
                return decode(excerpt)
            except WireError:
                self._at -= self._step
                raise

    def __iter__(self) -> Self:
        """Iterate over the existing messages."""
        return self

    def __next__(self) -> AnyExcerpt:
        """Return the next message."""
        found = self.read()
        if found is None:
            raise StopIteration
        return found

    def read_many(self, count: int, /) -> list[bytes]:
        """Return the bytes of at most *count* messages."""
        _COUNTED("count", count)
        found: list[bytes] = []
        with self._lock:
            try:
                while len(found) < count and self._fill():
                    self._add_many(found, count)
                    self._is_amid = True
            finally:
                self._is_amid = False
        return found

    def _add_many(self, found: list[bytes], count: int) -> None:
        """Add messages of the batch until there are *count*."""
        if not self._step:
            found += [cast("bytes", self.read_bytes())] * (count - len(found))
            return
        past = min(self._count, self._at + count - len(found))
        places, data = [*self._offsets[self._at : past + 1]], self._data
        if not found:
            self._unfinished = self._columns.indexes[self._at]
        found += [data[a:b] for a, b in pairwise(places)]
        self._last_read = self._columns.indexes[past - 1]
        self._at = past

    def payloads(self) -> Iterator[bytes]:
        """Iterate over the bytes of the existing messages."""
        while (found := self.read_bytes()) is not None:
            yield found

    def _read_columns(
        self, count: int, /, *, max_bytes: int | None = None, end: int = _END
    ) -> tuple[int, Buffer, Buffer, Buffer]:
        with self._lock:
            columns = self._columns_of(count, BATCH_BYTES if max_bytes is None else max_bytes, end)
        buffers: Any = [memoryview(bytes(it)) for it in columns.buffers]
        return (len(columns), *buffers)

    def _columns_of(self, count: int, max_bytes: int, end: int) -> Columns:
        if not self._fill():
            return Columns.empty()
        if not self._step and self.index < end:
            return self._repeated(count, max_bytes)
        first, past = self._at, min(self._count, self._at + count)
        if not self._is_backward:
            past = first + len(self._columns.part(first, past).until(end))
        limit = self._offsets[first] + max_bytes
        while past > first + 1 and self._offsets[past] > limit:
            past -= max(1, (past - first) // 2) if self._offsets[past] > 2 * limit else 1
        if past > first:
            self._unfinished = self._columns.indexes[first]
            self._at, self._last_read = past, self._columns.indexes[past - 1]
        return self._columns.part(first, past)

    def _repeated(self, count: int, max_bytes: int) -> Columns:
        """Return the message at this place n times, as reads do without a direction."""
        one = self._columns.part(self._at, self._at + 1)
        self._last_read = one.indexes[0]
        return Columns.joined([one] * max(1, min(count, max_bytes // max(1, len(one.data)))))

    def _read_decoded(  # noqa: PLR0913 - those of the kernel
        self,
        plan: Plan,
        count: int,
        *,
        max_bytes: int,
        keep_misfits: bool = False,
        layout: str = "union",
        end: int = _END,
        payload: bool = False,
        topic: str | None = None,
    ) -> tuple[int, list[Table], Column | None, Column | None]:
        """Decode messages, like `quire._native.Tailer._read_decoded`."""
        options: dict[str, Any] = {"keep_misfits": keep_misfits, "layout": layout}
        options |= {"payload": payload, "topic": topic}
        _, indexes, *payloads = self._read_columns(count, max_bytes=max_bytes, end=end)
        try:
            return plan.decode(indexes, *payloads, **options)
        except WireError:
            self.move_to_index(memoryview(indexes).cast("Q")[0])
            raise

    # Places.

    def _go(self, index: int) -> None:
        with self._lock:
            self._check_open()
            self._forget_asked()
            self._at = self._count = 0
            self._follows = self._documents = self._unfinished = None
            self._position = index

    @property
    def _read_before(self) -> int | None:
        """The index of the message read just before this place; None after a move."""
        return self._columns.indexes[self._at - 1] if self._at else self._follows

    def move_to_index(self, index: int, /) -> bool:
        """Go to a message by its index; False if there is none, and no move without its cycle."""
        place: int = _INDEX("index", index)
        self._queue.check_index(place)
        if place < 0:
            return False
        with self._lock:
            before = self.index if self._at < self._count else self._position
            self._go(place)
            if self._fill() and self.index == place:
                return True
            if not self._queue.has_cycle_of(place):
                self._go(before)
            return False

    def to_start(self) -> None:
        """Go to the first message."""
        with self._lock:
            first = self._ask("QUIRE.INFO", self._topic_name)["first"] if self._is_backward else 0
            self._go(first or 0)

    def to_end(self) -> None:
        """Go after the last message; backward: to the last message."""
        with self._lock:
            facts = self._ask("QUIRE.INFO", self._topic_name)
            self._go((facts["last"] or 0) if self._is_backward else facts["end"])

    def _return_to_message(self, index: int) -> None:
        """Go back to a message that was read."""
        with self._lock:
            self._unfinished = None
            if self._at < self._count and self._columns.indexes[self._at] == index:
                return
            if 0 < self._at <= self._count and self._columns.indexes[self._at - 1] == index:
                self._at -= 1
            elif not self.closed:
                self._go(index)

    def move_to_time(self, time: date | float | str, *, time_field: str | None = None) -> bool:
        """Go to the first message not earlier than a time; return whether there is one."""
        from quire.ranges.event_time import epoch_ns_of

        time_ns = max(-_END, min(epoch_ns_of(time), _END))  # before or after all that there can be
        words: list[bytes | str | int] = ["TIME", time_ns]
        if time_field is not None:
            words += ["FIELD", time_field]
        with self._lock:
            self._go(self._ask("QUIRE.SEEK", self._topic_name, *words))
            return self._fill()

    def move_to(self, key: Any, *, by: str | Callable[[AnyExcerpt], Any]) -> bool:  # noqa: ANN401
        """Go to the first message whose key is not less than *key*, by binary search from here."""
        from quire.ranges.seek import first_by_key, move

        queue = self._handle
        return move(self, queue, lambda: first_by_key(queue, key, by))

    def __repr__(self) -> str:
        """Return the address and the name."""
        name = "" if self._name is None else f", name={self._name!r}"
        return f"RemoteTailer({self.path!r}{name}{', closed' if self.closed else ''})"
