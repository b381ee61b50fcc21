"""A connection of the asyncio drivers, which carries the bytes of a session."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Final

from quire.errors import PeerLostError, PeerSilentError
from quire.replication.peers import is_of_same_user

READ_BYTES: Final = 1 << 20
LAST_WORDS_S: Final = 2.0
"""How long a peer may take to read the reason why a connection ends."""


def _welcome() -> None:
    """Accept a peer that has identified itself."""


class Connection:
    """
    A connection to a peer.

    Args:
        reader: The bytes from the peer.
        writer: The bytes to the peer.

    Attributes:
        peer: The peer's address.
        is_trusted: Whether the peer has shown a certificate, or is a process of this user on this
            machine.
        is_known: Whether the peer has identified itself.
        on_known: Called once it has; may raise the error for which it is disconnected.

    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._securing: asyncio.Task[None] | None = None
        own, other = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
        self.peer = _shown(other)
        self.is_known, self.on_known = False, _welcome
        # Now: once the peer has closed the connection, the system no longer knows its user.
        self.is_trusted = writer.get_extra_info("ssl_object") is not None or is_of_same_user(
            own, other
        )
        if (found := writer.get_extra_info("socket")) is not None:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @classmethod
    async def to(
        cls, host: str, port: int, *, tls: ssl.SSLContext | None = None, timeout_s: float
    ) -> Connection:
        """
        Connect to a peer that listens.

        Raises:
            PeerLostError: No process listens at the address, or the peer was refused.
            PeerSilentError: The peer does not answer the connection attempt.

        """
        with failures(f"{host}:{port}"):
            try:
                async with asyncio.timeout(timeout_s):
                    return cls(*await asyncio.open_connection(host, port, ssl=tls))
            except TimeoutError:
                text = "the peer does not answer"
                raise PeerSilentError(f"{text}: peer={host}:{port} {timeout_s=}") from None

    async def secure(self, tls: ssl.SSLContext, timeout_s: float) -> None:
        """
        Start TLS with a peer that has connected; nothing may have been read before.

        Raises:
            PeerLostError: The peer has no certificate that is trusted, or the connection failed.
            PeerSilentError: The peer did not show its certificate in time.

        """
        self._securing = asyncio.current_task()
        try:
            with failures(self.peer):
                async with asyncio.timeout(timeout_s):
                    await self._writer.start_tls(tls)
        except TimeoutError:
            text = "the peer did not start an encrypted connection"
            raise PeerSilentError(f"{text}: peer={self.peer} {timeout_s=}") from None
        finally:
            self._securing = None
        self.is_trusted = True

    def hold(self) -> None:
        """Read nothing until TLS has started: the first bytes belong to it."""
        transport = self._writer.transport
        if isinstance(transport, asyncio.ReadTransport):
            transport.pause_reading()

    def note_known(self) -> None:
        """Record that the peer has identified itself."""
        if not self.is_known:
            self.on_known()
            self.is_known = True

    async def read(self, timeout_s: float | None = None) -> bytes:
        """
        Return the next bytes, at least one; no bytes if *timeout_s* is over.

        Raises:
            PeerLostError: The connection was closed, or failed.

        """
        with failures(self.peer):
            try:
                async with asyncio.timeout(timeout_s):
                    data = await self._reader.read(READ_BYTES)
            except TimeoutError:
                return b""
        if not data:
            raise PeerLostError(f"the peer closed the connection: peer={self.peer}")
        return data

    async def send(self, data: bytes, timeout_s: float) -> None:
        """
        Send bytes; return once the send buffer has drained far enough for more.

        Raises:
            PeerLostError: The connection was closed, or failed.
            PeerSilentError: The peer read nothing for too long.

        """
        if not data:
            return
        with failures(self.peer):
            self._writer.write(data)
            transport = self._writer.transport
            if not (transport.is_closing() or transport.get_write_buffer_size()):
                return  # the system took all bytes
            async with self._limit(timeout_s):
                await self._writer.drain()

    async def lend(self, timeout_s: float) -> tuple[socket.socket, bytes]:
        """
        Pass the connection to another thread: return its socket, and the bytes already received.

        Raises:
            PeerLostError: The connection was closed, or failed.
            PeerSilentError: The peer read nothing for too long.

        """
        transport, found = self._writer.transport, list[bytes]()
        with ExitStack() as failed:
            failed.callback(self.take_back, b"")
            self.hold()
            # Bytes before the end of the stream must not be lost; a read may resume reading.
            while not self._reader.at_eof() and (data := await self.read(0.0)):
                found.append(data)
                self.hold()
            with failures(self.peer):
                transport.set_write_buffer_limits(0)
                async with self._limit(timeout_s):
                    await self._writer.drain()
                own: socket.socket | None = self._writer.get_extra_info("socket")
                if own is None or transport.is_closing():
                    raise PeerLostError(f"the connection was closed: peer={self.peer}")
                lent = own.dup()
            failed.pop_all()
            return lent, b"".join(found)

    def take_back(self, data: bytes | memoryview) -> None:
        """Take the connection back from the other thread, and send the bytes that are left."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        transport.set_write_buffer_limits()
        self._writer.write(data)
        if isinstance(transport, asyncio.ReadTransport):
            transport.resume_reading()

    async def finish(self, timeout_s: float) -> None:
        """
        Close the connection once the peer has received all bytes.

        Raises:
            PeerLostError: The connection was closed, or failed.
            PeerSilentError: The peer read nothing for too long.

        """
        with failures(self.peer):
            self._writer.close()
            async with self._limit(timeout_s):
                await self._writer.wait_closed()

    async def send_last(self, data: bytes, timeout_s: float) -> None:
        """Send the last bytes, as far as the peer accepts them, and close the connection."""
        with suppress(PeerLostError, PeerSilentError):
            await self.send(data, timeout_s)
            await self.finish(timeout_s)
        self.close()

    @asynccontextmanager
    async def _limit(self, timeout_s: float) -> AsyncGenerator[None]:
        """Raise `PeerSilentError` if the peer takes nothing for too long."""
        try:
            async with asyncio.timeout(timeout_s):
                yield
        except TimeoutError:
            text = "the peer read nothing for too long"
            raise PeerSilentError(f"{text}: peer={self.peer} timeout_s={timeout_s}") from None

    def close(self) -> None:
        """Close the connection; bytes that the peer has not taken are dropped."""
        if self._securing is not None and self._securing is not asyncio.current_task():
            self._securing.cancel()  # closes the connection
            return
        self._writer.transport.abort()


@contextmanager
def failures(peer: str) -> Generator[None]:
    """Turn the failure of a connection into a `PeerLostError` that names the peer."""
    try:
        yield
    except (PeerLostError, PeerSilentError):
        raise
    except OSError as error:  # includes the errors of TLS
        raise failure(peer, error) from None


def failure(peer: str, error: OSError) -> PeerLostError:
    """Return the error of a failed connection."""
    return PeerLostError(f"the connection failed: peer={peer} reason={error}")


def _shown(address: tuple[object, ...] | None) -> str:
    if not address:
        return "unknown"
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
