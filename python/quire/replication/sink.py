"""The sink of a replication: a client that keeps a copy of the source's queue."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self

from quire._common import arguments
from quire.errors import (
    ClosedError,
    PeerLostError,
    PeerSilentError,
    ReplicationError,
    UnsupportedError,
)
from quire.replication import standing
from quire.replication.connection import Connection, failures
from quire.replication.replica import Replica
from quire.replication.session import HEARTBEAT_NS, SILENCE_NS
from quire.replication.sink_session import SinkSession
from quire.replication.tls import Tls, check_allowed
from quire.replication.wire import Place

_log = logging.getLogger("quire")
_TIMEOUT_S: Final = SILENCE_NS / 1e9
_TICK_NS: Final = HEARTBEAT_NS // 4
_TICK_S: Final = _TICK_NS / 1e9
_LAST_WORDS_S: Final = 2.0
_CONNECT_S: Final = 10.0
_DECIDED_BY_SOURCE: Final = (
    *("roll_cycle", "epoch_ms", "time_zone", "roll", "layout", "wire_type", "source_id"),
    *("block_bytes", "format", "read_only", "create", "clock", "buffer_mode"),
)


class Sink:
    """
    Keeps a copy of a source's queue: the same messages under the same indexes.

    It connects again whenever the connection is lost, and goes on after the last message of the
    copy. Nobody else can append to the copy, also while no sink runs, until it is promoted; any
    process may read it.

    Args:
        path: The directory of the copy, which is created if it does not exist.
        host: The address of the source.
        port: Its port.
        name: What the source calls this sink; the machine's name and the path if not given.
        acknowledge: What is reported to the source: what is ``"stored"`` in the file, which
            survives a killed process, or ``"synced"`` to the medium, which survives a power cut.
        tls: The certificates. Addresses beyond this machine need them.
        insecure: Connect beyond this machine without them.
        address: Where it will serve once it is promoted, for the source to name it by.
        on_promoted: Called once the source has handed over to this sink, when everybody may append
            to the queue: it begins to serve, and returns where, for the old source to follow.
        reconnect_s: How long to wait before connecting again.
        attempts: Give up after this many connections in a row that failed; None: never.
        options: Those of :func:`quire.open` for the copy, without the ones that the source decides.

    Raises:
        OptionsError: *host* is beyond this machine, and neither *tls* nor *insecure* was given.
        UnsupportedError: The source decides an option that was given.

    Examples:
        >>> import asyncio
        >>> from quire.replication import Sink, Source
        >>> async def replicate(queue):
        ...     async with Source(queue) as source, Sink("copy", port=source.address[1]) as sink:
        ...         await sink.stored(queue.last_index)
        >>> with quire.open("replicated") as queue:
        ...     last = queue.appender().write_text("hello")
        ...     asyncio.run(replicate(queue))
        >>> with quire.open("copy", read_only=True) as copy:
        ...     copy.last_index == last, copy.tailer().read_text()
        (True, 'hello')

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        path: str | PathLike[str],
        *,
        host: str = "127.0.0.1",
        port: int,
        name: str | None = None,
        acknowledge: Literal["stored", "synced"] = "stored",
        tls: Tls | None = None,
        insecure: bool = False,
        address: str | None = None,
        on_promoted: Callable[[int], Awaitable[tuple[str, int]]] | None = None,
        reconnect_s: float = 0.5,
        attempts: int | None = None,
        **options: Any,  # noqa: ANN401 - as `quire.open` takes them
    ) -> None:
        for each in _DECIDED_BY_SOURCE:
            if each in options:
                raise UnsupportedError(f"not an option of a copy: {each}={options[each]!r}")
        check_allowed(host, tls, insecure=insecure)
        self._host, self._port = host, port
        self._tls = None if tls is None else tls.context(is_source=False)
        self._name = name or f"{socket.gethostname()}:{os.fspath(path)}"[-200:]
        self._level = arguments.one_of("stored", "synced")("acknowledge", acknowledge)
        self._reconnect_s = arguments.seconds("reconnect_s", reconnect_s)
        self._attempts, self._on_promoted = attempts, on_promoted
        self._promoted_epoch: int | None = None
        self._address = address
        self._failed = 0  # connections in a row that brought nothing
        self._progress = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._replica = Replica(path, options)
        self._stored: Place | None = None

    async def __aenter__(self) -> Self:
        """Connect, and go on in the background."""
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection and the copy; the error that ended the replication is raised."""
        await self._stop()
        is_failed = not self._started().cancelled() and self._promoted_epoch is None
        if error is None and is_failed:
            raise self._failure()

    async def close(self) -> None:
        """
        Close the connection and the copy; leaving the ``async with`` block does it too.

            await sink.close()
        """
        await self._stop()

    async def run_forever(self) -> None:
        """
        Replicate until the task is cancelled, or raise what ends the replication.

        It returns once the source has handed over to this sink: the copy is a source's queue then.

            async with Sink("copy", host="10.0.0.1", port=7001, tls=tls) as sink:
                await sink.run_forever()
        """
        await asyncio.wait({self._started()})
        if self._promoted_epoch is None:
            raise self._failure()

    @property
    def promoted_epoch(self) -> int | None:
        """The epoch that began when the source handed over to this sink; None before that."""
        return self._promoted_epoch

    @property
    def last_index(self) -> int | None:
        """The index of the last message that was stored since this sink began; None before that."""
        stored = self._stored
        return None if stored is None or stored.next == 0 else stored.next - 1

    async def stored(self, index: int) -> None:
        """Wait until the copy has a message."""
        await self._until(lambda: self._stored is not None and self._stored.next > index)

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        running = self._started()
        while not is_reached():
            progress = asyncio.ensure_future(self._progress.wait())
            try:
                await asyncio.wait({progress, running}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                progress.cancel()
            if running.done() and not is_reached():
                raise self._failure()

    def _note(self, session: SinkSession) -> None:
        """Wake those who wait for progress."""
        if session.stored != self._stored:
            self._failed, self._stored = 0, session.stored
            self._progress.set()
            self._progress = asyncio.Event()

    def _started(self) -> asyncio.Task[None]:
        if self._running is None:
            raise RuntimeError("the sink is not running: use it in `async with`")
        return self._running

    async def _stop(self) -> None:
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait({self._running})
        self._replica.close()

    def _failure(self) -> BaseException:
        """Return what ended the replication."""
        running = self._started()
        error = None if running.cancelled() else running.exception()
        return error or ClosedError(f"the sink was closed: path={self._replica.path}")

    async def _run(self) -> None:
        try:
            await self._run_on()
        finally:
            self._replica.close()  # a promotion waits for that

    async def _run_on(self) -> None:
        while self._promoted_epoch is None:
            try:
                await self._replicate()
            except (PeerLostError, PeerSilentError) as error:
                self._failed += 1
                if self._attempts is not None and self._failed >= self._attempts:
                    raise
                level = logging.WARNING if self._failed == 1 else logging.DEBUG
                _log.log(level, "%s (connecting again)", error)
            if self._promoted_epoch is None:
                self._check_role()
                await asyncio.sleep(self._reconnect_s)

    async def _replicate(self) -> None:
        connection = await self._connect()
        session = SinkSession(
            self._replica,
            name=self._name,
            peer=connection.peer,
            level=self._level,
            now_ns=time.monotonic_ns(),
            address=self._address,
        )
        try:
            await self._converse(session, connection)
        except (PeerLostError, PeerSilentError):
            raise
        except ReplicationError:
            await connection.send_last(session.outgoing(), _LAST_WORDS_S)
            raise
        finally:
            connection.close()

    async def _connect(self) -> Connection:
        with failures(f"{self._host}:{self._port}"):
            try:
                async with asyncio.timeout(_CONNECT_S):
                    return Connection(
                        *await asyncio.open_connection(self._host, self._port, ssl=self._tls)
                    )
            except TimeoutError:
                text = "the source does not answer"
                raise PeerSilentError(f"{text}: peer={self._host}:{self._port}") from None

    async def _converse(self, session: SinkSession, connection: Connection) -> None:
        """Take what the source sends until it ends the connection."""
        looked_ns = time.monotonic_ns()
        while not session.has_ended:
            if session.awaits_sync:
                await asyncio.to_thread(session.sync)
            await connection.send(session.outgoing(), _TIMEOUT_S)
            self._note(session)
            try:
                async with asyncio.timeout(_TICK_S):
                    data = await connection.read()
            except TimeoutError:
                data = b""
            now_ns = time.monotonic_ns()
            if data:
                was_started = session.is_started
                session.receive(data, now_ns)
                if session.is_started and not was_started:
                    _log.info("replicating: path=%s peer=%s", self._replica.path, connection.peer)
            if now_ns - looked_ns >= _TICK_NS:  # also while messages come all the time
                self._check_role()
                looked_ns = now_ns
            if session.handed_over is not None:
                await self._take_over(session, session.handed_over.epoch)
                break
            session.tick(now_ns)
        if session.awaits_sync:
            await asyncio.to_thread(session.sync)
        self._note(session)
        await connection.send_last(session.outgoing(), _LAST_WORDS_S)

    async def _take_over(self, session: SinkSession, epoch: int) -> None:
        """Become the source of a new epoch, as the one before wishes."""
        await asyncio.to_thread(self._replica.promote, epoch)
        self._promoted_epoch = epoch
        _log.info("promoted by a handover: path=%s epoch=%d", self._replica.path, epoch)
        serve, address = self._on_promoted, None
        if serve is not None:
            address = await serve(epoch)
        session.take_over(address)

    def _check_role(self) -> None:
        """
        Check that the copy is still one.

        Raises:
            ReplicationError: The copy was promoted.

        """
        if self._replica.standing is None:
            return
        found = standing.read(self._replica.path)
        if found is None or found.role != "sink":
            epoch = "none" if found is None else found.epoch
            text = "the copy was promoted, and this sink ends"
            raise ReplicationError(f"{text}: path={self._replica.path} epoch={epoch}")
