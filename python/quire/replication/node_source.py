"""The source of a node: it hands over in etcd, so that no other node takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from quire.errors import HandoverError, ReplicationError
from quire.handles.journal.queue import JournalQueue
from quire.replication.election import Candidate
from quire.replication.in_sync import InSyncSet
from quire.replication.source import Source
from quire.replication.source_session import SourceSession
from quire.replication.standing import Standing
from quire.replication.succession import ClosedQueue, Handover, Succession, Successor
from quire.replication.tls import Tls
from quire.replication.unbroken import in_thread, result_of
from quire.replication.wire import Place

_POLL_S: Final = 0.05
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Office:
    """
    The shared state of a node's parts: which node is the source.

    Args:
        candidate: Asks etcd, in a thread, one request at a time.

    Attributes:
        changed: Set when the node's role has changed.
        is_switching: Whether the node hands over its role, and does nothing else meanwhile.

    """

    def __init__(self, candidate: Candidate) -> None:
        self.candidate: Final = candidate
        self.changed = asyncio.Event()
        self.is_switching = False
        self._asking = asyncio.Lock()

    async def ask(self, question: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs) -> _T:
        """
        Return etcd's answer.

        Raises:
            RegisterError: etcd does not answer.

        """
        async with self._asking:
            return await result_of(in_thread(question, *given, **named))

    def end_switch(self) -> None:
        """Let the node determine its role again."""
        self.is_switching = False
        self.changed.set()


class NodeSource(Source):
    """
    A source that hands over in etcd, and whose in-sync set is stored there.

    Args:
        office: The node's.
        queue: The queue, which stays open.
        host: The address to listen on.
        port: The port.
        tls: The certificates.
        insecure: Listen beyond this machine without them.
        compress: Compress batches for sinks that support it.

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        office: Office,
        queue: JournalQueue,
        *,
        host: str,
        port: int,
        tls: Tls | None,
        insecure: bool,
        compress: bool,
    ) -> None:
        super().__init__(queue, host=host, port=port, tls=tls, insecure=insecure, compress=compress)
        self._office = office

    @property
    def ends(self) -> dict[str, int]:
        """The index after the last message of each sink that follows."""
        following = [it for it in self._sessions if it.reader is not None]
        return {it.name: 0 if it.acknowledged is None else it.acknowledged.next for it in following}

    def _new_in_sync_set(self) -> InSyncSet:
        """Return a set that sinks join only through etcd: only then may a node be promoted."""
        return InSyncSet(self._original.queue, self.epoch, None, joins=False)

    def _succession(self, session: SourceSession, timeout_s: float) -> Succession:
        return _NodeSuccession(self._handover_to(session, timeout_s), self._office)


class _NodeSuccession(Succession):
    """A handover between nodes: in etcd, only the sink may become the next source."""

    def __init__(self, handover: Handover, office: Office) -> None:
        super().__init__(handover)
        self._office = office

    def _check(self) -> None:
        view = self._office.candidate.view
        members = frozenset[str]() if view is None else view.in_sync
        if self._session.name not in members:
            text = "only a node of the in-sync set can take over"
            raise ReplicationError(f"{text}: {self._shown} in_sync={','.join(sorted(members))}")

    async def _give_away(self, closed: ClosedQueue) -> Standing:
        self._office.is_switching = True
        self._may_undo = False  # the sink may be the source as soon as etcd is asked
        asking = self._office.ask(self._office.candidate.resign, self._session.name)
        try:
            await result_of(asyncio.ensure_future(asking))
            return await super()._give_away(closed)
        except BaseException:
            self._office.end_switch()
            raise

    @property
    def _hint(self) -> str:
        return " (etcd says which node is the source)"

    async def _confirmed(self, epoch: int, place: Place | None) -> Successor:  # noqa: ARG002
        try:
            return await self._new_source(epoch)
        finally:
            self._office.end_switch()

    async def _new_source(self, epoch: int) -> Successor:
        """Wait until a node has begun the epoch."""
        ends = asyncio.get_running_loop().time() + self._timeout_s
        while asyncio.get_running_loop().time() < ends:
            view = self._office.candidate.view
            leader = None if view is None else view.leader
            if leader is not None and leader.epoch >= epoch:
                return Successor(leader.name, leader.epoch, parsed_address(leader.address))
            await asyncio.sleep(_POLL_S)
        raise HandoverError(f"the node did not take over in time: {self._shown} epoch={epoch}")


def shown_address(host: str, port: int) -> str:
    """Return an address as text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parsed_address(text: str) -> tuple[str, int]:
    """
    Return the address in a text.

    Raises:
        ReplicationError: The text is not an address.

    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ReplicationError(f"a node has no valid address: address={text!r}")
    return host.strip("[]"), int(port)
