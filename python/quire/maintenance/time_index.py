"""Append times for cycles that were written without them, from a field of their messages."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire._common.roll_file_names import COMPRESSED, times_file, uncompressed
from quire._native import times_file as file_of
from quire.errors import EncryptionError
from quire.formats.adapters import count_of
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.tailer import JournalTailer
from quire.maintenance.removal import LOCK
from quire.opening.opener import open_whole
from quire.ranges.event_time import TimeField
from quire.sealed.key_file import is_encrypted

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with what is being done, how many messages are done, and how many there are."""

_NS_PER_MS: Final = 1_000_000
_BETWEEN_REPORTS: Final = 4_096


def build_time_index(
    path: str | PathLike[str], *, time_field: str, progress: Progress | None = None
) -> list[int]:
    """
    Build the index of times for each cycle without one, or with a damaged one.

    Afterwards :meth:`JournalTailer.move_to_time` finds a time within these cycles without
    *time_field*.
    If times are not in order, a message gets the latest time up to it; a message without the field
    gets the time of the next message that has it. Messages that are appended later are not in the
    index.

    Args:
        path: The queue's directory, or one roll file. It may be read and written meanwhile.
        time_field: The field that holds a message's time: see :meth:`JournalTailer.move_to_time`.
        progress: Called now and then with what is being done, and how many of a cycle's messages
            were read, of how many.

    Returns:
        The cycles that now have one.

    Raises:
        EncryptionError: The queue is encrypted: the field's values would be plain beside it.
        ValueError: No message of a cycle has the field; earlier cycles have their index.
        LockHeldError: Another process removes or indexes cycles of the queue.

    Examples:
        >>> with quire.open("trades") as trades, trades.appender() as appender:
        ...     for second in (0, 60, 120):
        ...         _ = appender.write_map({"at": 1_705_314_600 + second, "value": second})
        >>> len(quire.maintenance.build_time_index("trades", time_field="at"))
        1

    """
    place = arguments.queue_path("path", path)
    field = TimeField(arguments.text("time_field", time_field))
    if is_encrypted(place):
        raise EncryptionError(
            "values of an encrypted queue's messages would be plain in its time index:"
            f" path={place} (appenders with time_index=True leave the times at which messages came)"
        )
    with (
        open_whole(place, format="chronicle") as queue,
        SafeFolder.at(_folder_of(place)) as folder,
        queue.tailer() as tailer,
    ):
        build = _Build(queue, folder, tailer, field, progress)
        return [cycle for cycle in queue.cycles if build.cycle(cycle)]


def _folder_of(place: str) -> Path:
    path = Path(place)
    return path.parent if path.is_file() else path


class _Build(NamedTuple):
    """What a run works with."""

    queue: JournalQueue
    folder: SafeFolder
    tailer: JournalTailer
    field: TimeField
    progress: Progress | None

    def cycle(self, cycle: int) -> bool:
        """Build the index of a cycle, unless it has one or no messages; return whether it did."""
        queue = self.queue
        count = count_of(queue, cycle)
        if not count or queue._messages_before(cycle, 0) is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            return False
        file = queue.file_for_cycle(cycle).rpartition("/")[2]
        self.tailer.move_to_index(queue.roll_cycle.to_index(cycle, 0))
        points = self._points(file, count)
        if not points:
            raise ValueError(
                f"no message has the field: field={self.field.name} path={queue.path} cycle={cycle}"
            )
        name = uncompressed(file)
        with self.folder.locked(LOCK):
            if not any(map(self.folder.has, (name, name + COMPRESSED))):
                return False  # the cycle was removed meanwhile
            self.folder.replace(times_file(name), file_of(cycle, points))
        return True

    def _points(self, file: str, count: int) -> list[tuple[int, int]]:
        """Return the times of the next messages in milliseconds, each with how many are of it."""
        points: list[tuple[int, int]] = []
        for number, excerpt in enumerate(islice(self.tailer, count), 1):
            if self.progress is not None and number % _BETWEEN_REPORTS == 0:
                self.progress(f"indexing {file}", number, count)
            time_ns = self.field.of(excerpt.data)
            if time_ns is None:
                continue
            time_ms = max(0, time_ns // _NS_PER_MS)
            if points and time_ms <= points[-1][0]:
                points[-1] = (points[-1][0], number)
            else:
                points.append((time_ms, number))
        return points
