"""A node: the source or a sink of a queue, as etcd's lease decides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Final, Literal

from quire._common import arguments
from quire._native import boot_time_ns
from quire.errors import (
    DivergedError,
    HandoverError,
    NameTakenError,
    OldEpochError,
    OptionsError,
    PeerLostError,
    PeerSilentError,
    QuireError,
    RegisterError,
)
from quire.formats.detection import CHRONICLE, refuse_others
from quire.replication.election import Candidate, Standpoint
from quire.replication.home import Home
from quire.replication.naming import check_name
from quire.replication.node_source import NodeSource, Office, parsed_address, shown_address
from quire.replication.register import Leader, Register
from quire.replication.sink import Sink
from quire.replication.tls import Tls, check_allowed, is_any_host
from quire.replication.unbroken import in_thread, result_of

_log = logging.getLogger("quire")
_POLL_S: Final = 0.2
_AGAIN_S: Final = 1.0
_MARK_S: Final = 60.0
"""An older state of the directory is recognised if it is older than this."""
_SHORTEST_LEASE_S: Final = 2
_NOBODY: Final = Standpoint(None, is_own=False, lease_end_ns=0)


@dataclass
class _Lag:
    """
    How far the sinks of a source are, and since when members of the in-sync set are gone.

    Joining sinks count here already. A sink that etcd was asked to add counts until etcd shows it,
    since the answer may have been lost.
    """

    last: int | None = None
    joining: dict[str, int] = field(default_factory=dict[str, int])
    asked: set[str] = field(default_factory=set[str])
    away: dict[str, float] = field(default_factory=dict[str, float])
    ends: dict[str, int] = field(default_factory=dict[str, int])


class Node:
    """
    Keeps a queue with other nodes: one is the source, the others are its sinks.

    The node that holds the lease in etcd is the source. When that node is lost, a node of the
    in-sync set becomes the source of the next epoch, at most the lease and two seconds later.

        etcd = Etcd("http://10.0.0.9:2379", timeout_s=2.5)
        node = Node("orders", etcd, name="a", host="10.0.0.1", port=7001, tls=tls)
        await node.run_forever()

    Args:
        path: The directory of the queue. If it does not exist, a copy is created there.
        register: The etcd: :class:`quire.replication.Etcd`.
        name: The node's name, unique among the nodes.
        host: The address at which it serves as the source, and which the other nodes can reach.
        port: The port.
        lease_s: For how many seconds a source continues without etcd; at least 2.
        queue: The identity of the queue, if etcd has several and the directory has none yet.
        acknowledge: Which messages it acknowledges as a sink: see :class:`Sink`.
        drop_after_s: After how many seconds a disconnected sink leaves the in-sync set; None:
            never.
        tls: The certificates of all nodes. Addresses beyond this machine need them.
        insecure: Allow addresses beyond this machine without certificates.
        compress: As the source, send batches compressed with zstd to sinks that support it.
        on_change: Called with the node's new role, for a log.

    Raises:
        OptionsError: An option is invalid.
        NotAQueueError: The directory holds a queue of another format.

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        path: str | PathLike[str],
        register: Register,
        *,
        name: str,
        host: str = "127.0.0.1",
        port: int,
        lease_s: int = 10,
        queue: str | None = None,
        acknowledge: Literal["stored", "synced"] = "stored",
        drop_after_s: float | None = None,
        tls: Tls | None = None,
        insecure: bool = False,
        compress: bool = False,
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        check_allowed(host, tls, insecure=insecure)
        refuse_others(fspath(path), "kept by nodes", CHRONICLE)
        if lease_s < _SHORTEST_LEASE_S:
            raise OptionsError(f"a lease is too short: lease_s={lease_s} least={_SHORTEST_LEASE_S}")
        check_name(name)
        if "/" in name:
            raise OptionsError(f"not the name of a node: {name=}")
        if is_any_host(host) or not 0 < port < 1 << 16:
            text = "not the address of a node, where the others reach it"
            raise OptionsError(f"{text}: address={shown_address(host, port)}")
        self._host, self._port, self._tls, self._insecure = host, port, tls, insecure
        self._name, self._queue, self._drop_after_s = name, queue, drop_after_s
        self._level: Literal["stored", "synced"] = arguments.one_of("stored", "synced")(
            "acknowledge", acknowledge
        )
        self._compress = arguments.flag("compress", compress)
        self._home = Home(path)
        self._candidate = Candidate(
            register,
            name=name,
            address=shown_address(host, port),
            lease_s=lease_s,
            now_ns=boot_time_ns,
        )
        self._office = Office(self._candidate)
        self._on_change = on_change
        self._standpoint = _NOBODY
        self._reign: int | None = None  # the epoch in which everybody may append here
        self._is_idle = True
        self._has_lost = False  # what it had acknowledged
        self._marked = asyncio.Event()
        self._trouble = ""

    async def run_forever(self) -> None:
        """
        Be a node until the task is cancelled.

            await node.run_forever()

        Raises:
            RegisterError: etcd does not answer when the node starts, or another live node has this
                name.
            OSError: The node cannot serve at its address, or its disk fails.
            ReplicationError: The queue here cannot be a replica.

        """
        await self._find_queue()
        with suppress(NameTakenError):
            await self._elect()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._elect_forever())
                group.create_task(self._act_forever())
                group.create_task(self._mark_forever())
        except* (QuireError, OSError) as errors:
            raise _first(errors) from None
        finally:
            await self._end()

    async def _end(self) -> None:
        """Close the queue, and let another node take over at once."""
        self._home.close()
        with suppress(RegisterError):
            if self._marked.is_set():  # copies that were made until now are older than this mark
                await self._replace_mark()
            await self._office.ask(self._candidate.leave)

    async def _find_queue(self) -> None:
        """Find out which queue this is: the one in the directory, or the only one in etcd."""
        self._has_lost = await result_of(in_thread(self._home.lacks_acknowledged))
        here = await result_of(in_thread(self._home.begin))
        if self._has_lost and here is not None:
            self._warn_of_loss("this node has lost messages that it had")
        if here is not None and self._queue not in {None, here}:
            text = "the directory holds another queue"
            raise OptionsError(f"{text}: path={self._home.path} queue={here} asked={self._queue}")
        found = here or self._queue
        while found is None:
            queues = await result_of(in_thread(self._candidate.queues))
            if len(queues) > 1:
                text = "etcd has several queues: name one by its identity"
                raise OptionsError(f"{text}: path={self._home.path} queues={','.join(queues)}")
            if queues:
                found = queues[0]
            else:
                self._note("this directory has no queue, and no queue has a source: waiting")
                await asyncio.sleep(_AGAIN_S)
        self._candidate.queue = found
        await self._check_directory()

    async def _check_directory(self) -> None:
        """Find out whether the directory is the one that the node had in the in-sync set."""
        marks = await result_of(in_thread(self._home.marks))
        own = self._home.standing
        is_promoted = own is not None and own.role == "source" and not marks
        if self._has_lost or is_promoted:
            return
        self._has_lost = not await self._office.ask(self._candidate.counts_on, marks)
        if self._has_lost:
            self._warn_of_loss("this node's directory is an older copy, or was restored")

    def _warn_of_loss(self, text: str) -> None:
        hint = (
            "until another node is the source; quire promote, with this"
            " node stopped, promotes it anyway"
        )
        path = self._home.path
        _log.warning("%s, and is not promoted: name=%s path=%s (%s)", text, self._name, path, hint)

    async def _mark_forever(self) -> None:
        """Replace the mark of the directory from time to time."""
        while True:
            with suppress(RegisterError):  # the election reports it
                if not self._has_lost and await self._replace_mark():
                    self._marked.set()
                    await asyncio.sleep(_MARK_S)
            await asyncio.sleep(_POLL_S)

    async def _replace_mark(self) -> bool:
        """
        Return whether etcd has a new mark, or the one before has to do.

        Raises:
            RegisterError: etcd does not answer.

        """
        try:
            return await self._office.ask(self._candidate.mark, self._home.replace_mark)
        except RegisterError:
            raise
        except OSError as error:  # such as a full disk
            _log.warning("the mark of a node's directory cannot be replaced: %s", error)
            return True

    async def _elect_forever(self) -> None:
        while True:
            await asyncio.sleep(_POLL_S)
            try:
                await self._elect()
            except NameTakenError as error:
                if self._candidate.is_name_lost() and self._reign is None:
                    raise
                self._note(str(error))
                self._look_at_end()
            except RegisterError as error:
                self._note(f"{error} (it continues until its lease ends)")
                self._look_at_end()

    async def _elect(self) -> None:
        """Ask etcd, and update this node's role."""
        own = self._home.standing
        standpoint = await self._office.ask(
            self._candidate.step,
            may_lead=self._is_idle and self._home.may_lead and not self._has_lost,
            own_epoch=0 if own is None or own.role == "none" else own.epoch,
            is_first=own is not None and own.role != "sink",
        )
        self._note("")
        if self._reign is not None and standpoint.is_own and self._leads(standpoint):
            self._home.extend_lease(standpoint.lease_end_ns)
        self._see(standpoint)

    def _leads(self, standpoint: Standpoint) -> bool:
        return standpoint.leader is not None and standpoint.leader.epoch == self._reign

    def _look_at_end(self) -> None:
        """Stop being the source at the end of the lease."""
        if self._standpoint.is_own and boot_time_ns() >= self._standpoint.lease_end_ns:
            self._see(_NOBODY)

    def _see(self, standpoint: Standpoint) -> None:
        before, self._standpoint = self._standpoint, standpoint
        if self._office.is_switching:
            return
        if (before.leader, before.is_own) != (standpoint.leader, standpoint.is_own):
            self._office.changed.set()

    async def _act_forever(self) -> None:
        while True:
            self._office.changed.clear()
            standpoint = self._standpoint
            role = asyncio.create_task(self._act(standpoint))
            changed = asyncio.create_task(self._office.changed.wait())
            try:
                await asyncio.wait({role, changed}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
                role.cancel()
                await asyncio.wait({role})
            if not role.cancelled() and (error := role.exception()) is not None:
                raise error

    async def _act(self, standpoint: Standpoint) -> None:
        """Play the node's role until it changes."""
        leader = standpoint.leader
        if leader is not None and standpoint.is_own:
            self._is_idle = False
            try:
                await self._lead(leader, standpoint.lease_end_ns)
            finally:
                self._home.end_lease()
                self._reign = None
                await self._close_appends()
                self._is_idle = True
            return
        await self._close_appends()
        self._say("waiting" if leader is None else f"sink epoch={leader.epoch} of={leader.name}")
        self._is_idle = leader is None
        try:
            if leader is not None:
                await self._follow(leader)
            else:
                await asyncio.Event().wait()
        finally:
            self._is_idle = True

    async def _close_appends(self) -> None:
        view = self._candidate.view
        is_known = view is not None and view.exists
        await result_of(in_thread(self._home.close_appends, is_known=is_known))

    async def _lead(self, leader: Leader, lease_end_ns: int) -> None:
        view = self._candidate.view
        members = frozenset[str]() if view is None else view.in_sync - {self._name}
        async with AsyncExitStack() as stack:
            await result_of(in_thread(self._home.begin_reign, leader.epoch, members))
            queue = stack.enter_context(self._home.opened())
            source = NodeSource(
                self._office,
                queue,
                host=self._host,
                port=self._port,
                tls=self._tls,
                insecure=self._insecure,
                compress=self._compress,
            )
            await stack.enter_async_context(source)
            self._reign = leader.epoch
            await result_of(in_thread(self._home.open_appends, lease_end_ns))
            self._say(f"source epoch={leader.epoch} listening {self._candidate.address}")
            serving = asyncio.create_task(source.run_forever())
            stack.callback(serving.cancel)
            lag = _Lag()
            while not serving.done():
                await self._keep_set(source, lag)
                await self._forget_if_asked(lag)
                await asyncio.wait({serving}, timeout=_POLL_S)
            try:
                serving.result()
            except OldEpochError as error:  # the source has said why
                text = "this node gives up its lease, because the queue has a later source"
                _log.warning("%s: name=%s epoch=%s", text, self._name, error.epoch)
            except HandoverError as error:
                _log.error("%s", error)
        await self._resign()
        await asyncio.Event().wait()

    async def _resign(self) -> None:
        """Let another node be the source; without etcd, this happens at the end of the lease."""
        while True:
            try:
                return await self._office.ask(self._candidate.resign)
            except RegisterError as error:
                self._note(str(error))
            await asyncio.sleep(_POLL_S)

    async def _keep_set(self, source: NodeSource, lag: _Lag) -> None:
        """Update the in-sync set in etcd by the states of the sinks."""
        view = self._candidate.view
        if view is None:
            return
        seen = {it.name: it.acknowledged_index for it in source.sinks if it.name in view.nodes}
        add = self._caught_up(seen, lag, view.in_sync)
        self._home.set_members((view.in_sync - {self._name}) | lag.joining.keys())
        members = view.in_sync - {self._name}
        remove = self._gone(seen, lag, members) | self._shorter(source.ends, lag, members)
        lag.last = self._home.last_index
        if not add and not remove:
            return
        new = add - lag.asked
        lag.asked |= new
        try:
            is_changed = await self._office.ask(
                self._candidate.change_in_sync, add=add, remove=remove
            )
        except RegisterError:
            return
        if not is_changed:
            lag.asked -= new
        else:
            for name in remove:
                self._home.forget_member(name)
            shown = " ".join(sorted((view.in_sync | add) - remove))
            _log.info("the in-sync set has changed: members=%s path=%s", shown, self._home.path)

    async def _forget_if_asked(self, lag: _Lag) -> None:
        """Remove a node from the in-sync set at another process's request, in etcd first."""
        try:
            asked = await result_of(in_thread(self._home.asked_to_forget))
            if asked is not None:
                reason = await self._forget(asked["name"], lag)
                await result_of(in_thread(self._home.answer_forgotten, asked, reason))
        except (QuireError, OSError) as error:
            self._note(f"a request to forget a node cannot be answered: {error}")

    async def _forget(self, name: str, lag: _Lag) -> str | None:
        """Remove a node from the in-sync set; return the reason for a failure."""
        view = self._candidate.view
        members = frozenset[str]() if view is None else view.in_sync - {self._name}
        if name not in members | lag.joining.keys():
            shown = ",".join(sorted(members))
            return f"the in-sync set has no other member of this name: {name=} in_sync={shown}"
        if name in members and (reason := await self._remove(name)) is not None:
            return reason
        lag.joining.pop(name, None)
        lag.asked.discard(name)
        self._home.forget_member(name)
        _log.info(
            "a member of the in-sync set was forgotten: name=%s path=%s", name, self._home.path
        )
        return None

    async def _remove(self, name: str) -> str | None:
        """Remove a node from the in-sync set in etcd; return the reason for a failure."""
        none, gone = frozenset[str](), frozenset({name})
        try:
            is_changed = await self._office.ask(
                self._candidate.change_in_sync, add=none, remove=gone
            )
        except RegisterError as error:
            return str(error)
        if not is_changed:
            return f"etcd has another in-sync set meanwhile, or another source: {name=}"
        return None

    def _caught_up(
        self, seen: dict[str, int | None], lag: _Lag, members: frozenset[str]
    ) -> frozenset[str]:
        """
        Return the sinks that may join the set.

        A sink counts here first, so that every message acknowledged from then on is on it, too. It
        joins in etcd once it has all messages that were in the queue at that moment.
        """
        last, found = self._home.last_index, set[str]()
        lag.asked -= members
        for name in lag.joining.keys() - (seen.keys() - members) - lag.asked:
            del lag.joining[name]  # it has joined, or is away again
        for name, acknowledged in seen.items():
            if name in members:
                continue
            if name in lag.joining:
                if _has(acknowledged, lag.joining[name]):
                    found.add(name)
            elif _has(acknowledged, -1 if lag.last is None else lag.last):
                self._home.add_member(name)
                lag.joining[name] = -1 if last is None else last
        return frozenset(found)

    def _gone(
        self, seen: dict[str, int | None], lag: _Lag, members: frozenset[str]
    ) -> frozenset[str]:
        """Return the members that were disconnected too long."""
        now = asyncio.get_running_loop().time()
        for name in members:
            if name in seen:
                lag.away.pop(name, None)
            else:
                lag.away.setdefault(name, now)
        if self._drop_after_s is None:
            return frozenset()
        limit = now - self._drop_after_s
        return frozenset(it for it in members if lag.away.get(it, now) < limit)

    def _shorter(self, ends: dict[str, int], lag: _Lag, members: frozenset[str]) -> frozenset[str]:
        """Return the members that came back with fewer messages than they had acknowledged."""
        found = set[str]()
        for name, end in ends.items():
            known = lag.ends.get(name, 0)
            if end >= known or name not in members:
                lag.ends[name] = end
                continue
            found.add(name)
            text = "a node has lost messages that it had acknowledged, and leaves the in-sync set"
            self._note(f"{text}: {name=} next_index={end:#x} was={known:#x} path={self._home.path}")
        return frozenset(found)

    async def _leave_set(self) -> None:
        """Leave the in-sync set before lost messages are sent again."""
        while self._has_lost:
            try:
                self._has_lost = not await self._office.ask(self._candidate.withdraw)
            except RegisterError as error:
                self._note(str(error))
            if self._has_lost:
                await asyncio.sleep(_POLL_S)

    async def _follow(self, leader: Leader) -> None:
        host, port = parsed_address(leader.address)
        await self._leave_set()
        if self._home.is_queue:
            await self._marked.wait()  # before it is of the in-sync set again
        while True:
            keeping = Sink(
                self._home.path,
                host=host,
                port=port,
                name=self._name,
                acknowledge=self._level,
                tls=self._tls,
                insecure=self._insecure,
                address=self._candidate.address,
                takes_over=False,
                reconnect_s=_POLL_S,
            )
            watching = asyncio.create_task(self._watch_home())
            try:
                async with keeping:
                    await keeping.run_forever()
            except DivergedError as error:
                await result_of(in_thread(self._home.put_aside, error))
                continue
            except (OldEpochError, PeerLostError, PeerSilentError) as error:
                self._note(str(error))
            finally:
                watching.cancel()
            await asyncio.sleep(_AGAIN_S)

    async def _watch_home(self) -> None:
        """Create the file of the lease before appends are accepted."""
        while not await result_of(in_thread(self._home.prepare)):  # noqa: ASYNC110 - a file
            await asyncio.sleep(_POLL_S)

    def _say(self, what: str) -> None:
        if self._on_change is not None:
            self._on_change(what)

    def _note(self, trouble: str) -> None:
        """Log what keeps the node from continuing, when that changes."""
        kind = trouble.partition(":")[0]
        if kind != self._trouble.partition(":")[0]:
            if trouble:
                _log.warning("%s", trouble)
            elif "etcd" in self._trouble:
                _log.info("etcd answers again: name=%s", self._name)
        self._trouble = trouble


def _has(acknowledged: int | None, index: int) -> bool:
    return index < 0 or (acknowledged is not None and acknowledged >= index)


def _first(errors: BaseExceptionGroup[QuireError | OSError]) -> QuireError | OSError:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, QuireError | OSError)  # noqa: S101 - `except*` says so
    return found
