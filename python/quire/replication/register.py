"""
The state on which nodes agree, in etcd: the source, its lease, and its possible successors.

Consensus is etcd's. Nothing here knows queues or connections.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, cast

from quire.errors import RegisterError

ROOT: Final = "/quire/"
LEADER: Final = "leader"
EPOCH: Final = "epoch"
IN_SYNC: Final = "in-sync"
SUCCESSOR: Final = "successor"
NODES: Final = "nodes/"
MARKS: Final = "marks/"


class Entry(NamedTuple):
    """
    A key's value, and the revisions that transactions compare.

    Attributes:
        value: The value.
        created: The revision that created the key.
        modified: The revision that last changed it.
        lease: The lease that it ends with; 0: none.

    """

    value: str
    created: int
    modified: int
    lease: int


class Compare(NamedTuple):
    """A condition of a transaction: the revision that created or last changed a key; 0: none."""

    key: str
    what: str
    revision: int


class Put(NamedTuple):
    """A change of a transaction; None removes the key."""

    key: str
    value: str | None
    lease: int = 0


class Register(Protocol):
    """The operations of etcd that are used; they raise `EtcdAwayError` if it cannot answer."""

    def read(self, prefix: str) -> Mapping[str, Entry]:
        """Return the keys with a prefix, as of one revision."""
        ...

    def commit(self, compares: Sequence[Compare], puts: Sequence[Put]) -> bool:
        """Do all changes if all conditions hold; return whether they did."""
        ...

    def grant(self, ttl_s: int) -> int:
        """Return a new lease."""
        ...

    def keep_alive(self, lease: int) -> int:
        """Renew a lease; return for how many seconds, and 0 if it is over."""
        ...

    def revoke(self, lease: int) -> None:
        """End a lease, and its keys."""
        ...


@dataclass(frozen=True, slots=True)
class Leader:
    """
    The source.

    Attributes:
        name: Its node.
        address: The address at which it serves.
        epoch: The number of its epoch.

    """

    name: str
    address: str
    epoch: int


@dataclass(frozen=True, slots=True)
class View:
    """
    The state of a queue in etcd.

    Attributes:
        leader: The source, if there is one now.
        leader_entry: Its key.
        epoch: The latest epoch that began; 0: none ever did.
        last: The node that began that epoch.
        in_sync: The nodes that have all acknowledged messages.
        successor: The only node that may be the next source, if one was named.
        nodes: The live nodes.
        marks: The marks of the nodes' directories.

    """

    leader: Leader | None
    leader_entry: Entry | None
    epoch: int
    last: str
    in_sync: frozenset[str]
    successor: str | None
    nodes: Mapping[str, Entry]
    marks: Mapping[str, str]
    revisions: Mapping[str, int]

    @property
    def exists(self) -> bool:
        """Whether the queue ever had a source in etcd."""
        return self.epoch > 0


def key_of(queue: str, name: str) -> str:
    """Return a key of a queue."""
    return f"{ROOT}{queue}/{name}"


def view_of(entries: Mapping[str, Entry], queue: str) -> View:
    """
    Return the state of a queue in etcd.

    Raises:
        RegisterError: A value was not written by a node.

    """
    start = key_of(queue, "")
    found = {key.removeprefix(start): it for key, it in entries.items() if key.startswith(start)}
    leader = found.get(LEADER)
    reign = _object(found, EPOCH) if EPOCH in found else {"epoch": 0, "name": ""}
    return View(
        leader=None if leader is None else _leader(_object(found, LEADER)),
        leader_entry=leader,
        epoch=_epoch(reign),
        last=_text(reign, "name"),
        in_sync=_names(found.get(IN_SYNC)),
        successor=found[SUCCESSOR].value if SUCCESSOR in found else None,
        nodes={it.removeprefix(NODES): found[it] for it in found if it.startswith(NODES)},
        marks={it.removeprefix(MARKS): found[it].value for it in found if it.startswith(MARKS)},
        revisions={name: it.modified for name, it in found.items()},
    )


def queues_in(entries: Mapping[str, Entry]) -> list[str]:
    """Return the queues that have a source."""
    parts = [key.removeprefix(ROOT).split("/") for key in entries]
    return sorted({it[0] for it in parts if it[1:] == [LEADER]})


def shown_leader(leader: Leader) -> str:
    """Return the value of the source's key."""
    return json.dumps({"name": leader.name, "address": leader.address, "epoch": leader.epoch})


def shown_epoch(epoch: int, name: str) -> str:
    """Return the value of the key that keeps the epoch."""
    return json.dumps({"epoch": epoch, "name": name})


def shown_names(names: frozenset[str]) -> str:
    """Return the value of the in-sync set's key."""
    return json.dumps(sorted(names))


def _leader(found: Mapping[str, Any]) -> Leader:
    return Leader(_text(found, "name"), _text(found, "address"), _epoch(found))


def _object(found: Mapping[str, Entry], key: str) -> Mapping[str, Any]:
    value = _json(found[key].value)
    if not isinstance(value, dict):
        raise _refused(key, value)
    return cast("dict[str, Any]", value)


def _names(entry: Entry | None) -> frozenset[str]:
    if entry is None:
        return frozenset()
    value = _json(entry.value)
    names = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(it, str) for it in names):
        raise _refused(IN_SYNC, entry.value)
    return frozenset(str(it) for it in names)


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise _refused(key, value)
    return value


def _epoch(found: Mapping[str, Any]) -> int:
    value = found.get("epoch")
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise _refused("epoch", value)
    return value


def _json(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _refused(key: str, value: object) -> RegisterError:
    text = "etcd has a value that no node has written"
    return RegisterError(f"{text}: key={key} found={value!r}")
