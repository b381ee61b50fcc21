"""The source of a replication: a server that sends the messages of a queue to its sinks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, NamedTuple, Self

from quire._common import arguments
from quire._waiting.sleeping import sleep_async
from quire.errors import (
    HandoverError,
    OldEpochError,
    PeerLostError,
    QuireError,
    ReadOnlyError,
    ReplicationError,
)
from quire.handles.journal.queue import JournalQueue
from quire.replication.connection import Connection
from quire.replication.handover_requests import done, failed, give_answer, take_request
from quire.replication.original import Original
from quire.replication.session import HEARTBEAT_NS, SILENCE_NS
from quire.replication.source_session import SourceSession
from quire.replication.succession import Succession, Successor
from quire.replication.tls import Tls, check_allowed

_log = logging.getLogger("quire")
_TIMEOUT_S: Final = SILENCE_NS / 1e9
_TICK_S: Final = HEARTBEAT_NS / 4e9
_LAST_WORDS_S: Final = 2.0
_HANDSHAKE_S: Final = 5.0


class SinkStatus(NamedTuple):
    """
    How far a connected sink is, from :attr:`Source.sinks`.

        late = [each.name for each in source.sinks if each.sent_index != each.acknowledged_index]

    Attributes:
        name: What it calls itself.
        address: Its address.
        level: What it acknowledges: ``"stored"`` or ``"synced"``.
        sent_index: The last message it was sent, or had before; None before the first.
        acknowledged_index: The last message it says it has; None before the first.

    """

    name: str
    address: str
    level: str
    sent_index: int | None
    acknowledged_index: int | None


class Source:
    """
    Sends every message of a queue to each sink that connects, and goes on as messages come.

    Any process may append to the queue, Java's too. A sink that breaks the protocol, or is silent,
    is disconnected with a line in the log ``quire``; the others do not notice.

    Args:
        queue: An open queue, which stays open.
        host: The address to listen on.
        port: The port; 0 takes a free one, see :attr:`address`.
        tls: The certificates. Addresses beyond this machine need them.
        insecure: Listen beyond this machine without them: anyone who reaches the port reads the
            queue.
        max_sinks: How many connections there may be at once.

    Raises:
        OptionsError: *host* is beyond this machine, and neither *tls* nor *insecure* was given.
        ReadOnlyError: The queue was opened read-only.
        ReplicationError: The queue is a replica.

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
    ) -> None:
        if not isinstance(queue, JournalQueue):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise arguments.refusal("queue", "an open queue of Chronicle Queue 5", queue)
        if queue.read_only:
            raise ReadOnlyError(f"a source keeps its epoch beside the queue: queue={queue.path}")
        check_allowed(host, tls, insecure=insecure)
        self._queue, self._host, self._port = queue, host, port
        self._tls = None if tls is None else tls.context(is_source=True)
        self._insecure, self._max_sinks = insecure, max_sinks
        self._original = Original(queue)
        self._sessions: dict[asyncio.Task[None], SourceSession] = {}
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self._failed: asyncio.Future[None] | None = None
        self._successor: Successor | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_handing_over = False

    async def __aenter__(self) -> Self:
        """Start listening."""
        self._failed = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(
            self._accept,
            self._host,
            self._port,
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_S if self._tls else None,
        )
        self._watching = asyncio.create_task(self._watch_requests())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening, send what is left, and close every connection."""
        await self.close()

    async def close(self) -> None:
        """
        Stop listening, and close every connection; leaving the ``async with`` block does it too.

            await source.close()
        """
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        tasks = [*self._sessions, *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()

    async def run_forever(self) -> None:
        """
        Serve until the task is cancelled, or the queue was handed over to a sink.

            async with Source(queue, host="10.0.0.1", port=7001, tls=tls) as source:
                await source.run_forever()

        Raises:
            OldEpochError: A sink has seen a later epoch: another replica was promoted. The queue
                takes no more appends.

        """
        self._listening()
        await asyncio.shield(self._failure())

    async def hand_over(self, to: str, *, timeout_s: float = 30.0) -> Successor:
        """
        Make a sink the source, without loss.

        Nobody may append from then on. The sink gets what it lacks, is promoted, and begins the
        next epoch; :meth:`run_forever` returns. If the sink does not get there, appends go on.

            successor = await source.hand_over("standby")

        Args:
            to: The name of a connected sink, or its address.
            timeout_s: How long the sink may take to get all messages, and to be promoted.

        Raises:
            ReplicationError: There is no such sink, or it cannot take over; nothing has changed.
            PeerSilentError: The sink did not get all messages in time, and appends go on.
            HandoverError: The sink did not say that it was promoted: the queue stays closed,
                and :meth:`run_forever` raises this.

        """
        session = self._named(to)
        if self._is_handing_over:
            raise ReplicationError(f"the queue is being handed over: path={self._queue.path}")
        self._is_handing_over = True
        try:
            successor = await self._succession(session, timeout_s).run()
        except HandoverError as error:
            self._fail(error)
            raise
        finally:
            self._is_handing_over = False
        self._successor = successor
        if not (failure := self._failure()).done():
            failure.set_result(None)
        return successor

    def _succession(self, session: SourceSession, timeout_s: float) -> Succession:
        def is_served() -> bool:
            return session in self._sessions.values()

        return Succession(self._original, session, is_served, self._next_change, timeout_s)

    async def _next_change(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_TICK_S):
                await self._changed.wait()

    def _named(self, to: str) -> SourceSession:
        named = [it for it in self._sessions.values() if it.name]
        found = [it for it in named if to and to in {it.name, it.peer, it.address}]
        if len(found) == 1:
            return found[0]
        text = "no sink of this name or address" if not found else "more than one sink of this name"
        shown = " ".join(sorted({it.name for it in named})) or "none"
        raise ReplicationError(f"{text} is connected: to={to!r} connected={shown}")

    async def _watch_requests(self) -> None:
        """Hand over when another process asks for it."""
        while True:
            await asyncio.sleep(_TICK_S)
            names = {it for each in self._sessions.values() for it in (each.name, each.address)}
            request = take_request(self._queue.path, names - {""})
            if request is None:
                continue
            try:
                answer = done(await self.hand_over(request.to, timeout_s=request.timeout_s))
            except (QuireError, OSError) as error:
                _log.warning("did not hand over: %s", error)
                answer = failed(error)
            give_answer(self._queue.path, request, answer)

    @property
    def successor(self) -> Successor | None:
        """
        The sink that the queue was handed over to; None while it was not.

            await source.run_forever()
            print(source.successor)
        """
        return self._successor

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that it listens on."""
        host, port, *_ = self._listening().sockets[0].getsockname()
        return str(host), int(port)

    @property
    def epoch(self) -> int:
        """The number of this source's epoch."""
        return self._original.standing.epoch

    @property
    def sinks(self) -> list[SinkStatus]:
        """The sinks that replicate now, and how far each is."""
        return [_status(each) for each in self._sessions.values() if each.name]

    async def acknowledged(self, index: int, *, sinks: int = 1) -> None:
        """
        Wait until at least this many connected sinks have acknowledged a message.

            await source.acknowledged(appender.write_bytes(b"an order"))

        Args:
            index: The message's.
            sinks: How many sinks must have it.

        Raises:
            OldEpochError: Another replica was promoted.

        """
        while sum(_has(each, index) for each in self._sessions.values()) < sinks:
            failure = self._failure()
            if failure.done():
                failure.result()
            await self._changed.wait()

    def _notify(self) -> None:
        """Wake those who wait for what sinks have acknowledged."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _listening(self) -> asyncio.Server:
        if self._server is None:
            raise RuntimeError("the source does not listen: use it in `async with`")
        return self._server

    def _failure(self) -> asyncio.Future[None]:
        """Return what ends the source."""
        if self._failed is None:
            raise RuntimeError("the source does not listen: use it in `async with`")
        return self._failed

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        if self._server is None:  # closed since the system had the connection
            connection.close()
            return
        if len(self._sessions) >= self._max_sinks:
            _log.warning("refused a sink: peer=%s max_sinks=%d", connection.peer, self._max_sinks)
            connection.close()
            return
        session = SourceSession(self._original, connection.peer, time.monotonic_ns())
        task = asyncio.create_task(self._serve(session, connection))
        self._sessions[task] = session
        task.add_done_callback(lambda ended: self._forget(ended, connection))

    def _forget(self, task: asyncio.Task[None], connection: Connection) -> None:
        """Close the connection of a session that ended, or was cancelled before it began."""
        connection.close()
        self._sessions.pop(task).close()
        self._notify()

    async def _serve(self, session: SourceSession, connection: Connection) -> None:
        try:
            await _Conversation(session, connection, self._notify).run()
        except PeerLostError as lost:
            if session.name:
                _log.info("a sink is gone: name=%s reason=%s", session.name, lost)
        except OldEpochError as error:
            if connection.is_trusted or self._insecure:
                self._end(error, error.epoch or self.epoch)
            else:
                _log.error("not fenced, since another user's process claims it: %s", error)
        except (QuireError, OSError) as error:
            _log.warning("disconnected a sink: %s", error)
            await connection.send_last(session.outgoing(), _LAST_WORDS_S)

    def _end(self, error: OldEpochError, epoch: int) -> None:
        """Stop everybody's appends: messages that come now would be lost."""
        failure = self._failure()
        try:
            self._original.fence(epoch)
            if not failure.done():
                _log.error("the source ends, and its queue takes no more appends: %s", error)
        except (QuireError, OSError) as reason:
            _log.error("the source ends, but its queue takes appends: %s: %s", reason, error)
        finally:
            self._fail(error)

    def _fail(self, error: QuireError) -> None:
        """End the source with an error."""
        if not (failure := self._failure()).done():
            failure.set_exception(error)
            failure.exception()  # it was heard
        self._notify()


class _Conversation:
    """
    A session and its connection: one task reads, the other sends.

    Args:
        session: What the source sends.
        connection: Where to.
        notify: Called after each acknowledgement.

    """

    def __init__(
        self, session: SourceSession, connection: Connection, notify: Callable[[], None]
    ) -> None:
        self._session, self._connection, self._notify = session, connection, notify
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Go on until either side ends the connection."""
        reading = asyncio.create_task(self._read_all())
        sending = asyncio.create_task(self._send_all())
        try:
            await asyncio.wait({reading, sending}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._finish(reading, sending)
            raise
        await _cancelled(reading, sending)
        for task in (reading, sending):
            if not task.cancelled():
                task.result()

    async def _finish(self, reading: asyncio.Task[None], sending: asyncio.Task[None]) -> None:
        """
        Send the messages that the sink lacks, end the stream, and let the sink close it.

        Acknowledgements that arrive after this side has closed it would have the system reset it,
        and the sink might lose what it was sent.
        """
        await _cancelled(sending)
        session, connection = self._session, self._connection
        with suppress(QuireError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                while not reading.done():
                    self._news.clear()
                    if session.pull(time.time_ns(), time.monotonic_ns()):
                        await connection.send(session.outgoing(), _LAST_WORDS_S)
                    elif session.reader is None or session.is_waiting:
                        break
                    else:
                        await self._wait()
        with suppress(QuireError):
            session.end()
            await connection.send(session.outgoing(), _LAST_WORDS_S)
            if session.reader is not None:
                await asyncio.wait({reading}, timeout=_LAST_WORDS_S)
        await _cancelled(reading)

    async def _read_all(self) -> None:
        session = self._session
        while True:
            data = await self._connection.read()
            before, was_started = session.acknowledged, session.reader is not None
            session.receive(data, time.monotonic_ns())
            if session.refused is not None:
                raise session.refused
            if not was_started and session.reader is not None:
                _log.info("a sink replicates: name=%s peer=%s", session.name, session.peer)
            if session.acknowledged is not before or session.taken_over is not None:
                self._notify()
            self._news.set()

    async def _send_all(self) -> None:
        session, connection = self._session, self._connection
        while True:
            self._news.clear()
            session.tick(time.monotonic_ns())
            while session.pull(time.time_ns(), time.monotonic_ns()):
                await connection.send(session.outgoing(), _TIMEOUT_S)
            await connection.send(session.outgoing(), _TIMEOUT_S)
            await self._wait()

    async def _wait(self) -> None:
        """Return when there is something to say: a message, an answer, or a heartbeat."""
        session = self._session
        waits: list[Awaitable[object]] = [self._news.wait()]
        if session.is_waiting and session.reader is not None:
            waits.append(sleep_async(session.reader.tailer, _TICK_S))
        tasks = [asyncio.ensure_future(it) for it in waits]
        try:
            await asyncio.wait(tasks, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # it was heard


def _has(session: SourceSession, index: int) -> bool:
    return session.acknowledged is not None and session.acknowledged.next > index


def _status(session: SourceSession) -> SinkStatus:
    sent, acknowledged = (
        None if place is None or place.next == 0 else place.next - 1
        for place in (session.sent, session.acknowledged)
    )
    return SinkStatus(session.name, session.peer, session.level, sent, acknowledged)
