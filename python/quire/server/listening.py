"""The server: one directory of queues, and the listeners that serve it."""

from __future__ import annotations

import asyncio
import ssl
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from quire.errors import OptionsError
from quire.replication.tls import is_loopback
from quire.server.audit import Audit
from quire.server.commands import carry_out
from quire.server.connections import ClientConnection, Hub
from quire.server.context import Context, Limits
from quire.server.queue_folder import Queues
from quire.server.stream_groups import StreamGroups
from quire.server.tokens import TokenFile

_ENDING_S: Final = 5.0
_HANDSHAKE_S: Final = 5.0
_BACKLOG: Final = 1024


class Server:
    r"""
    Serves the queues below a directory to clients of Redis Streams.

    Any process of this machine may append to the queues and read them meanwhile.

    Args:
        directory: The directory; each queue below it has its path there as name.
        host: The address to listen on.
        port: The port; 0 takes a free one, see :attr:`address`.
        tokens: The file of tokens; None: clients need none.
        tls: The certificates: see :func:`quire.server.tls_context`.
        insecure: Listen beyond this machine without certificates, or without tokens.
        audit: The directory of a queue in which is written who did what; None: nowhere.
        limits: What clients may use.

    Raises:
        NotAQueueError: The directory does not exist, or is a queue itself.
        OptionsError: *host* is beyond this machine, and *tls* or a token is missing.

    Examples:
        >>> import asyncio
        >>> from pathlib import Path
        >>> from quire.server import Server
        >>> Path("served").mkdir()
        >>> async def ask():
        ...     async with Server("served") as server:
        ...         reader, writer = await asyncio.open_connection(*server.address)
        ...         writer.write(b"*1\r\n$4\r\nPING\r\n")
        ...         return await reader.readline()
        >>> asyncio.run(ask())
        b'+PONG\r\n'

    """

    def __init__(  # noqa: PLR0913 - options
        self,
        directory: str | PathLike[str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: str | PathLike[str] | None = None,
        tls: ssl.SSLContext | None = None,
        insecure: bool = False,
        audit: str | PathLike[str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        file = None if tokens is None else TokenFile(tokens)
        has_tokens = file is not None and file.is_required
        if not insecure and not is_loopback(host) and (tls is None or not has_tokens):
            wanted = {"TLS": tls is None, "tokens": not has_tokens}
            missing = " and ".join(name for name, is_missing in wanted.items() if is_missing)
            raise OptionsError(
                f"serving beyond this machine needs {missing}: host={host} (give a certificate and"
                " a key, and make a token with quire token add; --insecure does without)"
            )
        self._host, self._port, self._tls = host, port, tls
        self._audit = None if audit is None else Audit(Path(audit))
        queues = Queues(directory)
        self.context = Context(
            queues, StreamGroups(queues.path), file, limits or Limits(), carry_out
        )
        if self._audit is not None:
            self.context.note = self._audit.note
        self._hub: Hub | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Start listening."""
        loop = asyncio.get_running_loop()
        hub = self._hub = Hub(self.context)
        hub.start()
        self._server = await loop.create_server(
            lambda: ClientConnection(hub),
            self._host,
            self._port,
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_S if self._tls else None,
            backlog=_BACKLOG,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening, answer what was accepted, and close every connection."""
        await self.close()

    async def close(self) -> None:
        """
        Stop listening, answer what was accepted, and close every connection.

            await server.close()
        """
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        if self._hub is not None:
            await self._hub.end(_ENDING_S)
        self.context.groups.close()
        self.context.queues.close()
        if self._audit is not None:
            self._audit.close()

    async def run_forever(self) -> None:
        """
        Serve until the task is cancelled.

            async with Server("queues", port=7000) as server:
                await server.run_forever()
        """
        await asyncio.Event().wait()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that it listens on."""
        if self._server is None:
            raise RuntimeError("the server does not listen: use it in `async with`")
        host, port, *_ = self._server.sockets[0].getsockname()
        return str(host), int(port)
