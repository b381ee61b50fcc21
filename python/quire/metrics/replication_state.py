"""A queue's role in a replication, and how many of its messages no replica has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from quire._common import replication_file
from quire._common.replication_file import Role, Standing
from quire._native import Queue, ReplicaStates
from quire.formats.adapters import journal_of
from quire.formats.protocols import AnyQueue


@dataclass(frozen=True, slots=True)
class ReplicationState:
    """
    A queue's role in a replication at one moment.

    Attributes:
        role: ``source`` or ``sink``: the queue's latest role.
        epoch: The number of its source's epoch.
        acknowledged_index: The last message that a replica has acknowledged; None before the first.
        lag: For a source, how many messages no replica has acknowledged; None for a sink.
        in_sync: For a source, 1 for each replica in the in-sync set and 0 for the others, by name.
        replica_lag: For a source, how many messages each replica has not acknowledged, by name.

    Examples:
        >>> queue.metrics().replication is None  # it was never replicated
        True

    """

    role: Role
    epoch: int
    acknowledged_index: int | None
    lag: int | None
    in_sync: Mapping[str, int] = field(default_factory=dict[str, int])
    replica_lag: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def roles(self) -> Mapping[str, int]:
        """1 for the queue's role, 0 for the other."""
        return {role: int(role == self.role) for role in ("source", "sink")}


def replication_of(queue: AnyQueue) -> ReplicationState | None:
    """
    Return a queue's role in a replication; None if it is not replicated.

    Raises:
        CorruptError: The queue's replication file is damaged.

    """
    journal = journal_of(queue)
    if journal is None or not Path(queue.path).is_dir():
        return None
    found = replication_file.read(queue.path)
    state = None if found is None else state_of(journal, found)
    if state is None or state.role != "source":
        return state
    states = ReplicaStates.open_existing(queue.path, read_only=True)
    rows = [] if states is None else states.replicas()
    return replace(
        state,
        in_sync={name: int(is_member) for name, _, is_member, *_ in rows},
        replica_lag={name: _messages_after(journal, index) for name, *_, index, _, _ in rows},
    )


def state_of(queue: Queue, standing: Standing) -> ReplicationState | None:
    """Return the role of a queue whose file was already read; no file is opened."""
    if standing.role == "none":
        return None
    index = queue.last_acknowledged_index
    lag = _messages_after(queue, index) if standing.role == "source" else None
    return ReplicationState(standing.role, standing.epoch, index, lag)


def _messages_after(queue: Queue, index: int | None) -> int:
    """Return how many of the existing messages follow an index."""
    first, last = queue.first_index, queue.last_index
    if first is None or last is None:
        return 0
    if index is None or index < first:
        return queue.entry_count
    return queue.count_excerpts(index, last) if index < last else 0
