"""The recorder of datagrams."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import Final

from quire.handles.base import Appender
from quire.recording.addresses import binding
from quire.recording.recorder import AT_LEAST_ONE, PortRecorder
from quire.recording.waiting import LAST_READS

MAX_DATAGRAM_BYTES: Final = (1 << 16) - 1
_BATCH: Final = 2048
_RECEIVE_BUFFER_BYTES: Final = 4 << 20
_SO_MEMINFO: Final = 55  # of Linux; Python has no name for it
_MEMINFO: Final = struct.Struct("9I")
_DROPS: Final = 8
_PAST_DROPS: Final = 1 << 32


class UdpRecorder(PortRecorder):
    """
    Appends each datagram that arrives as a message.

    UDP resends nothing: a datagram that arrives while the receive buffer is full is lost, and
    counted as ``counts.dropped``. Datagrams are read as fast as possible, and appended in batches.

    Args:
        appender: Writes the messages.
        host: The address to listen on.
        port: The port; 0: a free one, which *address* has.
        max_bytes: The length of the longest message; longer datagrams are refused, none is
            truncated.
        receive_buffer_bytes: The size of the receive buffer to request; the system grants at most
            ``net.core.rmem_max``.

    Examples:
        >>> import asyncio, socket
        >>> from quire.recording import UdpRecorder
        >>> async def record():
        ...     async with UdpRecorder(appender) as recorder:
        ...         with socket.socket(type=socket.SOCK_DGRAM) as sender:
        ...             _ = sender.sendto(b"one", recorder.address)
        ...         while not recorder.counts.written:
        ...             await asyncio.sleep(0.001)
        >>> asyncio.run(record())
        >>> tailer.read().data
        b'one'

    """

    def __init__(
        self,
        appender: Appender,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        max_bytes: int = MAX_DATAGRAM_BYTES,
        receive_buffer_bytes: int = _RECEIVE_BUFFER_BYTES,
    ) -> None:
        super().__init__(appender, max_bytes, (host, port))
        self._receive_buffer_bytes = AT_LEAST_ONE("receive_buffer_bytes", receive_buffer_bytes)

    @property
    def receive_buffer_bytes(self) -> int:
        """The granted size of the receive buffer; Linux reports twice the requested size."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    def _begin(self) -> None:
        family = socket.AF_INET6 if ":" in self._asked[0] else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.settimeout(0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
            with binding(self._asked):
                self._socket.bind(self._asked)
            self._count_drops()
        except BaseException:
            self._socket.close()
            raise

    async def _run(self) -> None:
        descriptor = self._socket.fileno()
        while await self._waiter.readable(descriptor):
            await self._write(self._batch())
            self._count_drops()
            await asyncio.sleep(0)
        for _ in range(LAST_READS):
            if not (batch := self._batch()):
                break
            await self._write(batch)
        self._count_drops()

    def _batch(self) -> list[bytes]:
        """Return the datagrams that have arrived, limited so that other tasks do not wait long."""
        found: list[bytes] = []
        receive, keep = self._socket.recv, found.append
        try:
            for _ in range(_BATCH):
                keep(receive(MAX_DATAGRAM_BYTES))
        except BlockingIOError:
            pass
        return found

    def _count_drops(self) -> None:
        if sys.platform != "linux":
            return
        facts = self._socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
        now, before = _MEMINFO.unpack(facts)[_DROPS], self._counts.dropped or 0
        # The system counts in 32 bits.
        self._counts.dropped = before + (now - before) % _PAST_DROPS
