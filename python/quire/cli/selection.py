"""Which messages of a queue are shown: where to begin, what to let through, when to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import click

import quire
from quire import pausers

if TYPE_CHECKING:
    from quire.ranges.range import Point

_REACHED: Final = "FOUND_IN_CYCLE"
_ANY: Final = 2**63 - 1


class Bounds(NamedTuple):
    """The stretch of a queue to show, its end excluded; None leaves a side open."""

    start: int | None
    end: int | None
    last: int | None
    reverse: bool
    follow: bool
    metadata: bool

    def is_past(self, index: int, newest: int | None) -> bool:
        """Return whether a message lies after the range, in reading direction."""
        if self.reverse:
            return self.start is not None and index < self.start
        if self.end is not None and index >= self.end:
            return True
        # Else a reader that is slower than the writers would never end.
        return not self.follow and not self.metadata and (newest is None or index > newest)

    def is_before(self, index: int) -> bool:
        """Return whether a message lies before the range, in reading direction."""
        return self.reverse and self.end is not None and index >= self.end

    def between(
        self, queue: quire.Queue, start: Point | None, end: Point | None, time_field: str | None
    ) -> Bounds:
        """
        Return these with two points of a queue as indexes.

        Raises:
            ValueError: The end lies before the start, or a time within a cycle.

        """
        if start is None and end is None:
            return self
        from quire.ranges.range import index_bounds

        first, past = index_bounds(queue, start, end, time_field=time_field)
        newest = _newest(queue)
        is_past = first is not None and newest is not None and first > newest
        if is_past and not isinstance(start, int) and not self.follow:
            return self._replace(end=0)  # a time that is still to come
        return self._replace(start=first, end=past)


class Selection:
    """
    The messages between two bounds, to be shown one after the other.

    Args:
        queue: The queue.
        tailer: Reads it; a named one stays where it is.
        bounds: Where to begin and to end.
        passes: Whether a message counts, for ``last``.

    """

    def __init__(
        self,
        queue: quire.Queue,
        tailer: quire.Tailer,
        bounds: Bounds,
        passes: Callable[[quire.ReadDocument], bool],
    ) -> None:
        """Go to where the stretch begins."""
        self._queue = queue
        self._tailer = tailer
        self._bounds = bounds
        self._newest = _newest(queue)
        if bounds.reverse:
            tailer.direction = "backward"
        if bounds.reverse:
            if bounds.end is None or not self._is_at(bounds.end):
                tailer.to_end()
        elif bounds.start is not None:
            self._go_to(bounds.start)
        elif bounds.last is not None:
            self._go_back(bounds.last, passes)

    def each(self, show: Callable[[quire.ReadDocument], bool], idle: Callable[[], None]) -> None:
        """
        Show each document while it is open, until the end or until *show* returns False.

        Args:
            show: Gets the document.
            idle: Called before waiting for more.

        """
        pauser, has_paused = pausers.sleepy(), False
        while True:
            with self._tailer.reading_document(include_metadata=self._bounds.metadata) as document:
                if document.is_present:
                    if self._bounds.is_past(document.index, self._newest):
                        document.rollback_on_close()
                        return
                    if self._bounds.is_before(document.index):
                        continue
                    if not show(document):
                        return
                    if has_paused:
                        pauser.reset()
                        has_paused = False
                    continue
            if not self._bounds.follow:
                return
            idle()
            pauser.pause()
            has_paused = True

    def _is_at(self, end: int) -> bool:
        """Go to the first message that does not lie before *end*; return whether there is one."""
        from quire.ranges.seek import NO_INDEX, first_from

        first = first_from(self._queue, end)
        return first != NO_INDEX and self._tailer.move_to_index(first)

    def _go_to(self, start: int) -> None:
        if self._tailer.move_to_index(start):
            return
        if self._bounds.follow and self._tailer.state == _REACHED:
            return  # the next message will have it
        first, last = self._queue.first_index, self._newest
        if first is None or last is None:
            raise click.ClickException(f"the queue is empty: from={start:#x}")
        raise click.ClickException(
            f"no message has this index: from={start:#x} first={first:#x} last={last:#x}"
        )

    def _go_back(self, count: int, passes: Callable[[quire.ReadDocument], bool]) -> None:
        """Go before the last *count* messages that pass."""
        start = None
        if count and self._newest is not None:
            with self._queue.tailer() as looker:
                looker.direction = "backward"
                looker.to_end() if self._newest == _ANY else looker.move_to_index(self._newest)
                while count:
                    with looker.reading_document() as document:
                        if not document.is_present:
                            break
                        if passes(document):
                            count -= 1
                            start = document.index
        if start is None:
            self._tailer.to_end()
        else:
            self._tailer.move_to_index(start)


def _newest(queue: quire.Queue) -> int | None:
    """Return the last index; where damage hides it, one that no message reaches."""
    try:
        return queue.last_index
    except quire.CorruptError:
        return _ANY
