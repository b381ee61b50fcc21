"""Which messages of a queue are shown: where to begin, what to let through, when to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import click

import quire
from quire.cli.reading.raw_batches import (
    BATCH,
    Batch,
    backward,
    backward_past_damage,
    next_batch,
    next_document,
)
from quire.formats.adapters import journal_tailer_of, tailer_of
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.ranges.cycles import end_index_of
from quire.ranges.damage import Skipper, check_end

if TYPE_CHECKING:
    from quire.ranges.range import Point

_REACHED: Final = "FOUND_IN_CYCLE"
_ANY: Final = 2**63 - 1

Rows: TypeAlias = Sequence[int]
Stage: TypeAlias = Callable[[Batch, Rows], tuple[Batch, Rows]]
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
        is_named: bool = False,
        skipper: Skipper | None = None,
        last_of_all: bool = False,
    ) -> None:
        """Go to the start of the range."""
        self._queue = queue
        self._tailer = tailer
        self._bounds = bounds
        self._stages = stages
        self._last_of_all = last_of_all
        self._size = 1 if is_named else BATCH
        self._skipper = skipper
        self._end = end_of(queue)
        if bounds.reverse:
            return
        if bounds.last is not None:
            self._go_back(bounds.last)
        elif bounds.start is not None:
            self._go_to(bounds.start)

    def batches(self) -> Iterator[tuple[Batch, Rows] | None]:
        """Yield batches with their chosen rows; None where there is nothing more yet."""
        return self._backward() if self._bounds.reverse else self._forward()

    def _forward(self) -> Iterator[tuple[Batch, Rows] | None]:
        past = self._past()
        while True:
            batch = self._next()
            if not batch.count:
                if not self._bounds.follow:
                    return
                yield None
                continue
            rows = _before(batch, past)
            chosen, passed = self._chosen(batch, rows)
            if passed:
                yield chosen, passed
            if len(rows) < batch.count:
                if not rows and self._size == 1:
                    self._tailer.move_to_index(batch.indexes[0])  # it was not shown
                return

    def _next(self) -> Batch:
        journal = journal_tailer_of(self._tailer)
        if self._bounds.metadata and journal is not None:
            return next_document(journal)
        while True:
            try:
                return self._batch()
            except quire.errors.CorruptError as error:
                if self._skipper is None:
                    raise
                if not self._skipper.skip(self._tailer, error) and not self._bounds.follow:
                    return Batch(0, b"", bytes(4), b"")

    def _batch(self) -> Batch:
        batch = next_batch(self._tailer, self._size)
        if not batch.count and not self._bounds.follow:
            check_end(self._queue, self._tailer.index)
        return batch

    def _past(self) -> int | None:
        """Return the index to stop at."""
        if self._bounds.follow or self._bounds.metadata:
            return self._bounds.end
        # Else a reader that is slower than the writers would never end.
        return self._end if self._bounds.end is None else min(self._bounds.end, self._end)

    def _backward(self) -> Iterator[tuple[Batch, Rows]]:
        start, past = self._bounds.start or 0, self._past()
        end = past or 0
        if self._skipper is None:
            found = backward(self._queue, self._tailer, start, end)
        else:
            skipper = self._skipper
            found = backward_past_damage(self._queue, self._tailer, start, end, skipper)
        for batch, rows in found:
            chosen, passed = self._chosen(batch, rows)
            if passed:
                yield chosen, passed

    def _chosen(self, batch: Batch, rows: Rows) -> tuple[Batch, Rows]:
        for stage in self._stages:
            if rows:
                batch, rows = stage(batch, rows)
        return batch, rows

    def _go_to(self, start: int) -> None:
        if self._tailer.move_to_index(start):
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
            found = backward(self._queue, looker, low, high) if count else ()
            for batch, rows in found:
                chosen, passed = (batch, rows) if self._last_of_all else self._chosen(batch, rows)
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


def _before(batch: Batch, past: int | None) -> range:
    """Return the rows before the first with this index or a later one."""
    if past is None or not batch.count or max(batch.indexes[0], batch.indexes[-1]) < past:
        return range(batch.count)
    return range(next((row for row, it in enumerate(batch.indexes) if it >= past), batch.count))


def end_of(queue: AnyQueue) -> int:
    """Return the index after the last message, or one that none reaches if damage hides it."""
    try:
        return end_index_of(queue)
    except quire.errors.CorruptError:
        return _ANY
