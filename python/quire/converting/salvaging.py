"""Writing the readable messages of a damaged queue to a new one."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from quire.errors import UnsupportedError
from quire.handles.journal.queue import JournalQueue
from quire.opening.opener import opened_whole

if TYPE_CHECKING:
    from quire.converting.conversion import Converted


def salvage(
    damaged: str | PathLike[str],
    dest: str | PathLike[str],
    *,
    progress: Callable[[str, int, int], object] | None = None,
) -> Converted:
    """
    Write the readable messages of a damaged Chronicle Queue to a new queue.

    Each message stays in its cycle, and keeps its index unless messages before it in that cycle are
    lost; :class:`quire.converting.IndexMap` has the indexes of all. The damaged queue is only read.
    Messages after damage are reached by the index in their file, so those between the damage and
    the next index entry are lost as well.

    Args:
        damaged: The directory of the queue.
        dest: The directory of the new queue, which does not exist or is empty.
        progress: Called from time to time with the name of the step, the number of messages done,
            and their total number.

    Returns:
        The number of messages in the new queue, and in ``lost`` the ranges that are missing.

    Raises:
        UnsupportedError: The queue is of an older format.
        ConvertError: *dest* does not hold this salvage.

    Examples:
        >>> index = appender.write_text("hello")
        >>> found = quire.salvage("orders", "saved")
        >>> found.messages, found.lost
        (1, ())
        >>> quire.converting.IndexMap("saved")[index] == index
        True

    """
    from quire.converting.conversion import convert

    with opened_whole(damaged, "damaged") as queue:
        if not isinstance(queue, JournalQueue):
            raise UnsupportedError(
                f"only a Chronicle Queue can be salvaged: path={damaged} (quire repair rebuilds the"
                " index of a Vanilla Chronicle; quire convert reads the undamaged messages)"
            )
        return convert(
            queue,
            dest,
            into="chronicle",
            on_damage="skip",
            progress=progress,
        )
