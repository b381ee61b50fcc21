"""Removing a replica from the in-sync set by hand."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any, Final

from quire._common.durable import SafeFolder
from quire._native import ReplicaStates
from quire.errors import NotAQueueError, ReplicationError
from quire.replication import standing
from quire.replication.mailbox import Mailbox

MAILBOX: Final = Mailbox("forget it", "forget", "name")
_ANSWER_S: Final = 30.0


def forget(path: str | PathLike[str], name: str) -> None:
    """
    Remove a replica from the in-sync set of a source: appends no longer wait for it.

    If it is promoted, messages that it has not acknowledged are lost. If it connects again and
    catches up, it is a member again. The set of a :class:`Node` is also in etcd, where the node
    that is the source removes it first: until then it might be promoted.

    Args:
        path: The directory of the source's queue, which may be in use.
        name: The name of the replica.

    Raises:
        ReplicationError: The in-sync set has no member of this name; or it is in etcd, and the node
            that is the source does not run here, or etcd does not answer.

    Examples:
        >>> import asyncio
        >>> from quire.replication import Sink, Source, forget
        >>> async def replicate(queue):
        ...     async with Source(queue) as source:
        ...         async with Sink("backup", port=source.address[1], name="old") as sink:
        ...             await sink.stored(queue.last_index)
        ...             await source.acknowledged(queue.last_index)
        >>> with quire.open("kept") as queue:
        ...     _ = queue.appender().write_text("hello")
        ...     asyncio.run(replicate(queue))
        ...     [(replica.name, replica.in_sync) for replica in queue.replicas]
        ...     forget("kept", "old")
        ...     [(replica.name, replica.in_sync) for replica in queue.replicas]
        [('old', True)]
        [('old', False)]

    """
    if standing.read(path) is None:
        raise NotAQueueError(f"not a replicated queue: path={fspath(path)}")
    states = ReplicaStates.open_existing(path)
    if states is not None and states.lease_end:
        MAILBOX.ask(path, {"name": name}, to=name, waits_s=_ANSWER_S)
        return
    if states is None or not states.forget(name):
        members = [] if states is None else [it[0] for it in states.replicas() if it[2]]
        text = "the in-sync set has no member of this name"
        raise ReplicationError(f"{text}: name={name!r} in_sync={members} path={fspath(path)}")


def take_request(folder: SafeFolder) -> Mapping[str, Any] | None:
    """Return the request to forget a replica, for the node that is the source, once."""
    return MAILBOX.take(folder, lambda asked: isinstance(asked["name"], str))
