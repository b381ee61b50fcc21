"""Dead letters: messages that were delivered too often."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from quire import _formats, _native
from quire._common import arguments
from quire.groups.eligible import grouped
from quire.groups.undelivered import WHY

if TYPE_CHECKING:
    from collections.abc import Generator
    from os import PathLike

    from quire.groups.eligible import GroupedQueue

_MAX_DELIVERIES: Final = 5
_MOST: Final = 254


class Letter(NamedTuple):
    """A message about to become a dead letter."""

    data: bytes
    source_index: int
    delivery_count: int
    reason: str


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

    def write(self, group: str, letters: list[Letter]) -> None:
        """Append messages as they are, each after a metadata document that says why."""
        with self._open() as queue:
            if isinstance(queue, _native.QuickQueue):
                with _native.QuickAppender(queue) as quick:
                    quick.write_many([letter.data for letter in letters])
                return
            with _native.Appender(queue) as appender:
                for letter in letters:
                    self._write_one(appender, group, letter)

    def _write_one(self, appender: _native.Appender, group: str, letter: Letter) -> None:
        why = {
            "source": self._like.path,
            "index": letter.source_index,
            "group": group,
            "count": letter.delivery_count,
            "reason": letter.reason,
        }
        appender._write_column(  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            struct.pack("=ii", 0, len(letter.data)),
            letter.data,
            count=1,
            start=0,
            wide=False,
            text=False,
            note=_native.entry_bytes(WHY, why),
        )

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
