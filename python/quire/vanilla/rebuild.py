"""Rebuilding index files from data files."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

from quire.handles.vanilla import open as open_vanilla


class RebuiltCycle(NamedTuple):
    """
    The result of :func:`rebuild_index` for a cycle.

        changed = [it for it in quire.vanilla.rebuild_index(path) if it.recovered or it.dropped]

    Attributes:
        cycle: The number of the cycle.
        directory: Its directory.
        messages: How many messages it has now.
        recovered: How many of them the index did not name.
        dropped: How many entries named no message.
        moved: Whether messages have other indexes than before.

    """

    cycle: int
    directory: str
    messages: int
    recovered: int
    dropped: int
    moved: bool


def rebuild_index(path: str | PathLike[str], **options: Any) -> list[RebuiltCycle]:  # noqa: ANN401
    """
    Rebuild lost or damaged index files of a Vanilla Chronicle from its data files.

    Entries that name a message keep their places. Messages that no entry names fill the free
    places, thread by thread: the order between threads is not in the data files. Places that stay
    free are closed up: messages after them get lower indexes, and named tailers continue with the
    message that was next. The old index files are kept as ``.before-rebuild-index-{n}``. No process
    may write to the queue meanwhile; Quire's appenders are detected, Java's are not.

        for cycle in quire.vanilla.rebuild_index("trades"):
            print(cycle.directory, cycle.recovered)

    Args:
        path: The queue's directory.
        options: Options of :func:`quire.vanilla.open`, such as *files* with sizes that cannot be
            detected.

    Raises:
        WriterInUseError: An appender writes to a cycle.
        TailerInUseError: A named tailer is open whose messages would get other indexes.

    """
    with open_vanilla(path, create=False, **options) as queue:
        return [
            RebuiltCycle(
                cycle, queue.directory_for_cycle(cycle), messages, recovered, dropped, moved
            )
            for cycle, messages, recovered, dropped, moved in queue._rebuild_index()  # noqa: SLF001
        ]
