"""Append times for cycles that were written without them, from a field of their messages."""

from __future__ import annotations

from itertools import islice
from os import PathLike

from quire import _arguments as arguments
from quire._durable import SafeFolder
from quire._formats import times_file
from quire._native import times_file as file_of
from quire.maintenance.removal import LOCK
from quire.queue import Queue
from quire.queue import open as open_queue
from quire.ranges.cycles import count_of
from quire.ranges.event_time import TimeField
from quire.tailer import Tailer

_NS_PER_MS = 1_000_000


def build_time_index(path: str | PathLike[str], *, time_field: str) -> list[int]:
    """
    Build the index of times for each cycle that has none, or a damaged one.

    Afterwards :meth:`Tailer.move_to_time` finds a time within these cycles without *time_field*.
    Where times are not in order, a message counts as of the latest time up to it; one without the
    field, as of the next that has it. Messages that are appended later are not in the index.

    Args:
        path: The queue's directory. It may be read and written meanwhile.
        time_field: The field that holds a message's time: see :meth:`Tailer.move_to_time`.

    Returns:
        The cycles that now have one.

    Raises:
        ValueError: No message of a cycle has the field; earlier cycles have their index.
        LockHeldError: Another process removes or indexes cycles of the queue.

    Examples:
        >>> with quire.open("trades") as trades, trades.appender() as appender:
        ...     for second in (0, 60, 120):
        ...         _ = appender.write_map({"at": 1_705_314_600 + second, "value": second})
        >>> len(quire.build_time_index("trades", time_field="at"))
        1

    """
    place = arguments.queue_path("path", path)
    field = TimeField(arguments.text("time_field", time_field))
    with (
        open_queue(place, read_only=True, create=False, format="chronicle") as queue,
        SafeFolder.at(place) as folder,
        folder.locked(LOCK),
        queue.tailer() as tailer,
    ):
        return [cycle for cycle in queue.cycles if _build(queue, folder, tailer, cycle, field)]


def _build(queue: Queue, folder: SafeFolder, tailer: Tailer, cycle: int, field: TimeField) -> bool:
    count = count_of(queue, cycle)
    if not count or queue._messages_before(cycle, 0) is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return False
    tailer.move_to_index(queue.roll_cycle.to_index(cycle, 0))
    points: list[tuple[int, int]] = []
    for number, excerpt in enumerate(islice(tailer, count), 1):
        time_ns = field.of(excerpt.data)
        if time_ns is None:
            continue
        time_ms = max(0, time_ns // _NS_PER_MS)
        if points and time_ms <= points[-1][0]:
            points[-1] = (points[-1][0], number)
        else:
            points.append((time_ms, number))
    if not points:
        raise ValueError(
            f"no message tells a time: field={field.name} path={queue.path} cycle={cycle}"
        )
    name = times_file(queue.file_for_cycle(cycle).rpartition("/")[2])
    folder.replace(name, file_of(cycle, points))
    return True
