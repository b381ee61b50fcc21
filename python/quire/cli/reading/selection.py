"""Which messages of a queue are shown: where to begin, what to let through, when to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import click

import quire
from quire._native import Tailer
from quire.formats.adapters import (
    adapter_of,
    count_of,
    cycles_of,
    end_index_of,
    journal_tailer_of,
    numbering_of,
    tailer_of,
)
from quire.formats.columns import Columns
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.formats.remote import AnyRemoteTailer
from quire.ranges.damage import Skipper

if TYPE_CHECKING:
    from quire.ranges.range import Point

BATCH: Final = 4_096
_REACHED: Final = "FOUND_IN_CYCLE"
_ANY: Final = 2**63 - 1

Rows: TypeAlias = Sequence[int]
Stage: TypeAlias = Callable[[Columns, Rows], tuple[Columns, Rows]]
"""Takes rows of a batch, and returns those that it lets through, of this batch or another."""


class Bounds(NamedTuple):
    """The range of a queue to show, its end exclusive; None leaves a side open."""

    start: int | None
    end: int | None
    last: int | None
    reverse: bool
    follow: bool
    metadata: bool

    def between(
        self, queue: AnyQueue, start: Point | None, end: Point | None, time_field: str | None
    ) -> Bounds:
        """
        Return these with two points of a queue as indexes.

        Raises:
            ValueError: The end lies before the start, or a time lies within a cycle.

        """
        if start is None and end is None:
            return self
        from quire.ranges.range import index_bounds

        first, past = index_bounds(queue, start, end, time_field)
        after = end_of(queue)
        is_past = first is not None and first >= after > 0
        if is_past and not isinstance(start, int) and not self.follow:
            return self._replace(end=0)  # a time that is still to come
        return self._replace(start=first, end=past)

    def within(self, first: int | None, past: int | None) -> Bounds:
        """Return these, narrowed to a range."""
        starts = [it for it in (self.start, first) if it is not None]
        ends = [it for it in (self.end, past) if it is not None]
        return self._replace(start=max(starts, default=None), end=min(ends, default=None))


class Selection:
    """
    The messages between two bounds that every stage lets through, batch by batch.

    Args:
        queue: The queue.
        tailer: Reads it; a named one moves on with what was taken.
        bounds: Where to begin and to end.
        stages: What each message must pass.
        limiter: What ends the output: it sees each message once, in the order of the output.
        is_named: Take one message at a time, so that only those taken count as read.
        skipper: Goes on after what cannot be read; None: that is an error.
        last_of_all: Whether the last messages are those of all, as with Java's reader.

    """

    def __init__(  # noqa: PLR0913 - what it works on
        self,
        queue: AnyQueue,
        tailer: AnyTailer,
        bounds: Bounds,
        stages: Sequence[Stage] = (),
        *,
        limiter: Stage | None = None,
        is_named: bool = False,
        skipper: Skipper | None = None,
        last_of_all: bool = False,
    ) -> None:
        """Go to the start of the range."""
        self._queue = queue
        self._tailer = tailer
        self._bounds = bounds
        self._stages = stages
        self._limiter = limiter
        self._last_of_all = last_of_all
        self._size = 1 if is_named else BATCH
        self._skipper = skipper
        self._end = end_of(queue)
        self._is_over = False  # nothing from the start on can be read
        if bounds.reverse:
            return
        if bounds.last is not None:
            self._go_back(bounds.last)
        elif bounds.start is not None:
            self._go_to(bounds.start)

    def batches(self) -> Iterator[tuple[Columns, Rows] | None]:
        """Yield batches with their chosen rows; None where there is nothing more yet."""
        return self._backward() if self._bounds.reverse else self._forward()

    def _forward(self) -> Iterator[tuple[Columns, Rows] | None]:
        past = self._past()
        while not self._is_over:
            batch = self._next() if self._may_have_more() else Columns.empty()
            if not len(batch):
                if not self._bounds.follow:
                    return
                yield None
                continue
            rows = _before(batch, past)
            chosen, passed = self._chosen(batch, rows)
            if passed:
                yield chosen, passed
            if len(rows) < len(batch):
                if not rows and self._size == 1:
                    self._tailer.move_to_index(batch.indexes[0])  # it was not shown
                return

    def _may_have_more(self) -> bool:
        """Return whether to read; where a server answers once there are messages, that it did."""
        tailer = self._tailer
        if self._bounds.follow and isinstance(tailer, AnyRemoteTailer):
            return tailer.spin(timeout_s=0)
        return True

    def _next(self) -> Columns:
        journal = journal_tailer_of(self._tailer) if self._bounds.metadata else None
        while True:
            try:
                return self._batch() if journal is None else _next_document(journal)
            except quire.errors.CorruptError as error:
                if self._skipper is None:
                    raise
                if not self._skipper.skip(self._tailer, error) and not self._bounds.follow:
                    return Columns.empty()

    def _batch(self) -> Columns:
        batch = _next_batch(self._tailer, self._size)
        if not len(batch) and not self._bounds.follow:
            adapter_of(self._queue).check_end(self._queue, self._tailer.index)
        return batch

    def _past(self) -> int | None:
        """Return the index to stop at."""
        if self._bounds.follow or self._bounds.metadata:
            return self._bounds.end
        # Else a reader that is slower than the writers would never end.
        return self._end if self._bounds.end is None else min(self._bounds.end, self._end)

    def _backward(self) -> Iterator[tuple[Columns, Rows]]:
        start, past = self._bounds.start or 0, self._past()
        end = past or 0
        if self._skipper is None:
            found = _backward(self._queue, self._tailer, start, end)
        else:
            skipper = self._skipper
            found = _backward_past_damage(self._queue, self._tailer, start, end, skipper)
        for batch, rows in found:
            chosen, passed = self._chosen(batch, rows)
            if passed:
                yield chosen, passed

    def _chosen(self, batch: Columns, rows: Rows) -> tuple[Columns, Rows]:
        if self._limiter is not None and rows:
            batch, rows = self._limiter(batch, rows)
        return self._passing(batch, rows)

    def _passing(self, batch: Columns, rows: Rows) -> tuple[Columns, Rows]:
        for stage in self._stages:
            if rows:
                batch, rows = stage(batch, rows)
        return batch, rows

    def _go_to(self, start: int) -> None:
        try:
            if self._tailer.move_to_index(start):
                return
        except quire.errors.CorruptError as error:
            if self._skipper is None:
                raise
            self._is_over = not self._skipper.skip(self._tailer, error, start)
            return
        journal = journal_tailer_of(self._tailer)
        if journal is None:
            if start <= self._end:
                return  # there may be gaps: the tailer is at the next message
        elif self._bounds.follow and journal.state == _REACHED:
            return  # the next message will have it
        first, last = self._queue.first_index, self._queue.last_index
        if first is None or last is None:
            raise click.ClickException(f"the queue is empty: from={start:#x}")
        raise click.ClickException(
            f"no message has this index: from={start:#x} first={first:#x} last={last:#x}"
        )

    def _go_back(self, count: int) -> None:
        """Go before the last *count* messages, of those that every stage lets through or of all."""
        start, past = None, self._past()
        with tailer_of(self._queue) as looker:
            low, high = self._bounds.start or 0, self._end if past is None else past
            if self._skipper is None:
                found = _backward(self._queue, looker, low, high)
            else:  # what is lost is reported where the output meets it
                found = _backward_past_damage(self._queue, looker, low, high, Skipper(self._queue))
            for batch, rows in found if count else ():
                chosen, passed = (batch, rows) if self._last_of_all else self._passing(batch, rows)
                if passed:
                    passed = passed[:count]
                    start = chosen.indexes[passed[-1]]
                    count -= len(passed)
                if not count:
                    break  # without reading on: later messages may be damaged
        if start is None:
            self._tailer.to_end()
        else:
            self._tailer.move_to_index(start)


def _before(batch: Columns, past: int | None) -> range:
    """Return the rows before the first with this index or a later one."""
    if past is None or not len(batch) or max(batch.indexes[0], batch.indexes[-1]) < past:
        return range(len(batch))
    return range(next((row for row, it in enumerate(batch.indexes) if it >= past), len(batch)))


def end_of(queue: AnyQueue) -> int:
    """Return the index after the last message, or one that none reaches if damage hides it."""
    try:
        return end_index_of(queue)
    except quire.errors.CorruptError:
        return _ANY


def _next_batch(tailer: AnyTailer, size: int = BATCH) -> Columns:
    """Return up to *size* messages; an empty batch if there is none yet."""
    return Columns.read(tailer, size, is_wire=adapter_of(tailer).reads_wire(tailer))


def _next_document(tailer: Tailer) -> Columns:
    """Return the next document, a message or metadata."""
    with tailer.reading_document(include_metadata=True) as document:
        if not document.is_present:
            return Columns.empty()
        data = bytes(document.bytes)
        return Columns.of_one(document.index, data, is_metadata=document.is_metadata)


def _backward(
    queue: AnyQueue, tailer: AnyTailer, start: int, end: int
) -> Iterator[tuple[Columns, range]]:
    """Yield the messages from *start* to *end* (exclusive), the last first: rows are descending."""
    for first, past in _blocks(queue, start, end):
        yield from _backward_within(tailer, first, past)


def _blocks(queue: AnyQueue, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of indexes, the last first, each of a batch at most."""
    numbering = numbering_of(queue)
    for cycle in reversed(cycles_of(queue)):
        low = max(start, numbering.to_index(cycle, 0))
        high = min(end, numbering.to_index(cycle, 0) + count_of(queue, cycle) * numbering.step)
        while low < high:
            first = max(low, high - BATCH * numbering.step)
            yield first, high
            high = first


def _backward_past_damage(
    queue: AnyQueue, tailer: AnyTailer, start: int, end: int, skipper: Skipper
) -> Iterator[tuple[Columns, range]]:
    """Yield as :func:`_backward` what can be read: each cycle is looked through from its start."""
    numbering = numbering_of(queue)
    for cycle in reversed(cycles_of(queue)):
        low = max(start, numbering.to_index(cycle, 0))
        high = min(end, numbering.to_index(cycle + 1, 0))
        with suppress(quire.errors.CorruptError):
            high = min(high, numbering.to_index(cycle, count_of(queue, cycle)))
        stretches = [*_readable(tailer, low, high, skipper)] if low < high else []
        for first, past in reversed(stretches):
            yield from _backward_within(tailer, first, past)


def _backward_within(tailer: AnyTailer, first: int, past: int) -> Iterator[tuple[Columns, range]]:
    """Yield the messages between two indexes, which are few, the last first."""
    tailer.move_to_index(first)
    for batch, count in reversed([*_until(tailer, past)]):
        yield batch, range(count - 1, -1, -1)


def _readable(
    tailer: AnyTailer, low: int, high: int, skipper: Skipper
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a cycle that can be read, each of a batch at most."""
    if not skipper.go_to(tailer, low):
        return
    past = low
    while past < high:
        try:
            batch = _next_batch(tailer)
            if not len(batch):
                skipper.check_end(tailer.index)
                return
        except quire.errors.CorruptError as error:
            if skipper.skip(tailer, error):
                continue
            return
        indexes = [index for index in batch.indexes if index < high]
        if indexes:
            past = indexes[-1] + 1
            yield indexes[0], past
        if len(indexes) < len(batch):
            return


def _until(tailer: AnyTailer, past: int) -> Iterator[tuple[Columns, int]]:
    """Yield batches, and how many messages of each lie before an index."""
    while len(batch := _next_batch(tailer)):
        count = sum(index < past for index in batch.indexes)
        if count:
            yield batch, count
        if count < len(batch) or batch.indexes[-1] + 1 >= past:
            return
