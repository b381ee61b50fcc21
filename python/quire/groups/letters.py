"""Dead letters: messages that were delivered too often."""

from __future__ import annotations

from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from quire import _native
from quire._common import arguments
from quire.errors import UnsupportedError
from quire.formats.adapters import adapter_at, adapter_of, is_queue
from quire.formats.columns import Columns
from quire.groups.eligible import grouped
from quire.groups.undelivered import WHY
from quire.sealed.key_file import check_letters

if TYPE_CHECKING:
    from collections.abc import Generator

    from quire.formats.protocols import AnyQueue

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
        like: The queue of the group: a new one at a path has its format.

    Raises:
        EncryptionError: A path is given, and the queue of the group is encrypted, or that at it.
        ValueError: *queue* is the queue of the group.

    """

    def __init__(
        self,
        queue: AnyQueue | str | PathLike[str],
        max_deliveries: int | None,
        like: AnyQueue,
    ) -> None:
        """Keep where they go."""
        if isinstance(queue, str | PathLike) or not is_queue(queue):
            self._queue, self._path = None, arguments.queue_path("dead_letter", queue)
            check_letters(like.path, self._path)
        else:
            self._queue, self._path = grouped(queue), ""
        path = self._path if self._queue is None else self._queue.path
        if Path(path).resolve() == Path(like.path).resolve():
            raise ValueError(
                f"dead letters would be delivered again: dead_letter={path}"
                " (give another queue than that of the group)"
            )
        self._like = like
        limit = _MAX_DELIVERIES if max_deliveries is None else max_deliveries
        self.max_deliveries: int = arguments.whole(1, _MOST)("max_deliveries", limit)

    def write(self, group: str, letter: Letter) -> None:
        """Append a message as it is, after a metadata document that says why."""
        with self._open() as queue:
            adapter = adapter_of(queue)
            with adapter.appender(queue) as appender:
                adapter.write(appender, Columns.of_one(0, letter.data), self._why(group, letter))

    def _why(self, group: str, letter: Letter) -> bytes:
        """Return the metadata document that says why."""
        why = {
            "source": self._like.path,
            "index": letter.source_index,
            "group": group,
            "count": letter.delivery_count,
            "reason": letter.reason,
        }
        return _native.entry_bytes(WHY, why)

    @contextmanager
    def _open(self) -> Generator[AnyQueue]:
        if self._queue is not None:
            yield self._queue
            return
        adapter = adapter_at(self._path) or adapter_of(self._like)
        if adapter.why_no_groups is not None:
            raise UnsupportedError(
                f"dead letters cannot go here: dead_letter={self._path} ({adapter.why_no_groups})"
            )
        with adapter.open(self._path, read_only=False) as queue:
            yield queue
