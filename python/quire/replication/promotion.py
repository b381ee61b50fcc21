"""Promoting a replica: it becomes the source."""

from __future__ import annotations

import time
from os import PathLike, fspath
from typing import Final

from quire._native import BatchWriter, ReplicaStates
from quire.errors import AppendLockedError, ReplicationError
from quire.formats.journal import APPEND_LOCK
from quire.handles.journal.queue import JournalQueue
from quire.handles.journal.replicas import forget_beyond
from quire.opening.opener import open_without_key as open_queue
from quire.replication import aside, directory_mark, epoch_starts, standing
from quire.replication.epochs import without_source
from quire.replication.own_states import states_of
from quire.replication.positions import free_groups

_POLL_S: Final = 0.05


def promote(path: str | PathLike[str], *, timeout_s: float = 10.0) -> int:
    """
    Make a replica the source: from then on it accepts appends.

    A sink that is running for it ends first. A new epoch begins: the sinks of this queue refuse the
    old source, which has to become a sink.

    Args:
        path: The replica's directory.
        timeout_s: How long the sink may take to end.

    Returns:
        The number of the epoch that begins.

    Raises:
        ReplicationError: The queue is not a replica, or no longer one.
        AppendLockedError: The replica's sink did not end in time.
        WriterInUseError: A source of the queue runs.

    Examples:
        >>> import asyncio
        >>> from quire.replication import Sink, Source, promote
        >>> async def replicate(queue):
        ...     async with Source(queue) as source, Sink("standby", port=source.address[1]) as sink:
        ...         await sink.stored(queue.last_index)
        >>> with quire.open("primary") as queue:
        ...     _ = queue.appender().write_text("hello")
        ...     asyncio.run(replicate(queue))
        >>> promote("standby")
        2

    """
    found = standing.read(path)
    if found is None or found.role == "none":
        raise ReplicationError(
            f"only a replica can be promoted, and this queue is not one: path={fspath(path)}"
        )
    was_source = found.role == "source"
    if not was_source:
        found = found.promoted()
        states = ReplicaStates.open_existing(path)
        if states is not None:
            with without_source(states):
                states.begin_epoch(found.epoch)  # before anybody may append
        directory_mark.remove(path)  # if it was a copy of a node's, it counts as the node's now
        standing.write(path, found)
    with open_queue(path, create=False) as queue:
        # A promotion that was killed here is finished now.
        is_closed = queue.lock_holder(APPEND_LOCK) is not None
        if was_source and not is_closed:
            text = "only a replica can be promoted, and this is the queue of a source"
            raise ReplicationError(f"{text}: path={fspath(path)} epoch={found.epoch}")
        if is_closed:
            writer = _writer(queue, timeout_s)
            aside.finish(queue, writer)
            states = states_of(queue)
            with without_source(states):
                forget_beyond(states, queue)
            epoch_starts.begin(queue, found.epoch)
            free_groups(queue)
            writer.promote()
    return found.epoch


def _writer(queue: JournalQueue, timeout_s: float) -> BatchWriter:
    """Return the writer, once the sink has noticed that the queue is no longer its own."""
    ends = time.monotonic() + timeout_s
    while True:
        try:
            return BatchWriter(queue)
        except AppendLockedError:
            if time.monotonic() >= ends:
                raise
        time.sleep(_POLL_S)
