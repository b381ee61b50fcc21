"""Messages in a queue's ring that are not yet appended to the queue."""

from __future__ import annotations

import os
from os import PathLike
from typing import Final

from quire import _native
from quire._common import arguments
from quire.errors import NotAQueueError
from quire.formats.adapters import adapter_at

RING: Final = "async.ring"


def ring_pending(path: str | PathLike[str]) -> tuple[int, int]:
    """
    Return how many messages wait in a queue's ring of asynchronous appends, and their bytes.

    A program with ``buffer_mode="async"`` has put them in, and they are not in the queue yet: a
    copy of the roll files lacks them. Nothing is changed, no lock is taken, and the ring is not
    drained: if the queue is in use, the numbers may already have changed when they are returned.
    ``quire drain PATH --once`` appends the messages. Returns ``(0, 0)`` if there is no ring, as
    with the older formats.

    Raises:
        NotAQueueError: There is no queue at *path*.
        CorruptError: The ring contradicts itself.
        UnsupportedError: The ring is of another version of Quire.
        OSError: The system refuses to read the ring, for example for lack of permission.

    Examples:
        >>> with quire.open("buffered", buffer_mode="async") as queue:
        ...     _ = queue.appender().write_text("hello")
        >>> quire.maintenance.ring_pending("buffered")  # closing drained it
        (0, 0)

    """
    place = arguments.path("path", path)
    adapter = adapter_at(place)
    if adapter is None:
        raise NotAQueueError(f"no queue here: path={place}")
    found = _native.ring_stats(place) if adapter.is_wire else None
    return (0, 0) if found is None else (found[3], found[1])


def ring_of(path: str) -> str:
    """Return the path of a queue's ring, which need not be there."""
    return os.path.join(path, RING)  # noqa: PTH118 - a path object costs more than the rest
