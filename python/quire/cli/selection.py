"""Which messages of a queue are shown: where to begin, what to let through, when to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import click

import quire
from quire import pausers

_REACHED: Final = "FOUND_IN_CYCLE"
_ANY: Final = 2**63 - 1


class Bounds(NamedTuple):
    """The stretch of a queue to show; None leaves a side open."""

    start: int | None
    end: int | None
    last: int | None
    reverse: bool
    follow: bool
    metadata: bool

    def is_past(self, index: int, newest: int | None) -> bool:
        """Return whether a message lies behind the end, in the direction of reading."""
        if self.reverse:
            return self.end is not None and index < self.end
        if self.end is not None and index > self.end:
            return True
        # Else a reader that is slower than the writers would never end.
        return not self.follow and not self.metadata and (newest is None or index > newest)


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
        if bounds.start is not None:
            self._go_to(bounds.start)
        elif bounds.reverse:
            tailer.to_end()
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

    def _go_to(self, start: int) -> None:
        if self._tailer.move_to_index(start):
            return
        if self._bounds.follow and self._tailer.state == _REACHED:
            return  # the next message will have it
        first, last = self._queue.first_index, self._newest
        if first is None or last is None:
            raise click.ClickException(f"the queue is empty: start={start:#x}")
        raise click.ClickException(
            f"no message has this index: start={start:#x} first={first:#x} last={last:#x}"
        )

    def _go_back(self, count: int, passes: Callable[[quire.ReadDocument], bool]) -> None:
        """Stand in front of the last *count* messages that pass."""
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
