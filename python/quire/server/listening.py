"""The server: one directory of queues, and the listeners that serve it."""

from __future__ import annotations

import asyncio
import asyncio.trsock
import logging
import socket
import ssl
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from quire.errors import OptionsError
from quire.replication.tls import is_loopback
from quire.server.append_ids import AppendIds
from quire.server.audit import Audit
from quire.server.commands import add_all, carry_out
from quire.server.connections import ClientConnection, Hub
from quire.server.context import Context, Limits
from quire.server.peer_servers import Peer, Peers
from quire.server.queue_folder import Queues
from quire.server.server_tls import Certificates
from quire.server.stream_groups import FOLDER, StreamGroups
from quire.server.tokens import TokenFile

if TYPE_CHECKING:
    from quire.server.flight.flight_listener import FlightListener
    from quire.server.web.web_listener import WebListener

_log = logging.getLogger("quire")
_ENDING_S: Final = 5.0
_HANDSHAKE_S: Final = 5.0
_BACKLOG: Final = 1024


class Server:
    r"""
    Serves the queues below a directory to clients of Redis Streams.

    Any process on this machine may append to the queues and read them at the same time.

    Args:
        directory: The directory; the name of each queue is its path below it.
        host: The address to listen on; None: clients of Redis Streams are not served.
        port: The port; 0 picks a free one, see :attr:`address`.
        flight: The address and the port for clients of Arrow Flight; None: they are not served.
        web: The address and the port of the page for browsers, see ``docs/web.md``; None: no page.
        tokens: The file of tokens; None: clients need none.
        tls: The certificates: see :func:`quire.server.tls_context`.
        certificates: The same, as the files that Arrow Flight takes.
        insecure: Listen beyond this machine without certificates, or without tokens and without
            asking clients for certificates.
        audit: The directory of a queue that records which client did what, not below *directory*;
            None: no audit log.
        limits: What clients may use.
        sockets: Listening sockets, ``listen`` and ``web``, in place of the addresses.
        peers: The queues of other servers, as ``orders/*=10.0.0.2:7000``: clients are redirected
            there.

    Raises:
        NotAQueueError: The directory does not exist, or is a queue itself.
        OptionsError: An address is beyond this machine, and *tls* is missing, or both tokens and
            an authority of clients' certificates; a peer is not valid; or *audit* is below
            *directory*.

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
        host: str | None = "127.0.0.1",
        port: int = 0,
        flight: tuple[str, int] | None = None,
        web: tuple[str, int] | None = None,
        tokens: str | PathLike[str] | None = None,
        tls: ssl.SSLContext | None = None,
        certificates: Certificates | None = None,
        insecure: bool = False,
        audit: str | PathLike[str] | None = None,
        limits: Limits | None = None,
        sockets: Mapping[str, socket.socket] | None = None,
        peers: Iterable[str] = (),
    ) -> None:
        self._sockets = dict(sockets or {})
        if "listen" in self._sockets:
            host, port = _bound(self._sockets["listen"])
        if "web" in self._sockets:
            web = _bound(self._sockets["web"])
        file = None if tokens is None else TokenFile(tokens)
        if flight is not None and (tls is None) != (certificates is None):
            raise OptionsError("with Arrow Flight, give both `tls` and `certificates`, or neither")
        asks = tls is not None and tls.verify_mode is ssl.CERT_REQUIRED
        asks_by_flight = certificates is not None and certificates.authority is not None
        for at, is_asked in ((host, asks), (flight, asks_by_flight), (web, asks)):
            if at is not None and not insecure:
                _check_reach(at if isinstance(at, str) else at[0], tls, file, is_asked=is_asked)
        self._host, self._port, self._tls = host, port, tls
        self._flight_address, self._certificates, self._web_address = flight, certificates, web
        limits = limits or Limits()
        queues = Queues(directory, limits.queues, Peers(map(Peer.of, peers)))
        self._audit = None if audit is None else Audit(Path(audit), served=queues.path)
        appends = AppendIds(queues.path, FOLDER)
        groups = StreamGroups(queues.path)
        self.context = Context(queues, groups, appends, file, limits, carry_out, add_all)
        if self._audit is not None:
            self.context.note = self._audit.note
        self._hub: Hub | None = None
        self._server: asyncio.Server | None = None
        self._flight: FlightListener | None = None
        self._web: WebListener | None = None

    async def __aenter__(self) -> Self:
        """
        Start listening.

        Raises:
            OptionsError: A peer is this server.

        """
        self._hub = hub = Hub(self.context)
        hub.start()
        try:
            await asyncio.to_thread(self._check_peers)
            if self._host is not None:
                self._server = await self._listen(self._host, hub)
            if self._flight_address is not None:
                self._flight = _flight_listener(
                    self.context, self._flight_address, self._certificates
                )
                await self._flight.start()
            if self._web_address is not None:
                self._web = _web_listener(
                    self.context, self._web_address, self._tls, self._sockets.get("web")
                )
                await self._web.start()
        except BaseException:
            await self.close()
            raise
        return self

    def _check_peers(self) -> None:
        """Check that peers are other servers, and log the local queues that are theirs."""
        queues = self.context.queues
        own = None if self._host is None else (self._host, self._port)
        addresses = (own, self._flight_address, self._web_address)
        queues.peers.check_others(it for it in addresses if it is not None)
        if hidden := queues.hidden():
            _log.warning(
                "queues below the directory are not served, as their names"
                " belong to peers: count=%d first=%s",
                len(hidden),
                hidden[0],
            )

    async def _listen(self, host: str, hub: Hub) -> asyncio.Server:
        given = self._sockets.get("listen")
        options: dict[str, Any] = {
            **({"host": host, "port": self._port} if given is None else {"sock": given}),
            "ssl": self._tls,
            "ssl_handshake_timeout": _HANDSHAKE_S if self._tls else None,
            "backlog": _BACKLOG,
        }
        create: Any = asyncio.get_running_loop().create_server
        server: asyncio.Server = await create(lambda: ClientConnection(hub), **options)
        return server

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
        hub, self._hub = self._hub, None
        if hub is None:
            return
        if self._server is not None:
            self._server.close()
        if self._flight is not None:
            await self._flight.close()
        if self._web is not None:
            await self._web.close()
        await hub.end(_ENDING_S)
        self._server = self._flight = self._web = None
        self.context.names.close()
        self.context.groups.close()
        self.context.appends.close()
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
        """The host and the port at which it listens for clients of Redis Streams."""
        if self._server is None:
            raise RuntimeError("the server does not listen: use it in `async with`")
        return _address_of(self._server)

    @property
    def flight_address(self) -> tuple[str, int]:
        """The host and the port at which it listens for clients of Arrow Flight."""
        if self._flight is None:
            raise RuntimeError("Arrow Flight is not served: give `flight`, and use `async with`")
        return self._flight.address

    @property
    def web_address(self) -> tuple[str, int]:
        """The host and the port of the page for browsers."""
        if self._web is None:
            raise RuntimeError("the server has no page: give `web`, and use it in `async with`")
        return self._web.address

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """All its addresses: for clients of Redis Streams, of Arrow Flight, and for browsers."""
        found = [] if self._server is None else [_address_of(self._server)]
        return [*found, *(it.address for it in (self._flight, self._web) if it is not None)]


def _address_of(server: asyncio.Server) -> tuple[str, int]:
    return _bound(server.sockets[0])


def _bound(found: socket.socket | asyncio.trsock.TransportSocket) -> tuple[str, int]:
    host, port, *_ = found.getsockname()
    return str(host), int(port)


def _flight_listener(
    context: Context, address: tuple[str, int], certificates: Certificates | None
) -> FlightListener:
    from quire.server.flight.flight_listener import FlightListener  # of the extra `flight`

    return FlightListener(context, address, certificates)


def _web_listener(
    context: Context,
    address: tuple[str, int],
    tls: ssl.SSLContext | None,
    given: socket.socket | None,
) -> WebListener:
    from quire.server.web.web_listener import WebListener  # of the extra `web`

    return WebListener(context, address, tls, given)


def _check_reach(
    host: str, tls: ssl.SSLContext | None, tokens: TokenFile | None, *, is_asked: bool
) -> None:
    """
    Check that an address beyond this machine is protected.

    Args:
        host: The address.
        tls: The server's certificate.
        tokens: The file of tokens.
        is_asked: Whether clients need a certificate, which may replace tokens.

    Raises:
        OptionsError: The address is beyond this machine, and TLS or a token is missing.

    """
    has_tokens = is_asked or (tokens is not None and tokens.is_required)
    if is_loopback(host) or (tls is not None and has_tokens):
        return
    wanted = {"TLS": tls is None, "tokens": not has_tokens}
    missing = " and ".join(name for name, is_missing in wanted.items() if is_missing)
    raise OptionsError(
        f"serving beyond this machine needs {missing}: host={host} (give a certificate and"
        " a key, and make a token with quire token add, or ask clients for certificates with"
        " --authority; --insecure allows it without)"
    )
