"""Bringing what can be read of a damaged queue into a new one."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from quire.errors import UnsupportedError
from quire.handles.journal.queue import JournalQueue
from quire.opening.opener import opened_source

if TYPE_CHECKING:
    from quire.converting.conversion import Converted


def salvage(
    damaged: str | PathLike[str],
    dest: str | PathLike[str],
    *,
    progress: Callable[[str, int, int], object] | None = None,
) -> Converted:
    """
    Write the messages of a damaged Chronicle Queue that can be read to a new queue.

    Each goes into the cycle that it was in, and keeps its index unless messages before it in that
    cycle are lost; :class:`quire.converting.IndexMap` has the indexes of all. The damaged queue is
    only read. Messages after damage are reached by the index of their file: those between the
    damage and the next index entry are lost as well.

    Args:
        damaged: The directory of the queue.
        dest: The directory of the new one; it does not exist, or is empty.
        progress: Called now and then, with what is done, and counts of messages.

    Returns:
        How many messages there are in the new queue, and in ``lost`` which are missing.

    Raises:
        UnsupportedError: The queue is of an older format.
        ConvertError: *dest* holds something other than this salvage.

    Examples:
        >>> index = appender.write_text("hello")
        >>> found = quire.salvage("orders", "saved")
        >>> found.messages, found.lost
        (1, ())
        >>> quire.converting.IndexMap("saved")[index] == index
        True

    """
    from quire.converting.conversion import convert

    with opened_source(damaged, "damaged") as queue:
        if not isinstance(queue, JournalQueue):
            raise UnsupportedError(
                f"salvaging a queue of an older format: path={damaged} (quire repair rebuilds the"
                " index of a Vanilla Chronicle; quire convert reads what is whole)"
            )
        return convert(
            queue,
            dest,
            into="chronicle",
            on_damage="skip",
            progress=progress,
        )
