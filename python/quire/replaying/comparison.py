"""Two queues compared, message by message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from quire._common import arguments
from quire._native import Excerpt
from quire.formats.columns import Columns
from quire.handles.base import Queue
from quire.opening.opener import QueueOrPath, opened_whole
from quire.ranges.range import (
    Chunks,
    Point,
    PointLike,
    parse_point,
    range_of,
)
from quire.replaying.message_values import Values

Alignment: TypeAlias = Literal["position", "index"]

WINDOW: Final = 128
_KEPT: Final = 4 * WINDOW


@dataclass(frozen=True, slots=True)
class Difference:
    """
    A message that differs between two queues, or that only one of them has.

    Attributes:
        left: The message of the first queue; None if only the second queue has it.
        right: The message of the second queue; None if only the first queue has it.

    """

    left: Excerpt | None
    right: Excerpt | None

    @property
    def kind(self) -> Literal["changed", "left", "right"]:
        """``changed``, or ``left`` or ``right`` if only that side has the message."""
        if self.left is None:
            return "right"
        return "left" if self.right is None else "changed"


class Comparison:
    """
    An iterator over the differences of two queues, with counts of the messages compared so far.

    Attributes:
        alike: The number of messages that both queues have.
        changed: The number of messages that differ.
        left: The number of messages that only the first queue has.
        right: The number of messages that only the second queue has.

    """

    def __init__(self, found: Callable[[Comparison], Iterator[Difference]]) -> None:
        """Start with all counts 0."""
        self.alike = 0
        self.changed = 0
        self.left = 0
        self.right = 0
        self._found = found(self)

    def __iter__(self) -> Iterator[Difference]:
        """Return the comparison itself, which can be iterated over only once."""
        return self

    def __next__(self) -> Difference:
        """Return the next difference, and count it."""
        difference = next(self._found)
        setattr(self, difference.kind, getattr(self, difference.kind) + 1)
        return difference

    @property
    def differences(self) -> int:
        """The number of differences found so far."""
        return self.changed + self.left + self.right


def compare(  # noqa: PLR0913 - by keywords
    left: QueueOrPath,
    right: QueueOrPath,
    *,
    by: Alignment = "position",
    values: bool = False,
    ignore: Iterable[str] = (),
    start: PointLike | None = None,
    end: PointLike | None = None,
    time_field: str | None = None,
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """
    Compare the messages that two queues have when the iteration begins.

    By position, a message that one queue lacks is recognised if later messages match again within
    128 messages; otherwise each message is compared with the one at its position.

    Args:
        left: A queue, or its directory.
        right: The other queue, or its directory.
        by: ``position``: compare the first message with the first, and so on; ``index``: compare
            messages with the same index.
        values: Compare the values in the messages, regardless of their encoding and the order of
            fields.
        ignore: Names of fields to leave out, at any depth; ``trade.time`` is a ``time`` within a
            ``trade``, and ``history`` the history. Implies *values*.
        start: Begin with the first message that is not before this index or time.
        end: Stop before this index or time.
        time_field: The field that holds the times which *start* and *end* refer to; see
            :func:`quire.replay`.
        progress: Called from time to time with the number of messages of the first queue that were
            compared.

    Raises:
        ValueError: *by* is unknown, or *end* precedes *start*.

    Examples:
        >>> _ = appender.write_map({"symbol": "EURUSD"})
        >>> _ = quire.replay(queue, "copy")
        >>> list(quire.compare(queue, "copy"))
        []

    """
    if by not in ("position", "index"):
        raise ValueError(f"invalid by={by!r}: expected 'position' or 'index'")
    ignored = arguments.names("ignore", ignore)
    first, past = parse_point("start", start), parse_point("end", end)
    for name, queue in (("left", left), ("right", right)):
        if not isinstance(queue, Queue):
            arguments.queue_path(name, queue)
    key_of = _values(ignored) if values or ignored else _bytes

    def found(comparison: Comparison) -> Iterator[Difference]:
        with ExitStack() as stack:
            sides = [_Side(stack, queue, first, past, time_field) for queue in (left, right)]
            pairs = _Pairs(comparison, sides[0], sides[1], key_of, progress)
            yield from pairs.by_position() if by == "position" else pairs.by_index()

    return Comparison(found)


def _bytes(message: bytes) -> Hashable:
    return message


def _values(ignored: list[str]) -> Callable[[bytes], Hashable]:
    return lru_cache(_KEPT)(Values(ignored).of)


class _Side:
    """The messages of one queue that were not compared yet, whether read or not."""

    def __init__(
        self,
        stack: ExitStack,
        source: QueueOrPath,
        start: Point | None,
        end: Point | None,
        time_field: str | None,
    ) -> None:
        queue = stack.enter_context(opened_whole(source))
        stretch = range_of(queue, start, end, time_field=time_field)
        self.chunks = Chunks(stack.enter_context(queue.tailer()), stretch)
        self.waiting: deque[Excerpt] = deque()
        self._has_ended = False

    def fill(self, count: int, more: int = 0) -> None:
        """Buffer *count* messages, as far as there are any, and up to *more* if they are small."""
        while (missing := count - len(self.waiting)) > 0 and not self._has_ended:
            chunk = self.chunks.take(max(missing, more))
            self._has_ended = not len(chunk)
            self.waiting.extend(chunk.excerpts())

    def window(self) -> list[Excerpt]:
        """Return the next messages, at most 128."""
        self.fill(WINDOW)
        return [self.waiting[number] for number in range(min(WINDOW, len(self.waiting)))]

    def drop(self, count: int) -> None:
        """Drop the next messages, which were compared."""
        for _ in range(count):
            self.waiting.popleft()


class _Pairs:
    """Pairs the messages of two queues, and yields the differences."""

    def __init__(
        self,
        counts: Comparison,
        left: _Side,
        right: _Side,
        key_of: Callable[[bytes], Hashable],
        progress: Callable[[int], object] | None,
    ) -> None:
        self._counts = counts
        self._left = left
        self._right = right
        self._key_of = key_of
        self._progress = progress

    def by_position(self) -> Iterator[Difference]:
        left, right = self._left, self._right
        while self._has_more(WINDOW, with_indexes=False):
            alike = self._counts.alike
            while left.waiting and right.waiting and self._are_alike():
                self._drop_alike(1)
            if self._counts.alike == alike:  # otherwise one side may only need to be read further
                yield from self._resynchronised()

    def by_index(self) -> Iterator[Difference]:
        left, right = self._left.waiting, self._right.waiting
        while self._has_more(1, with_indexes=True):
            while left and right and left[0].index == right[0].index:
                if self._are_alike():
                    self._drop_alike(1)
                else:
                    yield Difference(left.popleft(), right.popleft())
            while left and right and left[0].index < right[0].index:
                yield Difference(left.popleft(), None)
            while left and right and right[0].index < left[0].index:
                yield Difference(None, right.popleft())
            yield from self._what_is_left()

    def _has_more(self, count: int, *, with_indexes: bool) -> bool:
        """Skip what is byte for byte the same, then buffer *count*; return whether any are left."""
        left, right = self._left, self._right
        self._report()
        while not left.waiting and not right.waiting:
            chunk, other = left.chunks.take(), right.chunks.take()
            if not _are_same(chunk, other, with_indexes=with_indexes):
                left.waiting.extend(chunk.excerpts())
                right.waiting.extend(other.excerpts())
            elif not len(chunk):
                return False
            else:
                self._counts.alike += len(chunk)
                self._report()
        self._fill(count)
        return True

    def _fill(self, count: int) -> None:
        """Buffer messages of both sides, equally many unless these take more than some MiB."""
        self._left.fill(count, len(self._right.waiting))
        self._right.fill(count, len(self._left.waiting))

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._counts.alike + self._counts.changed + self._counts.left)

    def _what_is_left(self) -> Iterator[Difference]:
        """Yield the buffered messages of one side if the other side has ended."""
        left, right = self._left, self._right
        if left.waiting or right.waiting:
            self._fill(1)
        while left.waiting and not right.waiting:
            yield Difference(left.waiting.popleft(), None)
        while right.waiting and not left.waiting:
            yield Difference(None, right.waiting.popleft())

    def _resynchronised(self) -> Iterator[Difference]:
        """Yield the differences up to the last match among the next messages."""
        lefts, rights = self._left.window(), self._right.window()
        lefts_keys, rights_keys = self._keys(lefts), self._keys(rights)
        steps = SequenceMatcher(None, lefts_keys, rights_keys, autojunk=False).get_opcodes()
        last_alike = max((n for n, step in enumerate(steps) if step[0] == "equal"), default=None)
        for tag, left, left_end, right, right_end in steps[: _past(last_alike)]:
            if tag == "equal":
                self._drop_alike(left_end - left)
                continue
            self._left.drop(left_end - left)
            self._right.drop(right_end - right)
            yield from _paired(lefts[left:left_end], rights[right:right_end])

    def _keys(self, messages: list[Excerpt]) -> list[Hashable]:
        return [self._key_of(message.data) for message in messages]

    def _are_alike(self) -> bool:
        left, right = self._left.waiting[0].data, self._right.waiting[0].data
        return left == right or self._key_of(left) == self._key_of(right)

    def _drop_alike(self, count: int) -> None:
        self._counts.alike += count
        self._left.drop(count)
        self._right.drop(count)


def _past(number: int | None) -> int | None:
    return None if number is None else number + 1


def _paired(lefts: list[Excerpt], rights: list[Excerpt]) -> Iterator[Difference]:
    """Yield pairs by position, and then the surplus messages of one side."""
    both = min(len(lefts), len(rights))
    for left, right in zip(lefts[:both], rights[:both], strict=True):
        yield Difference(left, right)
    for left in lefts[both:]:
        yield Difference(left, None)
    for right in rights[both:]:
        yield Difference(None, right)


def _are_same(left: Columns, right: Columns, *, with_indexes: bool) -> bool:
    """Return whether two chunks hold the same bytes."""
    return (
        len(left) == len(right)
        and bytes(left.offsets) == bytes(right.offsets)
        and bytes(left.data) == bytes(right.data)
        and (not with_indexes or bytes(left.indexes) == bytes(right.indexes))
    )
