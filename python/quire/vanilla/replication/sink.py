"""The sink of a replication: a client that keeps a copy of what a source sends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from os import PathLike
from typing import Any, Final

from quire._common import arguments
from quire.replication.drivers.any_sink import AnySink
from quire.vanilla.replication.replica import Replica
from quire.vanilla.replication.sink_session import SinkSession
from quire.vanilla.replication.wire_frames import HEARTBEAT_S

_MISSED_HEARTBEATS: Final = 4


class Sink(AnySink[SinkSession]):
    """
    Keeps a copy of a source's queue: the same messages with the same indexes.

    It subscribes after the last message of the copy, and again whenever the connection is lost.
    Nothing else may append to the copy; any process may read it.

    Args:
        path: The directory of the copy, which is created if it does not exist.
        host: The address of the source.
        port: Its port.
        acknowledge: Report to the source what is stored. Only Quire's sources understand it;
            Java's close the connection.
        reconnect_s: How long to wait before connecting again.
        attempts: Give up after this many successive connections without progress; None: never.
        silence_s: A connection that is silent for this long counts as lost. Sources send a
            heartbeat every 2.5 s.
        on_cycle: Called with the number of each cycle when its first messages are stored. An
            exception of it ends the replication.
        listens: Listen at *host* and *port* for the source to connect, as ``connects=True`` has it
            do, one at a time. A source that cannot be followed is logged, and does not end it.
        options: Options of :func:`quire.vanilla.open` for the copy. Its cycles must be those of the
            source; with ``synchronous=True``, only messages on the medium are acknowledged.

    Raises:
        LockHeldError: Another sink keeps this copy.
        TableLostError: The directory of the copy was renamed, removed or replaced.

    Examples:
        >>> import asyncio
        >>> from quire.vanilla.replication import Sink, Source
        >>> async def replicate(queue):
        ...     async with Source(queue, heartbeat_s=0.1) as source:
        ...         async with Sink("copy", port=source.address[1], on_cycle=cycles.append) as sink:
        ...             await sink.stored(queue.last_index)
        ...             await sink.in_sync()
        ...             return sink.last_index
        >>> cycles = []
        >>> with quire.open("book", format="vanilla") as book:
        ...     _ = book.appender().write_text("hello")
        ...     asyncio.run(replicate(book)) == book.last_index, cycles == book.cycles
        (True, True)

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        path: str | PathLike[str],
        *,
        host: str = "127.0.0.1",
        port: int,
        acknowledge: bool = False,
        reconnect_s: float = 0.5,
        attempts: int | None = None,
        silence_s: float = _MISSED_HEARTBEATS * HEARTBEAT_S,
        on_cycle: Callable[[int], object] | None = None,
        listens: bool = False,
        **options: Any,  # noqa: ANN401 - as `quire.open` takes them
    ) -> None:
        self._acknowledge = acknowledge
        self._silence_s = arguments.seconds("silence_s", silence_s)
        super().__init__(
            os.fspath(path),
            host=host,
            port=port,
            connect_s=self._silence_s,
            reconnect_s=reconnect_s,
            attempts=attempts,
            listens=listens,
        )
        self._on_cycle = on_cycle
        self._in_syncs = self._in_syncs_before = 0
        self._copy = Replica(path, options)

    @property
    def last_index(self) -> int | None:
        """The index of the last message of the copy; None when it has none."""
        return self._copy.last_index

    async def in_sync(self) -> None:
        """
        Wait until the source reports that it has no more messages for now.

        It does so in its next heartbeat.
        """
        before = self._in_syncs
        await self._until(lambda: self._in_syncs > before)

    async def stored(self, index: int) -> None:
        """Wait until the copy has a message."""
        await self._until(lambda: self._copy.has(index))

    def _check(self) -> None:
        self._copy.check_present()

    def _close_copy(self) -> None:
        self._copy.close()

    def _new_session(self, peer: str) -> SinkSession:
        self._in_syncs_before = self._in_syncs
        return SinkSession(
            self._copy,
            peer=peer,
            acknowledge=self._acknowledge,
            silence_s=self._silence_s,
            now_ns=time.monotonic_ns(),
        )

    def _note(self, session: SinkSession) -> None:
        self._in_syncs = self._in_syncs_before + session.in_syncs
        while session.begun_cycles:
            cycle = session.begun_cycles.pop(0)
            if self._on_cycle is not None:
                self._on_cycle(cycle)
