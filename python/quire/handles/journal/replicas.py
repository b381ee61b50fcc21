"""The replicas of a queue, as all its processes see them."""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

from quire import _native
from quire._native import ReplicaStates
from quire.errors import IndexOutOfRangeError


class Replica(NamedTuple):
    """
    A replica of a queue, from :attr:`quire.JournalQueue.replicas`.

        late = [replica.name for replica in queue.replicas if replica.lag_s > 1]

    Attributes:
        name: The replica's name.
        address: The address of its last connection.
        in_sync: Whether it is a member of the in-sync set: appends with ``wait="all"`` wait for it.
        acknowledged_index: The last message it has acknowledged; None before the first, and after
            this machine was started until it has connected again.
        lag_messages: How many messages of the queue it has not acknowledged.
        lag_bytes: About how many bytes of roll files they take.
        lag_s: How long ago the last message it has acknowledged was sent; 0 if it has all. Infinite
            if it has acknowledged nothing.
        level: What it acknowledges: ``stored``, in its files, or ``synced``, on its medium.
        connected: Whether it is connected to the source now.

    """

    name: str
    address: str
    in_sync: bool
    acknowledged_index: int | None
    lag_messages: int
    lag_bytes: int
    lag_s: float
    level: Literal["stored", "synced"]
    connected: bool


def replicas_of(queue: _native.Queue) -> list[Replica]:
    """Return the replicas of a queue; none if it has no file of them."""
    states = ReplicaStates.open_existing(queue.path, read_only=True)
    if states is None:
        return []
    last = queue.last_index
    found: list[Replica] = []
    for name, address, is_member, connected, level, index, _, time_ns in states.replicas():
        messages = _messages_after(queue, index, last)
        lag_s = 0.0
        if messages:
            lag_s = max(0.0, time.time() - time_ns / 1e9) if time_ns else float("inf")
        size = _bytes_after(queue, index) if messages else 0
        found.append(
            Replica(name, address, is_member, index, messages, size, lag_s, level, connected)
        )
    return found


def forget_beyond(states: ReplicaStates, queue: _native.Queue) -> None:
    """
    Have nothing beyond the end of a queue count as what another machine has.

    Before others append: the end was put aside, or lost, and a message that gets the same index
    now is another one. No source stores what replicas have meanwhile.
    """
    noted = [states.elsewhere, *(acknowledged for *_, acknowledged, _, _ in states.replicas())]
    last = queue.last_index  # later than those were noted: what is appended meanwhile is no loss
    end = -1 if last is None else last
    if any(it is not None and it > end for it in noted):
        states.note_cut(last)


def _messages_after(queue: _native.Queue, index: int | None, last: int | None) -> int:
    if last is None or (index is not None and index >= last):
        return 0
    if index is None:
        return queue.entry_count
    try:
        return queue.count_excerpts(index, last)
    except IndexOutOfRangeError:  # what it has was deleted here
        return queue.entry_count


def _bytes_after(queue: _native.Queue, index: int | None) -> int:
    first = -1 if index is None else queue.roll_cycle.to_cycle(index)
    size = 0
    for cycle in queue.cycles:
        found = queue.end_of_cycle(cycle) if cycle >= first else None
        if found is not None:
            size += found[0]
    if index is not None and size:
        size -= queue._position_of(index) or 0  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return max(0, size)
