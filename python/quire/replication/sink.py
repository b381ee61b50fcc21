"""The sink of a replication: a client that keeps a copy of the source's queue."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable
from os import PathLike
from typing import Any, Final, Literal

from quire._common import arguments
from quire.errors import DivergedError, QuireError, ReplicationError
from quire.formats.detection import CHRONICLE, refuse_others
from quire.replication import layout, wire
from quire.replication.drivers.any_sink import AnySink
from quire.replication.drivers.connection import Connection
from quire.replication.drivers.own_thread import threads_for
from quire.replication.naming import check_name, default_name
from quire.replication.replica import Replica
from quire.replication.sink_session import SinkSession
from quire.replication.tls import Tls, check_allowed
from quire.replication.unbroken import in_thread, result_of
from quire.replication.wire import Place

_log = logging.getLogger("quire")
_CONNECT_S: Final = 10.0
_POSITIONS_S: Final = 1.0


class Sink(AnySink[SinkSession]):
    """
    Keeps a copy of a source's queue: the same messages under the same indexes.

    It reconnects whenever the connection is lost, and continues after the last message of the copy.
    Nothing else can append to the copy until it is promoted, even while no sink runs; any process
    may read it.

    Args:
        path: The directory of the copy, which is created if it does not exist.
        host: The address of the source.
        port: Its port.
        name: The name of this sink at the source; by default the machine's name and the path.
        acknowledge: Which messages are acknowledged: those ``"stored"`` in the file, which survive
            a killed process, or ``"synced"`` to the medium, which survive a power cut.
        tls: The certificates. Addresses beyond this machine need them.
        insecure: Connect beyond this machine without certificates.
        repair: If the copy differs from the source, move its end into the folder ``aside`` of the
            copy, and continue; otherwise the sink ends with a ``DivergedError``.
        address: The address at which it will serve after a promotion, by which the source can name
            it.
        takes_over: Whether the source may hand over to it.
        on_promoted: Called once the source has handed over to this sink and the queue accepts
            appends: it starts to serve, and returns its address, for the old source to follow.
        reconnect_s: How long to wait before connecting again.
        attempts: Give up after this many connections in a row that failed; None: never.
        refills: The copy belongs to a source that lost its disk, or the end of its queue: it takes
            missing messages from a :class:`RefillSource`, and is the source again.
        listens: Listen at *host* and *port* for a source with ``connects=True``, one at a time. A
            source that cannot be followed is logged, and does not end the sink.
        busy: Use a thread that never sleeps for the connection: messages are stored and
            acknowledged sooner, at the cost of a core. Not with *tls*.
        options: Options of :func:`quire.open` for the copy, except those that the source decides.

    Raises:
        OptionsError: *host* is beyond this machine, and neither *tls* nor *insecure* was given, or
            *busy* with *tls*.
        UnsupportedError: An option was given that the source decides.
        NotAQueueError: The directory holds a queue of another format.

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
        repair: bool = False,
        address: str | None = None,
        takes_over: bool = True,
        on_promoted: Callable[[int], Awaitable[tuple[str, int]]] | None = None,
        reconnect_s: float = 0.5,
        attempts: int | None = None,
        listens: bool = False,
        refills: bool = False,
        busy: bool = False,
        **options: Any,  # noqa: ANN401 - as `quire.open` takes them
    ) -> None:
        layout.check_own(options)
        refuse_others(os.fspath(path), "replicated by this protocol", CHRONICLE)
        check_allowed(host, tls, insecure=insecure)
        context = None if tls is None else tls.context(is_listening=listens)
        super().__init__(
            os.fspath(path),
            host=host,
            port=port,
            tls=context,
            connect_s=_CONNECT_S,
            reconnect_s=reconnect_s,
            attempts=attempts,
            listens=listens,
            threads=threads_for(context, is_busy=arguments.flag("busy", busy)),
        )
        if name is not None:
            check_name(name)
        self._name = name or default_name(socket.gethostname(), os.fspath(path))
        self._level = arguments.one_of("stored", "synced")("acknowledge", acknowledge)
        self._repairs = repair
        self._on_promoted, self._address = on_promoted, address
        self._promoted_epoch: int | None = None
        self._unserved: QuireError | OSError | None = None
        self._takes_over = takes_over
        self._replica = Replica(path, options, refills=refills)
        self._stored: Place | None = None
        self._positions_s = 0.0

    @property
    def promoted_epoch(self) -> int | None:
        """The epoch that began when the source handed over to this sink; None before that."""
        return self._promoted_epoch

    @property
    def last_index(self) -> int | None:
        """The index of the last message that this sink has stored; None before the first."""
        stored = self._stored
        return None if stored is None or stored.next == 0 else stored.next - 1

    async def stored(self, index: int) -> None:
        """Wait until the copy has a message."""
        await self._until(lambda: self._stored is not None and self._stored.next > index)

    async def _run(self) -> None:
        try:
            await super()._run()
        finally:
            self._close_copy()  # a promotion waits for that

    @property
    def _refusal(self) -> bytes:
        return wire.refusal("protocol", "this sink follows another source already")

    def _close_copy(self) -> None:
        self._replica.close()

    def _new_session(self, peer: str) -> SinkSession:
        return SinkSession(
            self._replica,
            name=self._name,
            peer=peer,
            level=self._level,
            now_ns=time.monotonic_ns(),
            address=self._address,
            takes_over=self._takes_over,
        )

    async def _replicate(self, connection: Connection) -> None:
        try:
            await super()._replicate(connection)
        except DivergedError as error:
            if error.index is None or not self._repairs:
                raise
            connection.close()
            await result_of(in_thread(self._replica.put_aside, error.index))

    @property
    def _has_finished(self) -> bool:
        return self._promoted_epoch is not None

    async def _act(self, session: SinkSession) -> None:
        """Become the source of a new epoch, as the old source asks; or fetch missing messages."""
        await self._keep_positions(session)
        if session.lacks is not None:
            await result_of(in_thread(self._replica.put_aside, session.lacks))
            return
        if session.handed_over is None:
            return
        epoch = session.handed_over.epoch
        await result_of(in_thread(self._replica.promote, epoch))
        self._promoted_epoch = epoch
        _log.info("promoted by a handover: path=%s epoch=%d", self._replica.path, epoch)
        session.take_over(await self._served(epoch))

    async def _served(self, epoch: int) -> tuple[str, int] | None:
        """Start to serve, and return the address; an error is raised once the source knows it."""
        try:
            return None if self._on_promoted is None else await self._on_promoted(epoch)
        except (QuireError, OSError) as error:
            self._unserved = error
            return None

    async def run_forever(self) -> None:
        """
        Replicate until the task is cancelled, or raise what ends the replication.

        It returns once the source has handed over to this sink: the copy is a source's queue then.
        An exception of *on_promoted* is raised after that.

            async with Sink("copy", host="127.0.0.1", port=7001) as sink:
                await sink.run_forever()
        """
        await super().run_forever()
        if self._unserved is not None:
            raise self._unserved

    def _is_to_act(self, session: SinkSession) -> bool:
        return session.awaits_action or self._replica.has_positions_waiting

    async def _keep_positions(self, session: SinkSession) -> None:
        """Store the positions of the source's readers, and now and then those that had to wait."""
        frames, now_s = session.take_positions(), time.monotonic()
        is_due = self._replica.has_positions_waiting and now_s >= self._positions_s + _POSITIONS_S
        if frames or is_due:
            self._positions_s = now_s
            await result_of(in_thread(self._replica.keep_positions, frames))

    def _note(self, session: SinkSession) -> None:
        self._stored = session.stored

    def _check(self) -> None:
        """
        Check that the copy is still a replica, at its path.

        Raises:
            ReplicationError: The copy was promoted.
            TableLostError: The directory of the copy was renamed, removed or replaced.

        """
        own = self._replica.standing
        if own is None or own.role != "sink":  # that of a source until it has met its new one
            return
        found = self._replica.standing_on_disk()
        if found is None:
            text = "the directory of the copy was replaced, and this sink ends"
            raise ReplicationError(f"{text}: path={self._replica.path}")
        if found.role != "sink":
            text = "the copy was promoted, and this sink ends"
            raise ReplicationError(f"{text}: path={self._replica.path} epoch={found.epoch}")
