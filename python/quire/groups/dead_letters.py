"""Dead letters: messages that were delivered too often."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quire import _arguments as arguments
from quire import _formats, _native
from quire.groups.opening import grouped

if TYPE_CHECKING:
    from collections.abc import Generator
    from os import PathLike

    from quire.groups.opening import GroupedQueue

_MAX_DELIVERIES: Final = 5
_MOST: Final = 254


class DeadLetters:
    """
    A queue for messages that were delivered too often.

    Args:
        queue: The queue, or its path.
        max_deliveries: How often a message is delivered at most.

    """

    def __init__(
        self,
        queue: GroupedQueue | str | PathLike[str],
        max_deliveries: int | None,
        like: GroupedQueue,
    ) -> None:
        """Keep where they go."""
        is_open = isinstance(queue, _native.Queue | _native.QuickQueue | _native.VanillaQueue)
        self._queue = grouped(queue) if is_open else None
        self._path = "" if is_open else arguments.queue_path("dead_letter", queue)
        path = self._path if self._queue is None else self._queue.path
        if Path(path).resolve() == Path(like.path).resolve():
            raise ValueError(
                f"dead letters would be delivered again: dead_letter={path}"
                " (give another queue than that of the group)"
            )
        self._like = like
        limit = _MAX_DELIVERIES if max_deliveries is None else max_deliveries
        self.max_deliveries: int = arguments.whole(1, _MOST)("max_deliveries", limit)

    def write(self, payloads: list[bytes]) -> None:
        """Append messages as they are."""
        if not payloads:
            return
        with self._open() as queue:
            appender: Any = (
                _native.QuickAppender(queue)
                if isinstance(queue, _native.QuickQueue)
                else _native.Appender(queue)
            )
            with appender:
                appender.write_many(payloads)

    @contextmanager
    def _open(self) -> Generator[GroupedQueue]:
        if self._queue is not None:
            yield self._queue
            return
        known = _formats.format_of(self._path)
        is_quick = isinstance(self._like, _native.QuickQueue)
        quick = known == _formats.QUICK_QUEUE or (known is None and is_quick)
        kind = _native.QuickQueue if quick else _native.Queue
        with kind(self._path) as queue:
            yield queue
