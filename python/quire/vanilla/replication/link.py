"""A connection whose failures are `PeerLostError` and `PeerSilentError`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from quire.errors import PeerLostError, PeerSilentError

_READ_BYTES: Final = 256 << 10


class Link:
    """
    A connection to a peer.

    Args:
        reader: The bytes it sends.
        writer: The bytes it gets.
        timeout_s: How long it may be silent where something has to come, or take nothing.

    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout_s: float
    ) -> None:
        self._reader, self._writer = reader, writer
        self._timeout_s = timeout_s
        self.peer = _shown(writer.get_extra_info("peername"))
        if (found := writer.get_extra_info("socket")) is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @classmethod
    async def connect(cls, host: str, port: int, timeout_s: float) -> Link:
        """Connect to a peer that listens."""
        with _failures(_shown((host, port)), timeout_s):
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(host, port)
        return cls(reader, writer, timeout_s)

    async def read(self) -> bytes:
        """Return the next bytes, at least one."""
        with _failures(self.peer, self._timeout_s):
            async with asyncio.timeout(self._timeout_s):
                chunk = await self._reader.read(_READ_BYTES)
        if not chunk:
            raise PeerLostError(f"the peer closed the connection: peer={self.peer}")
        return chunk

    async def read_exactly(self, count: int, *, may_wait: bool = False) -> bytes:
        """Return exactly *count* bytes; *may_wait*: without a timeout for the first."""
        if count == 0:
            return b""
        with _failures(self.peer, self._timeout_s):
            first = await self._reader.readexactly(1) if may_wait else b""
            async with asyncio.timeout(self._timeout_s):
                return first + await self._reader.readexactly(count - len(first))

    async def send(self, chunk: bytes) -> None:
        """Return when the peer has taken enough of what it was sent."""
        with _failures(self.peer, self._timeout_s):
            self._writer.write(chunk)
            async with asyncio.timeout(self._timeout_s):
                await self._writer.drain()

    async def finish(self) -> None:
        """Close the connection once the peer has taken what it was sent."""
        with _failures(self.peer, self._timeout_s):
            self._writer.close()
            async with asyncio.timeout(self._timeout_s):
                await self._writer.wait_closed()

    def close(self) -> None:
        """Close the connection; what the peer has not taken is dropped."""
        self._writer.transport.abort()


@contextmanager
def _failures(peer: str, timeout_s: float) -> Generator[None]:
    try:
        yield
    except TimeoutError:
        text = "the peer sent nothing, or took nothing, for too long"
        raise PeerSilentError(f"{text}: peer={peer} timeout_s={timeout_s}") from None
    except asyncio.IncompleteReadError:
        raise PeerLostError(f"the peer closed the connection: peer={peer}") from None
    except OSError as error:
        raise PeerLostError(f"the connection failed: peer={peer} reason={error}") from None


def _shown(address: tuple[object, ...] | None) -> str:
    return ":".join(map(str, address[:2])) if address else "unknown"
