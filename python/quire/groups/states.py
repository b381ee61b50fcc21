"""The pending work of a queue's groups, from their side files alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple

from quire._native import group_backlog, group_delivered, group_members, group_tails
from quire.formats.adapters import adapter_of, count_of, cycles_of, numbering_of

if TYPE_CHECKING:
    from quire.formats.protocols import AnyQueue

_SUFFIX: Final = ".qgroup"
_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\.qgroup")


class GroupMemberState(NamedTuple):
    """A member of a group that is alive."""

    name: str
    pid: int
    messages: int
    """How many of its messages are not acknowledged yet."""


class GroupState(NamedTuple):
    """The state of a consumer group at one moment."""

    name: str
    lag: int
    """How many messages are not acknowledged."""
    lowest_index: int
    """The index of the first message that it still needs; 0 for the first of the queue."""
    next_index: int
    """The index after the last message that was delivered; 0 if none was."""
    members: tuple[GroupMemberState, ...]
    pending: int
    """How many messages were claimed and are not acknowledged."""
    oldest_age_s: float | None
    """The seconds since the oldest delivery that is not acknowledged; None if there is none."""


@dataclass(frozen=True, slots=True)
class PendingMessage:
    """
    A message that was delivered and is not acknowledged, from :meth:`Group.pending`.

    Examples:
        >>> _ = appender.write_text("hello")
        >>> with queue.group("billing").consumer("c1") as consumer:
        ...     _ = consumer.read().nack(delay_s=60)
        >>> (waiting,) = queue.group("billing").pending()
        >>> waiting.consumer, waiting.delivery_count, waiting.cause, waiting.delay_s > 50
        (None, 1, 'refused', True)

    """

    index: int
    consumer: str | None
    """The name of the living consumer that has it; None if it waits to be delivered again."""
    pid: int | None
    """The pid of that consumer."""
    delivery_count: int
    """How often it was delivered, at most 255."""
    age_s: float | None
    """The seconds since its range was last delivered; None if an earlier version did that."""
    timeout_s: float | None
    """The seconds until it times out; None if no consumer has it, or if its time has not begun."""
    delay_s: float
    """The seconds until it may be delivered again, where it waits for that."""
    cause: str | None
    """Why it waits to be delivered again, as `GroupMessage.redelivery_cause`."""


def side_files(path: str | PathLike[str]) -> list[Path]:
    """Return the side files of all groups of a queue; files with impossible names are ignored."""
    found = (file for file in Path(path).glob(f"*{_SUFFIX}") if _FILE.fullmatch(file.name))
    return sorted(file for file in found if file.is_file())


def is_group_name(name: str) -> bool:
    """Return whether a group can have a name."""
    return _FILE.fullmatch(f"{name}{_SUFFIX}") is not None


def side_file(path: str | PathLike[str], name: str) -> Path:
    """Return the side file of one group."""
    return Path(path) / f"{name}{_SUFFIX}"


def lowest_needed(path: str | PathLike[str]) -> dict[str, int]:
    """
    Return the index of the first message that each group of a queue still needs.

    0 stands for the first message of the queue. Nothing is changed, and no message is read. A group
    with a damaged side file needs all messages: it will start again with the first.

    Args:
        path: The queue's directory.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> with queue.group("billing").consumer() as consumer:
        ...     _ = consumer.read().ack()
        >>> quire.groups.lowest_needed(queue.path) == {"billing": queue.last_index}
        True

    """
    found = {file: group_backlog(file) for file in side_files(path)}
    return {file.stem: backlog[2] for file, backlog in found.items() if backlog is not None}


def pending_of(file: Path) -> list[PendingMessage]:
    """Return the messages of a side file that were delivered and are not acknowledged."""
    return [
        PendingMessage(
            index,
            owner and owner[0],
            owner and owner[1],
            count,
            _age_s(since_ms),
            None if left_ms is None else left_ms / 1000,
            delay_ms / 1000,
            cause,
        )
        for index, count, owner, since_ms, left_ms, delay_ms, cause in group_delivered(file)
    ]


def _age_s(since_ms: int | None) -> float | None:
    return None if since_ms is None else max(0.0, time() - since_ms / 1000)


def states_of(queue: AnyQueue) -> list[GroupState]:
    """Return the state of each group of a queue, in the order of their names."""
    return [state_of(queue, file.stem) for file in side_files(queue.path)]


def state_of(queue: AnyQueue, name: str) -> GroupState:
    """Return the state of a group, even if no consumer has joined it yet."""
    file = side_file(queue.path, name)
    following, unacknowledged, lowest, oldest_ms = group_backlog(file) or (0, 0, 0, None)
    members = tuple(GroupMemberState(*it) for it in group_members(file))
    place = _place(queue, following, file)
    if place is None or place > lowest:
        lag = unacknowledged + count_from(queue, following if place is None else place)
    else:
        lag, lowest = count_from(queue, place), place
    return GroupState(name, lag, lowest, following, members, unacknowledged, _age_s(oldest_ms))


def _place(queue: AnyQueue, following: int, file: Path) -> int | None:
    """Return where a group continues if its position no longer fits the queue."""
    if not following or adapter_of(queue).why_no_groups is not None:
        return None
    from quire.groups.fitting import place_in
    from quire.groups.reader import Reader

    reader = Reader(queue)
    try:
        return place_in(queue, reader, following, group_tails(file))
    finally:
        reader.close()


def count_from(queue: AnyQueue, index: int) -> int:
    """Return how many messages there are from an index on, by the queue's own index."""
    numbering = numbering_of(queue)
    first = numbering.to_cycle(index)
    total = 0
    for cycle in cycles_of(queue):
        if cycle >= first:
            low = numbering.to_sequence(index) if cycle == first else 0
            total += max(0, count_of(queue, cycle) - low)
    return total
