"""The listener of the page: uvicorn in the event loop of the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Generator
from typing import Any, ClassVar, Final

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from quire.errors import RefusedError
from quire.recording.addresses import listen, show_address
from quire.server.client_shares import ClientShares
from quire.server.context import Context
from quire.server.server_tls import name_in
from quire.server.web.visitors import CERTIFICATE, Visitors
from quire.server.web.web_app import WebApp

_log = logging.getLogger("quire")
_HEADER_BYTES: Final = 16 << 10
_ENDING_S: Final = 5
_IDLE_S: Final = 30
_STARTING_S: Final = 0.005
_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
)


class _Uvicorn(uvicorn.Server):
    """Uvicorn without signal handlers: signals are left to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture no signals."""
        yield


class _BoundedProtocol(H11Protocol):
    """
    HTTP/1.1 within the server's limits.

    A client that takes too long to send the head of a request is disconnected, and so is a client
    whose machine has too many connections.
    """

    _greeting_s: ClassVar[float]
    _shares: ClassVar[ClientShares]
    _late: asyncio.TimerHandle | None = None
    _machine: str | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        super().connection_made(transport)
        machine = str((self.client or ("?", 0))[0])
        try:
            self._shares.take(machine)
        except RefusedError as refusal:
            transport.write(_UNAVAILABLE + f"{refusal}\n".encode())
            transport.close()
            return
        self._machine = machine
        self.app = _with_certificate(self.app, name_in(transport.get_extra_info("peercert")))
        self._late = self.loop.call_later(self._greeting_s, self._is_late)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: Any = self.cycle  # None before the first request
        is_between = cycle is None or cycle.response_complete
        if is_between and self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self._greeting_s, self._is_late)
        elif not is_between:
            self._forget_late()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._machine is not None:
            self._shares.give_back(self._machine)
        self._forget_late()
        super().connection_lost(exc)

    def _forget_late(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _is_late(self) -> None:
        peer = show_address(self.client or ("?", 0))
        _log.warning("disconnected a slow client: peer=%s", peer)
        self.transport.abort()


def _protocol(greeting_s: float, shares: ClientShares) -> type[H11Protocol]:
    limits = {"_greeting_s": greeting_s, "_shares": shares}
    return type("BoundedProtocol", (_BoundedProtocol,), limits)


def _with_certificate(app: Any, name: str) -> Any:  # noqa: ANN401 - as uvicorn has them
    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, CERTIFICATE: name}, receive, send)

    return called


class WebListener:
    """
    Serves the page.

    Args:
        context: What all clients of the server share.
        address: Where to listen: a host and a port, 0 for a free one.
        tls: The certificates; None: without TLS.
        given: A socket that already listens, to be used instead of the address.

    """

    def __init__(
        self,
        context: Context,
        address: tuple[str, int],
        tls: ssl.SSLContext | None,
        given: socket.socket | None = None,
    ) -> None:
        self._context, self._wanted, self._tls, self._given = context, address, tls, given
        self._address: tuple[str, int] | None = None
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None
        self._app: WebApp | None = None

    async def start(self) -> None:
        """
        Start listening.

        Raises:
            OSError: The address cannot be listened on.

        """
        listening = listen(self._wanted) if self._given is None else self._given
        host, port, *_ = listening.getsockname()
        self._address = str(host), int(port)
        visitors = Visitors(self._context, self._address, is_secure=self._tls is not None)
        app = self._app = WebApp(self._context, visitors)
        limits, tls = self._context.limits, self._tls
        refusal = "too many connections to the page"
        shares = ClientShares(refusal, limits.connections, limits.connections_of_one)
        config = uvicorn.Config(
            app.asgi,
            interface="asgi3",
            lifespan="off",
            ws="none",
            http=_protocol(limits.greeting_s, shares),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=_ENDING_S,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        )
        logging.getLogger("uvicorn").setLevel(logging.ERROR)  # not errors of clients
        server = self._server = _Uvicorn(config)
        self._task = asyncio.get_running_loop().create_task(server.serve(sockets=[listening]))
        while not server.started and not self._task.done():  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(_STARTING_S)
        if self._task.done():
            self._task.result()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that it listens on."""
        if self._address is None:
            raise RuntimeError("the page is not being served")
        return self._address

    async def close(self) -> None:
        """Stop listening, end the live pages, and answer the pending requests."""
        if self._app is not None:
            self._app.end_live()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        if self._app is not None:
            self._app.close()
        self._app = self._server = self._task = None
