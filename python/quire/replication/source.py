"""The source of a replication: a server that sends the messages of a queue to its sinks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire.errors import (
    OldEpochError,
    QuireError,
    ReadOnlyError,
    ReplicationError,
    TableLostError,
)
from quire.handles.journal.queue import JournalQueue
from quire.replication.drivers.any_source import AnySource
from quire.replication.drivers.connection import Connection
from quire.replication.drivers.own_thread import threads_for
from quire.replication.handover_requests import MAILBOX, take_request
from quire.replication.in_sync import InSyncSet
from quire.replication.original import Original
from quire.replication.own_folder import own_folder
from quire.replication.session import TICK_S
from quire.replication.source_session import SourceSession
from quire.replication.succession import Handover, Succession, Successor, send_positions
from quire.replication.tls import Tls, check_allowed
from quire.replication.unbroken import in_thread, result_of

_log = logging.getLogger("quire")
_POSITIONS_S: Final = 0.4
"""The interval at which positions of readers are sent: sinks have them within a second."""


class SinkStatus(NamedTuple):
    """
    How far a connected sink is, from :attr:`Source.sinks`.

        late = [each.name for each in source.sinks if each.sent_index != each.acknowledged_index]

    Attributes:
        name: The sink's name.
        address: Its address.
        level: What it acknowledges: ``"stored"`` or ``"synced"``.
        sent_index: The last message that it was sent or had before; None before the first.
        acknowledged_index: The last message that it has acknowledged; None before the first.

    """

    name: str
    address: str
    level: str
    sent_index: int | None
    acknowledged_index: int | None


class Source(AnySource[SourceSession]):
    """
    Sends every message of a queue to each sink that connects, including new ones as they come.

    Any process may append to the queue, Java's too. A sink that breaks the protocol, or is silent,
    is disconnected with a line in the log ``quire``; other sinks are not affected.

    Args:
        queue: An open queue, which stays open.
        host: The address to listen on.
        port: The port; 0 picks a free one, see :attr:`address`.
        tls: The certificates. Addresses beyond this machine need them.
        insecure: Listen beyond this machine without certificates: anyone who reaches the port can
            read the queue.
        max_sinks: How many connections there may be at once.
        connects: Connect to the sink that listens at *host* and *port*, instead of listening.
        drop_after_s: Remove a sink from the in-sync set once it was disconnected this long: appends
            with ``wait="all"`` no longer wait for it. None: never.
        busy: Use a thread that never sleeps for each sink: messages are sent, and acknowledgements
            seen, sooner, at the cost of a core each. Not with *tls*.
        compress: Send batches compressed with zstd to sinks that support it.

    Raises:
        OptionsError: *host* is beyond this machine, and neither *tls* nor *insecure* was given, or
            *busy* with *tls*.
        ReadOnlyError: The queue was opened read-only.
        ReplicationError: The queue is a replica.
        TableLostError: The queue's directory was renamed, removed or replaced.

    Examples:
        >>> import asyncio
        >>> from quire.replication import Sink, Source
        >>> async def replicate(queue):
        ...     async with Source(queue) as source:
        ...         async with Sink("copy", port=source.address[1], name="backup") as sink:
        ...             await source.acknowledged(queue.last_index)
        ...             return [each.name for each in source.sinks], sink.last_index
        >>> with quire.open("replicated") as queue:
        ...     last = queue.appender().write_text("hello")
        ...     asyncio.run(replicate(queue)) == (["backup"], last)
        True

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        queue: JournalQueue,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: Tls | None = None,
        insecure: bool = False,
        max_sinks: int = 100,
        connects: bool = False,
        drop_after_s: float | None = None,
        busy: bool = False,
        compress: bool = False,
    ) -> None:
        if not isinstance(queue, JournalQueue):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise arguments.refusal("queue", "an open queue of Chronicle Queue 5", queue)
        if queue.read_only:
            raise ReadOnlyError(f"a source keeps its epoch beside the queue: queue={queue.path}")
        check_allowed(host, tls, insecure=insecure)
        context = None if tls is None else tls.context(is_listening=not connects)
        super().__init__(
            queue.path,
            host=host,
            port=port,
            tls=context,
            max_sinks=max_sinks,
            connects=connects,
            threads=threads_for(context, is_busy=arguments.flag("busy", busy)),
        )
        self._original, self._insecure = Original(queue), insecure
        self._in_sync: InSyncSet | None = None
        self._compress = arguments.flag("compress", compress)
        self._drop_after_s = arguments.optional(arguments.seconds)("drop_after_s", drop_after_s)
        self._successor: Successor | None = None
        self._watching = list[asyncio.Task[None]]()
        self._is_handing_over = False

    async def __aenter__(self) -> Self:
        """
        Start listening.

        Raises:
            WriterInUseError: Another source of the queue is running.

        """
        self._in_sync = self._new_in_sync_set()
        try:
            await super().__aenter__()
        except BaseException:
            self._in_sync.close()
            raise
        self._watching = [
            asyncio.create_task(self._watch_requests()),
            asyncio.create_task(self._watch_positions()),
        ]
        return self

    async def close(self) -> None:
        """
        Stop listening, and close every connection; leaving the ``async with`` block does it too.

            await source.close()
        """
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        await super().close()
        if self._in_sync is not None:
            self._in_sync.close()

    async def hand_over(self, to: str, *, timeout_s: float = 30.0) -> Successor:
        """
        Make a sink the source, without loss.

        The queue refuses appends from then on. The sink gets the messages it lacks, is promoted,
        and begins the next epoch; :meth:`run_forever` returns. If the sink fails to catch up, or
        this is cancelled before the sink is to take over, the queue accepts appends again.

            successor = await source.hand_over("standby")

        Args:
            to: The name of a connected sink, or its address.
            timeout_s: How long appends that are under way may take to end, and the sink to get all
                messages; and how long it may take to be promoted.

        Raises:
            ReplicationError: No such sink is connected, it cannot take over, or an append did not
                end in time; nothing has changed.
            PeerSilentError: The sink did not get all messages in time; the queue accepts appends
                again.
            HandoverError: The sink did not confirm that it was promoted, or the queue cannot be
                opened again: it stays closed, and :meth:`run_forever` raises this.

        """
        session = self._named(to)
        self._check_may_hand_over()
        self._is_handing_over = True
        succession = self._succession(session, timeout_s)
        try:
            successor = await succession.run()
        finally:
            self._is_handing_over = False
            if succession.failure is not None:
                self._end(succession.failure)
        self._successor = successor
        self._end(None)
        return successor

    def _check_may_hand_over(self) -> None:
        """Check that this is the source, and is not handing over already."""
        ended = self._end_of_all()
        if ended.done():
            ended.result()
            raise ReplicationError(f"the queue was handed over: path={self._path}")
        if self._is_handing_over:
            raise ReplicationError(f"the queue is being handed over: path={self._path}")

    def _new_in_sync_set(self) -> InSyncSet:
        return InSyncSet(self._original.queue, self.epoch, self._drop_after_s)

    def _succession(self, session: SourceSession, timeout_s: float) -> Succession:
        """Return the handover of the queue to a sink."""
        return Succession(self._handover_to(session, timeout_s))

    def _handover_to(self, session: SourceSession, timeout_s: float) -> Handover:
        is_served = self._is_served(session)
        return Handover(self._original, session, is_served, self._next_change, timeout_s)

    def _named(self, to: str) -> SourceSession:
        named = [it for it in self._sessions if it.name]
        found = [it for it in named if to and to in {it.name, it.peer, it.address}]
        if len(found) == 1:
            return found[0]
        text = "no sink of this name or address" if not found else "more than one sink of this name"
        shown = " ".join(sorted({it.name for it in named})) or "none"
        raise ReplicationError(f"{text} is connected: to={to!r} connected={shown}")

    async def _watch_requests(self) -> None:
        """Hand over at another process's request, and drop sinks that are disconnected too long."""
        noted = ""
        while True:
            await asyncio.sleep(TICK_S)
            try:
                if self._in_sync is not None:
                    self._in_sync.tick()
                with own_folder(self._original.queue) as folder:
                    await self._hand_over_if_asked(folder)
                noted = ""
            except TableLostError as error:
                self._end(error)
                return
            except (QuireError, OSError) as error:
                level = logging.DEBUG if str(error) == noted else logging.WARNING
                _log.log(
                    level, "the source cannot look for requests, and will try again: %s", error
                )
                noted = str(error)

    async def _hand_over_if_asked(self, folder: SafeFolder) -> None:
        names = {it for each in self._sessions for it in (each.name, each.address)}
        request = take_request(folder, names - {""})
        if request is None:
            return
        answer: Mapping[str, Any] | Exception
        try:
            answer = (await self.hand_over(request.to, timeout_s=request.timeout_s))._asdict()
        except (QuireError, OSError) as error:
            _log.warning("did not hand over: %s", error)
            answer = error
        try:
            MAILBOX.answer(folder, request.asked, answer)
        except (QuireError, OSError) as error:
            _log.warning("a request to hand over cannot be answered: %s", error)

    async def _watch_positions(self) -> None:
        """Send sinks the positions of the queue's readers, and look for cycles that they lack."""
        are_sent = True
        while True:
            await asyncio.sleep(_POSITIONS_S)
            self._open_groups()
            try:
                for session in [*self._sessions]:
                    await result_of(in_thread(session.look_back))
                    if session.takes_positions:
                        await send_positions(self._original, session)
                are_sent = True
            except (QuireError, OSError) as error:
                level = logging.WARNING if are_sent else logging.DEBUG
                _log.log(level, "positions of readers are not sent to sinks: %s", error)
                are_sent = False

    def _open_groups(self) -> None:
        """Open groups that a handover has closed and could not open again, unless one runs."""
        is_source = not self._end_of_all().done() and not self._is_handing_over
        if is_source and self._original.has_closed_groups:
            self._original.open_groups(self._original.queue)

    @property
    def successor(self) -> Successor | None:
        """
        The sink to which the queue was handed over; None before that.

            await source.run_forever()
            print(source.successor)
        """
        return self._successor

    @property
    def epoch(self) -> int:
        """The number of this source's epoch."""
        return self._original.standing.epoch

    @property
    def sinks(self) -> list[SinkStatus]:
        """The sinks that are replicating, and how far each is."""
        return [_status(each) for each in self._sessions if each.name]

    async def acknowledged(self, index: int, *, sinks: int = 1) -> None:
        """
        Wait until at least this many connected sinks have acknowledged a message.

            await source.acknowledged(appender.write_bytes(b"an order"))

        Args:
            index: The index of the message.
            sinks: How many sinks must have it.

        Raises:
            OldEpochError: Another replica was promoted.
            TableLostError: The queue's directory was renamed, removed or replaced.
            ClosedError: The source was closed.

        """
        await self._until(lambda: sum(_has(each, index) for each in self._sessions) >= sinks)

    def _new_session(self, peer: str) -> SourceSession:
        return SourceSession(self._original, peer, time.monotonic_ns(), compress=self._compress)

    def _note_progress(self, session: SourceSession) -> bool:
        """Publish a sink's acknowledgement to every process."""
        return self._in_sync is not None and self._in_sync.note(session)

    def _note_end(self, session: SourceSession) -> None:
        if self._in_sync is not None:
            self._in_sync.leave(session)

    def _note_failure(self, error: QuireError | OSError, connection: Connection) -> None:
        if not isinstance(error, OldEpochError):
            super()._note_failure(error, connection)
        elif connection.is_trusted or self._insecure:
            self._fence(error, error.epoch or self.epoch)
        else:
            _log.error("not fenced, because the claim comes from another user's process: %s", error)

    def _fence(self, error: OldEpochError, epoch: int) -> None:
        """Refuse all appends: new messages would be lost."""
        try:
            self._original.fence(epoch)
            if not self._end_of_all().done():
                _log.error("the source ends, and its queue refuses appends: %s", error)
        except (QuireError, OSError) as reason:
            _log.error("the source ends, but its queue accepts appends: %s: %s", reason, error)
        finally:
            self._end(error)


def _has(session: SourceSession, index: int) -> bool:
    return session.acknowledged is not None and session.acknowledged.next > index


def _status(session: SourceSession) -> SinkStatus:
    sent, acknowledged = (
        None if place is None or place.next == 0 else place.next - 1
        for place in (session.sent, session.acknowledged)
    )
    return SinkStatus(session.name, session.peer, session.level, sent, acknowledged)
