"""Ranges of a queue: the messages from one point to another, and reading them in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, NamedTuple, TypeAlias, cast

from quire._common import arguments
from quire.errors import CorruptError, IndexOutOfRangeError
from quire.formats.adapters import adapter_of, end_index_of, tailer_of
from quire.formats.columns import Columns
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.ranges.damage import Skipper, go_to
from quire.ranges.event_time import TimeField, datetime_of, epoch_ns, epoch_ns_of
from quire.ranges.seek import NO_INDEX, first_at, first_from, index_at_time

Point: TypeAlias = int | datetime
"""An index, or a time; one without a zone is in UTC."""

PointLike: TypeAlias = int | float | date | str
"""What stands for a point: an index; or a datetime, a date, ISO 8601 text, seconds as a float."""

_CHUNK_BYTES = 8 * 2**20
_COUNT = 65_536
_POINT: Final = "an index, a datetime, ISO 8601 text, or seconds since 1970 as a float"


@dataclass(frozen=True, slots=True)
class Range:
    """
    Consecutive messages.

    Attributes:
        first: The index of the first message.
        past: The end, exclusive.

    """

    first: int
    past: int

    @property
    def is_empty(self) -> bool:
        """Whether there are no messages."""
        return self.first >= self.past


class Limits(NamedTuple):
    """
    The limits of a range: two points, the second exclusive; None leaves a side open.

    Attributes:
        start: Where it starts.
        end: Where it ends.
        time_field: See :func:`range_of`.

    """

    start: Point | None = None
    end: Point | None = None
    time_field: str | None = None

    def indexes(self, queue: AnyQueue) -> tuple[int, int]:
        """
        Return the limits as indexes; a missing limit is the queue's own end.

        Raises:
            IndexOutOfRangeError: *start* is an index that no message has; in an older format, one
                after all messages.
            ValueError: *end* precedes *start*, or a time lies within a cycle.

        """
        first, past = index_bounds(queue, *self)
        if isinstance(self.start, int) and (
            adapter_of(queue).numbering(queue).is_dense or self.start >= end_index_of(queue)
        ):
            require(queue, self.start)
        if isinstance(self.start, datetime) and (first or 0) >= end_index_of(queue):
            first = NO_INDEX
        return first or 0, NO_INDEX if past is None else past


def parse_point(name: str, given: object) -> Point | None:
    """Parse a point: an index, or a time in any of its forms."""
    if given is None or isinstance(given, datetime):
        return given
    if isinstance(given, str | float | date):
        try:
            time_ns = epoch_ns_of(given)
        except ValueError:
            raise arguments.out_of_range(name, _POINT, given) from None
        return datetime_of(time_ns)
    if isinstance(given, bool) or not hasattr(type(given), "__index__"):
        raise arguments.refusal(name, _POINT, given)
    return cast("int", arguments.whole(0, NO_INDEX)(name, given))


def read_chunk(tailer: AnyTailer, count: int) -> Columns:
    """Return up to *count* messages, capped at 8 MiB of payload."""
    return Columns.read(tailer, count, max_bytes=_CHUNK_BYTES)


class Chunks:
    """
    Reads a range in chunks of up to 8 MiB.

    Args:
        tailer: The tailer to read with.
        span: The range.
        skipper: Goes on after what cannot be read; None: that is an error.

    """

    def __init__(self, tailer: AnyTailer, span: Range, skipper: Skipper | None = None) -> None:
        """Go to the first message."""
        self._tailer = tailer
        self._past = 0 if span.is_empty else span.past
        self._skipper = skipper
        if not span.is_empty and not go_to(tailer, span.first, skipper):
            self._past = 0

    def take(self, count: int = _COUNT) -> Columns:
        """Return up to *count* messages, capped at 8 MiB of payload; empty at the end."""
        skipper = self._skipper
        while True:
            try:
                chunk = read_chunk(self._tailer, count)
                if skipper is not None and not len(chunk) and self._past:
                    skipper.check_end(self._tailer.index)
                return chunk.until(self._past)
            except CorruptError as error:
                if skipper is None:
                    raise
                if not skipper.skip(self._tailer, error):
                    self._past = 0

    def __iter__(self) -> Iterator[Columns]:
        """Yield the remaining chunks."""
        while len(chunk := self.take()):
            yield chunk


def range_of(
    queue: AnyQueue,
    start: Point | None = None,
    end: Point | None = None,
    *,
    time_field: str | None = None,
    skips: bool = False,
) -> Range:
    """
    Return the range of the current messages from *start* to *end* (exclusive).

    Args:
        queue: The queue.
        start: Where the range starts; None: at the first message.
        end: Where it ends; None: after the last message.
        time_field: A time stands for the first message in which this field is not earlier, found
            by binary search: see :func:`quire.ranges.seek.index_at_time`. Without it, for the first
            message appended since: see :func:`quire.ranges.seek.first_at`.
        skips: Where damage hides the end, the range has none.

    Raises:
        ValueError: *end* precedes *start*, or a time lies within a cycle.

    """
    if start is not None and end is not None and _are_crossed(start, end):
        raise ValueError(f"the end lies before the start: start={shown(start)} end={shown(end)}")
    try:
        past_all = end_index_of(queue)
    except CorruptError:
        if not skips:
            raise
        past_all = NO_INDEX
    if not past_all:
        return Range(0, 0)
    field = None if time_field is None else TimeField(time_field)
    first = 0 if start is None else _at(queue, start, field)
    past = past_all if end is None else _at(queue, end, field)
    return Range(first_from(queue, first, skips=skips), min(past, past_all))


def index_bounds(
    queue: AnyQueue, start: Point | None, end: Point | None, time_field: str | None = None
) -> tuple[int | None, int | None]:
    """
    Return two points as indexes; a start given as a time is that of the first message from it.

    Raises:
        ValueError: *end* precedes *start*, or a time lies within a cycle.

    """
    if start is not None and end is not None and _are_crossed(start, end):
        raise ValueError(f"the end lies before the start: start={shown(start)} end={shown(end)}")
    field = None if time_field is None else TimeField(time_field)
    first = None if start is None else _at(queue, start, field)
    past = None if end is None else _at(queue, end, field)
    if first is None or isinstance(start, int):
        return first, past
    found = first_from(queue, first)
    if found == NO_INDEX and queue.last_index is not None:
        return end_index_of(queue), past
    return (None if found == NO_INDEX else found), past


def require(queue: AnyQueue, index: int) -> None:
    """
    Check that a message exists.

    Raises:
        IndexOutOfRangeError: The queue has no message at *index*.

    """
    with tailer_of(queue) as tailer:
        if tailer.move_to_index(index):
            return
    first, last = queue.first_index, queue.last_index
    if first is None or last is None:
        raise IndexOutOfRangeError(f"the queue is empty: start={index:#x} path={queue.path}")
    raise IndexOutOfRangeError(
        f"no message has this index: start={index:#x} first={first:#x} last={last:#x}"
        f" path={queue.path}"
    )


def shown(point: Point) -> str:
    """Return a point as text for errors."""
    return f"{point:#x}" if isinstance(point, int) else point.isoformat()


def _are_crossed(start: Point, end: Point) -> bool:
    if isinstance(start, datetime) and isinstance(end, datetime):
        return epoch_ns(start) > epoch_ns(end)
    return isinstance(start, int) and isinstance(end, int) and start > end


def _at(queue: AnyQueue, point: Point, field: TimeField | None) -> int:
    """Return the index of a point."""
    if isinstance(point, int):
        return point
    time_ns = epoch_ns(point)
    return first_at(queue, time_ns) if field is None else index_at_time(queue, time_ns, field)
