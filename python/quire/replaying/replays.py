"""Replays: a range of a queue read again, at its original pace, or into another queue."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any, Self

from quire._common import arguments
from quire._native import Excerpt, ManualClock, RollCycle
from quire.errors import ReplayError
from quire.formats.adapters import (
    adapter_named,
    adapter_of,
    journal_of,
    numbering_of,
    periods_of,
)
from quire.formats.columns import Columns
from quire.formats.journal import JOURNAL
from quire.formats.missing import article
from quire.formats.protocols import AnyQueue
from quire.handles.base import Appender
from quire.maintenance.left_out import warn_plain
from quire.opening.opener import OF_RESULTS, QueueOrPath, open_as, opened_source
from quire.ranges.damage import Skipped
from quire.ranges.range import (
    PointLike,
    Range,
    parse_point,
    read_chunk,
)
from quire.ranges.seek import first_from
from quire.replaying.pacing import Pace, Replay
from quire.sealed.key_file import is_encrypted

_OF_CYCLES = {"cycle_format", "cycle_length_ms", "entries_per_cycle"}


@dataclass(frozen=True, slots=True)
class Replayed:
    """
    The result of a replay.

    Attributes:
        messages: The number of messages in the range.
        written: How many of them were written; the target already had the others.
        last: The index of the last message in the new queue; None if the range is empty.
        behind_s: How late the last message was, in seconds.
        most_behind_s: The largest delay of any message, in seconds.

    """

    messages: int
    written: int
    last: int | None
    behind_s: float
    most_behind_s: float


def replay(  # noqa: PLR0913 - by keywords
    source: QueueOrPath,
    out: str | PathLike[str],
    *,
    start: PointLike | None = None,
    end: PointLike | None = None,
    speed: float | None = None,
    time_field: str | None = None,
    roll_cycle: str | RollCycle | None = None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    progress: Callable[[int], object] | None = None,
    skipped: Skipped | None = None,
) -> Replayed:
    """
    Write the messages of a queue from *start* to *end* to another, byte for byte.

    The same range always produces the same messages in the same cycles, and with their original
    indexes if it starts with a cycle. Repeat a replay that was killed to resume it: the messages
    that *out* already holds are first compared with the source.

    Args:
        source: The queue, or its directory. Metadata is left out.
        out: The directory of the other queue. It is created like the source: in its format, with
            its roll cycle, epoch, wire type and source id.
        start: The first message: its index, or a time: a datetime, a date or ISO 8601 text (UTC
            without a zone), or seconds since 1970 as a float; None: the oldest message.
        end: The first message after the range, as an index or a time; None: replay up to the
            message that is newest when the replay begins.
        speed: 1.0 keeps the original pace, 10.0 is ten times as fast; None: as fast as possible.
        time_field: The field that holds a message's time. Without it, the pace comes from the
            history of the messages, and *start* and *end* must be times at which a cycle begins,
            unless the cycle has an index of times.
        roll_cycle: Another roll cycle for *out*: each message goes into the cycle in which its
            source cycle starts.
        now: The clock for *speed*, in seconds.
        sleep: Waits for a number of seconds.
        progress: Called from time to time with the number of messages handled.
        skipped: Called with each range of messages that cannot be read and is skipped; see
            :func:`quire.maintenance.split_queue`. None: raise at the first such range.

    Raises:
        CorruptError: Messages cannot be read, and *skipped* is None.
        ReplayError: *out* holds other messages, or another process writes to *out*.
        IndexOutOfRangeError: No message has the index *start*.
        ValueError: No event time determines the pace or a bound, or *end* precedes *start*.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> result = quire.replay(queue, "copy")
        >>> result.messages, result.written
        (2, 2)

    """
    pace = None if speed is None else Pace(speed, now, sleep)
    with opened_source(source) as queue:
        first, past = parse_point("start", start), parse_point("end", end)
        plan = Replay(queue, first, past, pace=pace, time_field=time_field, skipped=skipped)
        with Copy(plan, out, roll_cycle, progress) as copy:
            return copy.run()


def replayed(  # noqa: PLR0913 - by keywords
    source: QueueOrPath,
    *,
    start: PointLike | None = None,
    end: PointLike | None = None,
    speed: float | None = None,
    time_field: str | None = None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Excerpt]:
    """
    Iterate over the messages that :func:`replay` would write, yielding each when it is due.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> [message.data for message in quire.replayed(queue)]
        [b'one', b'two']

    """
    pace = None if speed is None else Pace(speed, now, sleep)
    with opened_source(source) as queue:
        first, past = parse_point("start", start), parse_point("end", end)
        for document in Replay(queue, first, past, pace=pace, time_field=time_field).documents():
            yield Excerpt(document.index, bytes(document.bytes))


class Copy:
    """
    Writes a replay to another queue.

    Args:
        plan: The range to replay, and its pace.
        out: The directory of the other queue.
        roll_cycle: The roll cycle of the other queue; None: that of the source.
        progress: Called from time to time with the number of messages handled.

    """

    def __init__(
        self,
        plan: Replay,
        out: str | PathLike[str],
        roll_cycle: str | RollCycle | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        """Open the other queue, or create it."""
        source = plan.source
        out = arguments.path("out", out)
        if os.path.exists(out) and os.path.samefile(source.path, out):  # noqa: PTH110, PTH121
            raise ValueError(f"cannot replay a queue into itself: out={os.fspath(out)}")
        self._plan = plan
        self._numbering = numbering_of(source)
        self._clock = ManualClock(self._begin_ms(self._numbering.to_cycle(plan.range.first)))
        self._stack = ExitStack()
        self._kind, self._options = out_options(source, roll_cycle, self._clock)
        self._out = self._stack.enter_context(open_as(self._kind, out, **self._options))
        self._appender: Appender | None = None
        if not is_encrypted(self._out.path):
            warn_plain(source.path, "replayed queue")
        self._progress = progress
        self._numbers = _Numbers(self._out)
        self._next = plan.range.first
        self.messages = 0
        self.written = 0
        self.last: int | None = None

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the other queue."""
        self._stack.close()

    def run(self) -> Replayed:
        """Write the messages that the other queue does not hold yet."""
        self._compare()
        if self._plan.pace is None:
            self._write_chunks()
        else:
            self._write_documents()
        return self.done()

    def done(self) -> Replayed:
        """Return the result so far."""
        pace = self._plan.pace
        behind = (0.0, 0.0) if pace is None else (pace.behind_s, pace.most_behind_s)
        return Replayed(self.messages, self.written, self.last, *behind)

    def _compare(self) -> None:
        """Compare the messages in the target with the source, to skip them."""
        with self._plan.source.tailer() as tailer, self._out.tailer() as there:
            for chunk in self._plan.chunks(tailer):
                found = read_chunk(there, len(chunk))
                self._compare_chunk(chunk, found)
                if len(found) < len(chunk):
                    return
            if len(found := read_chunk(there, 1)):
                raise self._other(found.indexes[0], "more than the replay")

    def _compare_chunk(self, chunk: Columns, found: Columns) -> None:
        count = len(found)
        if not count:
            return
        part = chunk.until(chunk.indexes[count - 1] + 1)
        if bytes(part.data) != bytes(found.data) or bytes(part.offsets) != bytes(found.offsets):
            number = next(i for i in range(count) if part.payload(i) != found.payload(i))
            raise self._other(found.indexes[number], "another message")
        for cycle, first, past in self._runs(part):
            expected = self._numbers.take(self._begin_ms(cycle), past - first)
            if found.indexes[first] != expected:
                raise self._other(found.indexes[first], f"another index than {expected:#x}")
            if found.indexes[past - 1] - expected != self._numbers.length(past - 1 - first):
                raise self._other(found.indexes[past - 1], "other cycles")
        self._handled(count, part.indexes[-1], found.indexes[-1])

    def _appender_for(self, size: int, offsets: Iterable[int]) -> Appender:
        """
        Return an appender whose queue holds some messages, if its format can.

        Args:
            size: Their length altogether.
            offsets: Where each begins, and where the last one ends.

        """
        journal = journal_of(self._out)
        if journal is not None and size > JOURNAL.longest(journal.block_bytes):
            longest = max(end - start for start, end in pairwise(offsets))
            needed = JOURNAL.block_for(longest, journal.block_bytes)
            if needed > journal.block_bytes:
                options = self._options | {"block_bytes": needed}
                self._out = self._stack.enter_context(
                    open_as(self._kind, self._out.path, **options)
                )
                self._appender = None
        if self._appender is None:
            self._appender = self._stack.enter_context(self._out.appender())
        return self._appender

    def _write_chunks(self) -> None:
        write = adapter_of(self._out).write
        with self._plan.source.tailer() as tailer:
            for chunk in self._plan.chunks(tailer, self._left()):
                appender = self._appender_for(len(chunk.data), chunk.offsets)
                for cycle, first, past in self._runs(chunk):
                    count = past - first
                    expected = self._turn_to(cycle, count) + self._numbers.length(count - 1)
                    last = write(appender, chunk.part(first, past))
                    self._check(last, expected)
                    self.written += count
                    self._handled(count, chunk.indexes[past - 1], expected)

    def _write_documents(self) -> None:
        to_cycle = self._numbering.to_cycle
        for document in self._plan.documents(self._left()):
            size = len(document.bytes)
            appender = self._appender_for(size, (0, size))
            expected = self._turn_to(to_cycle(document.index), 1)
            self._check(appender.write_bytes(document.bytes), expected)
            self.written += 1
            self._handled(1, document.index, expected)

    def _left(self) -> Range:
        skips = self._plan.skipped is not None
        first = first_from(self._plan.source, self._next, skips=skips)
        return Range(first, self._plan.range.past)

    def _turn_to(self, cycle: int, count: int) -> int:
        """Set the clock to a cycle; return the index that the first of *count* messages gets."""
        self._clock.now_ms = self._begin_ms(cycle)
        return self._numbers.take(self._clock.now_ms, count)

    def _check(self, index: int | None, expected: int) -> None:
        if index != expected:
            raise ReplayError(
                "another process writes to the target of the replay:"
                f" index={index or 0:#x} expected={expected:#x} path={self._out.path}"
            )

    def _handled(self, count: int, index: int, last: int) -> None:
        self.messages += count
        self.last = last
        self._next = index + 1
        if self._progress is not None:
            self._progress(self.messages)

    def _begin_ms(self, cycle: int) -> int:
        """Return when a cycle starts; 0 in a Quick-Queue, whose pages have no time."""
        source = self._plan.source
        return periods_of(source).start_ms(cycle) if _is_timed(source) else 0

    def _runs(self, chunk: Columns) -> Iterator[tuple[int, int, int]]:
        """Yield each cycle of a chunk, and where its messages start and end in the chunk."""
        first = 0
        while first < len(chunk):
            cycle = self._numbering.to_cycle(chunk.indexes[first])
            past = len(chunk.until(self._numbering.to_index(cycle + 1, 0)))
            yield cycle, first, past
            first = past

    def _other(self, index: int, what: str) -> ReplayError:
        return ReplayError(
            f"the target does not hold the beginning of this replay, but {what}:"
            f" index={index:#x} path={self._out.path} (use a directory that does not exist)"
        )


class _Numbers:
    """Predicts the indexes that written messages get."""

    def __init__(self, queue: AnyQueue) -> None:
        self._numbering = numbering_of(queue)
        self._periods = periods_of(queue) if _is_timed(queue) else None
        self._cycle = -1
        self._sequence = 0

    def take(self, time_ms: int, count: int) -> int:
        """Return the index of the first of *count* messages that are written at a time."""
        cycle = 0 if self._periods is None else self._periods.cycle_at(time_ms)
        if cycle != self._cycle:
            self._cycle = cycle
            self._sequence = 0
        index = self._numbering.to_index(cycle, self._sequence)
        self._sequence += count
        return index

    def length(self, count: int) -> int:
        """Return the distance between an index and the index *count* messages later."""
        return count * self._numbering.step


def out_options(
    source: AnyQueue, roll_cycle: str | RollCycle | None, clock: ManualClock
) -> tuple[str, dict[str, Any]]:
    """
    Return the format and the options to create a queue like another one.

    Raises:
        ValueError: *roll_cycle* was given for a format without cycles.

    """
    adapter = adapter_of(source)
    options = adapter.options_like(source)
    kind = adapter_named(options.pop("format", None)).name
    options |= OF_RESULTS
    if not _is_timed(source):
        if roll_cycle is not None:
            raise ValueError(f"{article(adapter.title)} has no cycles: roll_cycle={roll_cycle}")
        return kind, options
    if roll_cycle is not None:
        options = {name: it for name, it in options.items() if name not in _OF_CYCLES}
        options["roll_cycle"] = roll_cycle
    return kind, options | {"clock": clock}


def _is_timed(queue: AnyQueue) -> bool:
    """Return whether a replay of a queue has cycles; a replay of a read-only format has."""
    adapter = adapter_of(queue)
    return adapter.has_cycles or not adapter.is_written
