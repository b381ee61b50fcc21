"""Several queues written into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from quire._common import arguments
from quire._native import RollCycle
from quire.formats.adapters import tailer_of
from quire.formats.protocols import AnyQueue, AnyTailer
from quire.maintenance.left_out import warn_left_out
from quire.maintenance.results import CycleTimes, Result, empty, working_folder
from quire.maintenance.splitting import Progress
from quire.merging import read_merged
from quire.opening.discovery import result_path
from quire.opening.opener import open_whole

_BETWEEN_REPORTS = 1024


class _Message(NamedTuple):
    excerpt: Any
    time_ms: int


class _Source:
    """A tailer whose messages know when their cycle starts."""

    def __init__(self, queue: AnyQueue, tailer: AnyTailer) -> None:
        self._tailer = tailer
        self._times = CycleTimes(queue)

    def read(self) -> _Message | None:
        excerpt = self._tailer.read()
        return None if excerpt is None else _Message(excerpt, self._times.of(excerpt.index))

    def close(self) -> None:
        self._tailer.close()


def merge_queues(
    sources: Iterable[str | PathLike[str]],
    dest: str | PathLike[str],
    key: Callable[[Any], Any],
    *,
    roll_cycle: str | None = None,
    progress: Progress | None = None,
) -> int:
    """
    Write the messages of several queues into a new one, in the order of a key.

    Each source must be in that order itself; :func:`quire.read_merged` says more. Messages keep
    their bytes and go into the cycle in which the cycle of their source starts, or into the newest
    one if that is later; metadata is left out. *dest* appears when it is complete.

    Args:
        sources: Queues, of any format. Nothing of them is changed.
        dest: A directory that does not exist, or is empty.
        key: What to order by, made of an excerpt.
        roll_cycle: The roll cycle of the result; None: that of the first source, or a day.
        progress: Called now and then.

    Returns:
        How many messages the result has.

    Raises:
        FileExistsError: *dest* is not empty.
        ValueError: *dest* overlaps a source, or is a mount point.

    Examples:
        >>> _ = appender.write_map({"time": 1})
        >>> with quire.open("bids") as bids, bids.appender() as bid:
        ...     _ = bid.write_map({"time": 0})
        >>> paths = [queue.path, "bids"]
        >>> quire.maintenance.merge_queues(paths, "both", lambda it: it.to_dict()["time"])
        2
        >>> with quire.open("both") as both, both.tailer() as tailer:
        ...     [it.to_dict()["time"] for it in tailer]
        [0, 1]

    """
    paths = [arguments.path("sources", it) for it in sources]
    if not paths:
        raise arguments.out_of_range("sources", "at least one", paths)
    arguments.function("a function of an excerpt")("key", key)
    path = result_path("dest", dest)
    cycle_name = None if roll_cycle is None else RollCycle(roll_cycle).name
    with ExitStack() as opened:
        queues = [opened.enter_context(open_whole(it)) for it in paths]
        total = sum(it.entry_count for it in queues)
        found = [_Source(it, opened.enter_context(closing(tailer_of(it)))) for it in queues]
        with working_folder(path, [Path(it.path) for it in queues], "merging") as folder:
            empty(folder)
            for source in queues:
                warn_left_out(source.path, "merge")
            messages = read_merged(found, key=lambda it: key(it.excerpt))
            with Result(folder.path, queues[0], cycle_name) as result:
                for excerpt, time_ms in messages:
                    if progress is not None and result.messages % _BETWEEN_REPORTS == 0:
                        progress("merging", result.messages, max(result.messages, total))
                    result.append(excerpt.data, time_ms)
                return result.messages
