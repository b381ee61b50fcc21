"""A queue that is served: one handle for all clients, its appender and its tailers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from quire._common.file_identity import Identity, identity_at, identity_of
from quire._native import Tailer
from quire.errors import LockTimeoutError, ReadOnlyError, UnsupportedError
from quire.formats.adapters import (
    adapter_of,
    count_of,
    cycles_of,
    journal_of,
    numbering_of,
    tailer_of,
)
from quire.formats.columns import Columns
from quire.formats.protocols import AnyTailer
from quire.handles.base import Queue
from quire.handles.journal.appender import JournalAppender
from quire.handles.journal.replicas import replicas_of
from quire.ranges.seek import NO_INDEX, first_from
from quire.server.answers import Encoded, encoded

if TYPE_CHECKING:
    from concurrent.futures import Future

    from quire.handles.journal.acknowledgement import History
    from quire.handles.journal.acknowledging import Wait
    from quire.handles.journal.replicas import Replica
    from quire.server.answers import Answer

_State: TypeAlias = tuple[int, int, int, int]
"""The device, inode, size and time of change of a file."""
_Asked: TypeAlias = tuple[int, int, int, int]
_TAILERS: Final = 32
_KEPT_S: Final = 10.0
"""How long a tailer is kept for a client that may continue to read."""
_BATCH: Final = 4096
_LONGEST: Final = 2**30 - 1
_SYNCED: Final = 8
_LOOK_S: Final = 0.2
_SHARED_S: Final = 0.1
"""How long clients at one place share a read: the queue's end may be cut off and replaced."""
_SHARED_BYTES: Final = 1 << 16


class ServedQueue:
    """
    A queue, opened once for all clients.

    Args:
        topic: Its name.
        queue: Its handle, which this object closes.

    Attributes:
        users: What else keeps it open, beside commands and clients.

    """

    def __init__(self, topic: str, queue: Queue) -> None:
        self.topic, self.queue = topic, queue
        self.numbering = numbering_of(queue)
        self.journal = journal_of(queue)
        self._appender: Any = None
        self._tailers: dict[int, tuple[AnyTailer, float]] = {}
        """A tailer for each place where a client may continue to read, and its time limit."""
        self._latest: tuple[_Asked, Columns, float] | None = None
        self._answer: tuple[Columns, object, Encoded] | None = None
        self._news: AnyTailer | None = None
        self._finished: dict[int, tuple[_State, int]] = {}
        self.users: set[object] = set()
        self._identity, self._looked_s = _identity(queue), time.monotonic()

    def is_in_place(self) -> bool:
        """Return whether its directory is still in place; this is checked now and then."""
        now_s = time.monotonic()
        if now_s - self._looked_s < _LOOK_S:
            return True
        self._looked_s = now_s
        return _identity(self.queue) == self._identity

    @property
    def format(self) -> str:
        """The name of its format."""
        return adapter_of(self.queue).name

    @property
    def end_index(self) -> int:
        """The index after the last message; 0 if there is none."""
        last = self.queue.last_index
        return 0 if last is None else last + self.numbering.step

    def append(self, message: bytes, *, may_wait: bool) -> int | None:
        """
        Append a message and return its index; None if it would have to wait but may not.

        Raises:
            ReadOnlyError: The queue is only read.

        """
        appender = self._opened_appender()
        if may_wait or not isinstance(appender, JournalAppender):
            return cast("int", appender.write_bytes(message))
        return self._at_once(appender, lambda: appender.write_bytes(message))

    @property
    def together(self) -> int:
        """How many waiting appends have threads at once: a sync serves several, a lock one."""
        appender = self._opened_appender()
        waits_for_disk = isinstance(appender, JournalAppender) and appender._waits_for_disk  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return _SYNCED if waits_for_disk else 1

    @staticmethod
    def _at_once(appender: JournalAppender, write: Callable[[], int | None]) -> int | None:
        """Append unless the append would have to wait."""
        if appender._waits_for_disk:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            return None
        try:
            return appender._without_waiting(write)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        except LockTimeoutError:
            return None

    def append_columns(
        self, offsets: bytes, data: bytes, count: int, *, may_wait: bool
    ) -> int | None:
        """
        Append messages that lie in a column; return the index of the last.

        None if it would have to wait but may not.

        Raises:
            ReadOnlyError: The queue is only read.
            ValueError: The offsets are outside the data, or a message is empty.

        """
        appender = self._opened_appender()
        write = appender._write_column  # noqa: SLF001
        column = partial(write, offsets, data, count=count, start=0, wide=False)
        if not isinstance(appender, JournalAppender):
            return cast("int | None", column())
        if may_wait:
            return cast("int | None", column(text=False))
        return self._at_once(appender, lambda: column(text=False))

    def append_metadata(self, documents: Sequence[bytes]) -> None:
        """
        Append metadata documents, which may wait.

        Raises:
            UnsupportedError: Queues of the format have no metadata.
            ReadOnlyError: The queue is only read.

        """
        appender = self._opened_appender()
        if not isinstance(appender, JournalAppender):
            raise UnsupportedError(f"a {self.format} queue has no metadata: name={self.topic}")
        for content in documents:
            with appender.writing_document(metadata=True) as document:
                document.write_bytes(content)

    def sync(self) -> None:
        """Return once all appended messages are on the medium."""
        adapter_of(self.queue).sync(self._opened_appender())

    def check_wait(self, wait: Wait) -> History:
        """
        Check that replicas can acknowledge appends; return the history of these appends.

        Raises:
            ReplicationError: The queue is not replicated.
            UnsupportedError: Queues of the format cannot be replicated.

        """
        history = self._journal_appender()._check_wait(wait)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return cast("History", history)

    def when_acknowledged(self, index: int, wait: Wait, history: History) -> Future[Answer]:
        """Return a future of an index, resolved once replicas have its message of a history."""
        found = self._journal_appender()._when_acknowledged(index, wait, history)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return cast("Future[Answer]", found)

    def reached(self, wait: Wait) -> tuple[int | None, History]:
        """Return the last index that n replicas have, or None, and its history."""
        return self._journal_appender()._replica_states().reached(wait)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def replicas(self) -> list[Replica]:
        """
        Return the replicas, with what each has acknowledged.

        Raises:
            UnsupportedError: Queues of the format have no replicas.

        """
        if self.journal is None:
            raise UnsupportedError(f"a {self.format} queue has no replicas: name={self.topic}")
        return replicas_of(self.journal)

    @property
    def wait_ms(self) -> int:
        """How many milliseconds appends wait for replicas at most."""
        return round(1000 * self._journal_appender()._timeout_s)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _journal_appender(self) -> JournalAppender:
        appender = self._opened_appender()
        if not isinstance(appender, JournalAppender):
            raise UnsupportedError(f"a {self.format} queue has no replicas: name={self.topic}")
        return appender

    def read_documents(
        self, start: int, past: int, count: int, max_bytes: int
    ) -> list[tuple[int, bool, bytes]]:
        """
        Return messages and metadata from an index on: index, whether it is metadata, and bytes.

        Raises:
            UnsupportedError: Queues of the format have no metadata.

        """
        if self.journal is None:
            raise UnsupportedError(f"a {self.format} queue has no metadata: name={self.topic}")
        found: list[tuple[int, bool, bytes]] = []
        size = 0
        with self._tailer_at(start) as tailer:
            while len(found) < count and size < max_bytes:
                with cast("Tailer", tailer).reading_document(include_metadata=True) as document:
                    if not document.is_present or document.index >= past:
                        break
                    content = bytes(document.bytes)
                    if document.is_metadata or document.index >= start:
                        found.append((document.index, document.is_metadata, content))
                        size += len(content)
        return found

    def _opened_appender(self) -> Any:  # noqa: ANN401 - of the format
        if self._appender is None:
            if self.queue.read_only:
                raise ReadOnlyError(f"the queue is only read here: name={self.topic}")
            self._appender = self.queue.appender()
        return self._appender

    def indexes(self, last: int, count: int) -> list[int]:
        """Return the indexes of messages that were appended together; a roll may lie between."""
        numbering = self.numbering
        found: list[int] = []
        cycle, past = numbering.to_cycle(last), numbering.to_sequence(last) + 1
        while True:
            first = max(0, past - (count - len(found)))
            found[:0] = [numbering.to_index(cycle, it) for it in range(first, past)]
            if len(found) == count:
                return found
            cycle = max(it for it in cycles_of(self.queue) if it < cycle)
            past = count_of(self.queue, cycle)

    def read(self, start: int, past: int, count: int, max_bytes: int) -> Columns:
        """
        Return the messages of a range of indexes; none if there are none yet.

        Args:
            start: The first index of the range; no message need have it.
            past: Only messages before this index.
            count: How many at most.
            max_bytes: How many bytes in total at most, unless a single message is longer.

        """
        asked = (start, past, count, max_bytes)
        columns = self._shared(asked)
        if columns is not None:
            return columns
        columns = self._read(start, past, count, max_bytes)
        if len(columns) and columns.indexes[0] < start:  # the start is after the end
            columns = columns.part(columns_before(columns, start), len(columns))
        if len(columns):
            self._latest = asked, columns, time.monotonic() + _SHARED_S
        return columns

    def _shared(self, asked: _Asked) -> Columns | None:
        """Return the last read if the same is requested again and no message has come since."""
        latest = self._latest
        if latest is None or latest[0] != asked or latest[2] < time.monotonic():
            return None
        columns = latest[1]
        is_all = self.queue.last_index == columns.indexes[-1]
        return columns if is_all and self._is_kept(columns) else None

    def _is_kept(self, columns: Columns) -> bool:
        """Return whether the cycle of the first of these messages still exists."""
        cycles = cycles_of(self.queue)
        return bool(cycles) and cycles[0] <= self.numbering.to_cycle(columns.indexes[0])

    def _read(self, start: int, past: int, count: int, max_bytes: int) -> Columns:
        (tailer, _), columns = self._tailers.pop(start, (None, 0.0)), Columns.empty()
        if tailer is not None:
            columns = Columns.read(tailer, count, max_bytes=max_bytes, end=past)
        if tailer is not None and len(columns) and not self._is_kept(columns):
            tailer.close()  # it reads on in a file that is still mapped
            tailer = None
        if tailer is None:
            tailer = self._tailer_at(start)
            columns = Columns.read(tailer, count, max_bytes=max_bytes, end=past)
        self._keep(columns.indexes[-1] + 1 if len(columns) else start, tailer)
        return columns

    def answer(self, columns: Columns, form: object, make: Callable[[], Answer]) -> Answer:
        """
        Return the answer with these messages; clients that wait for them share a short one.

        Args:
            columns: The messages, as :meth:`read` returned them.
            form: Identifies the form of the answer.
            make: Makes the answer, which must be the same in RESP2 and RESP3.

        """
        if len(columns.data) > _SHARED_BYTES:
            return make()
        known = self._answer
        if known is None or known[0] is not columns or known[1] != form:
            known = self._answer = columns, form, Encoded(encoded(make(), 2))
        return known[2]

    def _tailer_at(self, start: int) -> AnyTailer:
        tailer = self.new_tailer()
        if start:
            index = first_from(self.queue, start)
            index = self.end_index if index == NO_INDEX else index
            if index:
                tailer.move_to_index(index)
        return tailer

    def _keep(self, following: int, tailer: AnyTailer) -> None:
        if (known := self._tailers.pop(following, None)) is not None:
            known[0].close()
        self._tailers[following] = tailer, time.monotonic() + _KEPT_S
        while len(self._tailers) > _TAILERS:
            self._tailers.pop(next(iter(self._tailers)))[0].close()

    def forget_places(self, now_s: float = math.inf) -> None:
        """Close the tailers kept for clients that may continue to read: they keep files in use."""
        for place, (_, until_s) in self._tailers.copy().items():
            # What a thread has taken meanwhile is not there any more.
            if until_s <= now_s and (kept := self._tailers.pop(place, None)) is not None:
                kept[0].close()

    def new_tailer(self) -> AnyTailer:
        """Return a tailer at the first message that skips deleted cycles."""
        if self.journal is not None:
            return Tailer(self.journal, on_missing="skip")
        return tailer_of(self.queue)

    def read_backward(self, start: int, past: int, count: int, max_bytes: int) -> list[Columns]:
        """
        Return the last messages of a range; the last of the columns are the newest.

        Raises:
            UnsupportedError: The range has more messages than can be searched.

        """
        found: list[Columns] = []
        last = self.queue.last_index
        if last is None:
            return found
        step = self.numbering.step
        low, high, missing, size = past, min(past, last + step), count, 0
        cycles = [it for it in cycles_of(self.queue) if it <= self.numbering.to_cycle(high)]
        for cycle in reversed(cycles):
            base = self.numbering.to_index(cycle, 0)
            end = self.numbering.to_index(cycle, count_of(self.queue, cycle))
            high = min(past, end)
            while high > max(base, start) and missing > 0:
                low = max(base, start, high - min(missing, _BATCH) * step)
                columns = self.read(low, high, _BATCH, max_bytes)
                size += len(columns.data)
                if size > max_bytes or self._has_more(columns, high, max_bytes):
                    raise UnsupportedError("the answer is too long")
                columns = columns.part(max(0, len(columns) - missing), len(columns))
                found.insert(0, columns)
                missing, high = missing - len(columns), low
            if base <= start or missing <= 0:
                break
        return found

    def _has_more(self, columns: Columns, past: int, max_bytes: int) -> bool:
        """Return whether messages before an index were left out because they were too long."""
        if not len(columns) or columns.indexes[-1] + self.numbering.step >= past:
            return False
        return len(self.read(columns.indexes[-1] + 1, past, 1, max_bytes)) > 0

    def read_last(self, start: int, past: int, count: int, max_bytes: int) -> Columns:
        """Return the last messages of a range, like :meth:`read` the first."""
        while True:
            try:
                parts = self.read_backward(start, past, count, max_bytes)
            except UnsupportedError:
                if count == 1:
                    parts = self.read_backward(start, past, 1, _LONGEST)
                    return Columns.joined(parts)
                count = max(1, count // 8)
            else:
                return Columns.joined(parts)

    def count(self, start: int, past: int, limit: int) -> int:
        """Return how many messages there are in a range, up to a limit."""
        return len(self.read(start, past, limit, 2**31 - 1))

    def index_from(self, start: int) -> int:
        """Return the index of the first message at or after an index."""
        return first_from(self.queue, start)

    def cycle_counts(self) -> dict[int, int]:
        """Return how many messages each cycle has; finished ones are counted once."""
        cycles, before = cycles_of(self.queue), self._finished
        counts, finished = dict[int, int](), dict[int, tuple[_State, int]]()
        for cycle in cycles:
            state = None if cycle == cycles[-1] else self._state(cycle)
            known = before.get(cycle)
            is_known = known is not None and known[0] == state
            count, is_finished = (known[1], True) if known and is_known else self._counted(cycle)
            counts[cycle] = count
            if is_finished and state is not None:
                finished[cycle] = state, count
        self._finished = finished
        return counts

    def _counted(self, cycle: int) -> tuple[int, bool]:
        """Return how many messages a cycle has, and whether its end marker follows them."""
        if self.journal is None:
            return count_of(self.queue, cycle), False
        _, count, is_finished = self.journal.end_of_cycle(cycle) or (0, 0, False)
        return count, is_finished

    def _state(self, cycle: int) -> _State | None:
        """Return facts that change with a cycle's file; None if a cycle is not a single file."""
        if self.journal is None:
            return None
        try:
            found = os.stat(self.journal.file_for_cycle(cycle), follow_symlinks=False)  # noqa: PTH116 - quicker
        except OSError:
            return None
        return (*identity_of(found), found.st_size, found.st_mtime_ns)

    def cycles_to_keep(self, messages: int) -> int:
        """Return how many of the newest cycles are needed to hold a number of messages."""
        left, cycles = messages, cycles_of(self.queue)
        for number, cycle in enumerate(reversed(cycles), 1):
            left -= count_of(self.queue, cycle)
            if left <= 0:
                return number
        return len(cycles)

    def cycles_from(self, index: int) -> int:
        """Return how many of the newest cycles hold the messages from an index on."""
        first = self.numbering.to_cycle(index)
        return sum(it >= first for it in cycles_of(self.queue))

    def refresh(self) -> None:
        """Look for files that were removed."""
        adapter_of(self.queue).refresh(self.queue)

    @property
    def takes_many(self) -> bool:
        """Whether messages can be appended together, with indexes that follow one another."""
        return self.journal is not None

    @cached_property
    def longest(self) -> int:
        """The length of the longest message."""
        if self.journal is None:
            return _LONGEST  # what its appender refuses, it refuses before it writes
        return adapter_of(self.queue).longest(self.journal.block_bytes)

    @property
    def news(self) -> AnyTailer:
        """The tailer at the end of the queue that those who wait for messages sleep on."""
        if self._news is None:
            self._news = self.new_tailer()
        return self._news

    def close(self) -> None:
        """Close its handle, with all appenders and tailers."""
        self.queue.close()


def _identity(queue: Queue) -> Identity | None:
    if adapter_of(queue).leaves_path_free:
        return None
    return identity_at(queue.path, follow_links=False)


def columns_before(columns: Columns, index: int) -> int:
    """Return how many of some messages lie before an index."""
    return len(columns.until(index))
