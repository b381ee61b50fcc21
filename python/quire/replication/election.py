"""
The steps of a node about its lease and the role of source, without I/O except the register.

A step may take long, since it waits for etcd. Nothing here knows queues, sockets or processes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from quire.errors import NameTakenError
from quire.replication.register import (
    EPOCH,
    IN_SYNC,
    LEADER,
    MARKS,
    NODES,
    SUCCESSOR,
    Compare,
    Entry,
    Leader,
    Put,
    Register,
    View,
    key_of,
    queues_in,
    shown_epoch,
    shown_leader,
    shown_names,
    view_of,
)
from quire.replication.register import ROOT as ROOT_PREFIX

_S: Final = 1_000_000_000
_RENEWALS: Final = 3  # in the time of a lease


@dataclass(frozen=True, slots=True)
class Standpoint:
    """
    The role of a node.

    Attributes:
        leader: The source: this node, another one, or none.
        is_own: Whether this node is the source.
        lease_end_ns: When this node's lease ends, by the clock of the steps; 0: it has none.

    """

    leader: Leader | None
    is_own: bool
    lease_end_ns: int


class Candidate:
    """
    A node of a queue, as it takes part in the election.

    Args:
        register: The state on which the nodes agree.
        name: The node's name.
        address: The address at which it serves.
        lease_s: How long it may remain the source without hearing from etcd.
        now_ns: A clock that is never set, and continues while the machine is suspended.

    """

    def __init__(
        self,
        register: Register,
        *,
        name: str,
        address: str,
        lease_s: int,
        now_ns: Callable[[], int],
    ) -> None:
        self._register, self._name, self._address = register, name, address
        self._lease_s, self._now_ns = lease_s, now_ns
        self._token = secrets.token_hex(8)
        self._lease = self._end_ns = self._renewed_ns = 0
        self._began_ns = now_ns()
        self.queue = ""
        self.view: View | None = None

    @property
    def address(self) -> str:
        """Where the node serves."""
        return self._address

    def queues(self) -> list[str]:
        """Return the queues that have a source now."""
        return queues_in(self._register.read(ROOT_PREFIX))

    def step(self, *, may_lead: bool, own_epoch: int = 0, is_first: bool = False) -> Standpoint:
        """
        Renew the lease, and become the source if this node may.

        Args:
            may_lead: Whether the local queue is ready for it.
            own_epoch: The latest epoch that this node knows otherwise.
            is_first: Whether it may be the first source in etcd.

        Raises:
            RegisterError: etcd does not answer, or another live node has this name.

        """
        self._renew()
        view = self._look()
        if view.leader is None and may_lead and self._lease:
            self._campaign(view, own_epoch, is_first=is_first)
            view = self._look()
        return self._standpoint(view)

    def _standpoint(self, view: View) -> Standpoint:
        entry = view.leader_entry
        is_own = entry is not None and entry.lease == self._lease and self._lease != 0
        return Standpoint(view.leader, is_own, self._end_ns if self._lease else 0)

    def _look(self) -> View:
        self.view = view_of(self._register.read(key_of(self.queue, "")), self.queue)
        return self.view

    def _renew(self) -> None:
        """Obtain or renew a lease, and the node's key with it."""
        now = self._now_ns()
        if self._lease and now - self._renewed_ns < self._lease_s * _S // _RENEWALS:
            return
        # What was sent before this moment began no lease that is longer.
        if self._lease:
            ttl_s = self._register.keep_alive(self._lease)
            if ttl_s > 0:
                self._renewed_ns, self._end_ns = now, now + min(ttl_s, self._lease_s) * _S
                return
            self._lease = self._end_ns = 0
            now = self._now_ns()
        lease = self._register.grant(self._lease_s)
        self._register_name(lease)
        self._lease, self._renewed_ns = lease, now
        self._end_ns = now + self._lease_s * _S

    def _register_name(self, lease: int) -> None:
        key = key_of(self.queue, NODES + self._name)
        put = Put(key, f"{self._address} {self._token}", lease)
        if self._register.commit([Compare(key, "CREATE", 0)], [put]):
            return
        found = self._register.read(key).get(key)
        if found is not None and self._is_mine(found):
            # Of this process: its lease is over, or nearly.
            same = Compare(key, "MOD", found.modified)
            if self._register.commit([same], [put]):
                return
        self._register.revoke(lease)
        where = "" if found is None else found.value.partition(" ")[0]
        text = "another node of this name lives, or its lease is not over yet"
        waited_s = (self._now_ns() - self._began_ns) / _S
        shown = f"name={self._name} address={where} waited_s={waited_s:.1f}"
        raise NameTakenError(f"{text}: {shown} queue={self.queue}")

    def _is_mine(self, node: Entry) -> bool:
        """Whether the key of a node is that of this process."""
        return node.value.endswith(f" {self._token}")

    def is_name_lost(self) -> bool:
        """Whether the name was taken for longer than a dead node's lease lasts."""
        return self._now_ns() - self._began_ns > (self._lease_s + 2) * _S

    def _campaign(self, view: View, own_epoch: int, *, is_first: bool) -> None:
        """Try to become the source."""
        is_member = self._name in view.in_sync and view.successor in {None, self._name}
        if not (is_member if view.exists else is_first):
            return
        epoch = max(view.epoch, own_epoch) + 1
        # The source before may have more than was acknowledged: it is one of them again once it
        # has put that aside and caught up.
        others = view.in_sync - ({view.last} if view.last != self._name else set())
        leader = Leader(self._name, self._address, epoch)
        keys = [key_of(self.queue, it) for it in (EPOCH, IN_SYNC)]
        compares = [
            Compare(key_of(self.queue, LEADER), "CREATE", 0),
            *(
                Compare(key, "MOD", view.revisions.get(it, 0))
                for key, it in zip(keys, (EPOCH, IN_SYNC), strict=True)
            ),
        ]
        puts = [
            Put(key_of(self.queue, LEADER), shown_leader(leader), self._lease),
            Put(keys[0], shown_epoch(epoch, self._name)),
            Put(keys[1], shown_names(others | {self._name})),
            Put(key_of(self.queue, SUCCESSOR), None),
        ]
        self._register.commit(compares, puts)

    def change_in_sync(self, *, add: frozenset[str], remove: frozenset[str]) -> bool:
        """Change the in-sync set, as only the source may; return whether it has changed."""
        view = self.view
        if view is None or not self._standpoint(view).is_own or view.leader_entry is None:
            return False
        names = (view.in_sync | add) - remove
        if names == view.in_sync:
            return False
        key = key_of(self.queue, IN_SYNC)
        compares = [
            Compare(key_of(self.queue, LEADER), "CREATE", view.leader_entry.created),
            Compare(key, "MOD", view.revisions.get(IN_SYNC, 0)),
        ]
        return self._register.commit(compares, [Put(key, shown_names(names))])

    def withdraw(self) -> bool:
        """
        Leave the in-sync set of another source; return whether this node is out of it.

        A node that has lost messages which it had acknowledged does so. The mark of its directory
        does not count any more.
        """
        view = self._look()
        mark = MARKS + self._name
        forgotten = Put(key_of(self.queue, mark), None)
        if self._name not in view.in_sync:
            same = Compare(forgotten.key, "MOD", view.revisions.get(mark, 0))
            return mark not in view.revisions or self._register.commit([same], [forgotten])
        if view.leader is None or view.leader_entry is None or view.leader.name == self._name:
            return False
        key = key_of(self.queue, IN_SYNC)
        compares = [
            Compare(key_of(self.queue, LEADER), "CREATE", view.leader_entry.created),
            Compare(key, "MOD", view.revisions.get(IN_SYNC, 0)),
        ]
        names = Put(key, shown_names(view.in_sync - {self._name}))
        return self._register.commit(compares, [names, forgotten])

    def counts_on(self, marks: Collection[str]) -> bool:
        """
        Return whether the directory of this node is as it was in the in-sync set.

        An older state of it may lack what the node has acknowledged.

        Args:
            marks: The marks of the directory.

        Raises:
            RegisterError: etcd does not answer.

        """
        view = self._look()
        known = view.marks.get(self._name)
        return self._name not in view.in_sync or known is None or known in marks

    def mark(self, replaced: Callable[[str | None], str | None]) -> bool:
        """
        Replace the mark of this node's directory; return whether etcd has the new one.

        Args:
            replaced: Gives the directory a new mark and returns it. It gets the present one, which
                the directory keeps.

        Raises:
            RegisterError: etcd does not answer.

        """
        view = self._look()
        node = view.nodes.get(self._name)
        if node is None or not self._is_mine(node):
            return False
        mark = replaced(view.marks.get(self._name))
        if mark is None:
            return False
        key, name = key_of(self.queue, MARKS + self._name), NODES + self._name
        compares = [
            Compare(key_of(self.queue, name), "CREATE", node.created),
            Compare(key, "MOD", view.revisions.get(MARKS + self._name, 0)),
        ]
        return self._register.commit(compares, [Put(key, mark)])

    def resign(self, successor: str | None = None) -> None:
        """Stop being the source, in favour of one node or any; the lease stays."""
        view = self._look()
        if not self._standpoint(view).is_own or view.leader_entry is None:
            return
        key = key_of(self.queue, LEADER)
        puts = [Put(key, None)]
        if successor is not None:
            lease = self._register.grant(self._lease_s)
            puts.append(Put(key_of(self.queue, SUCCESSOR), successor, lease))
        self._register.commit([Compare(key, "CREATE", view.leader_entry.created)], puts)

    def leave(self) -> None:
        """End the lease at once, so that another node may become the source."""
        lease, self._lease, self._end_ns = self._lease, 0, 0
        if lease:
            self._register.revoke(lease)
