"""The address at which a server listens for clients of Arrow Flight."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import flight

from quire.errors import OptionsError
from quire.recording.addresses import show_address
from quire.server.flight.callers import Caller, Callers
from quire.server.flight.flight_service import FlightService, Shared
from quire.server.server_tls import Certificates

if TYPE_CHECKING:
    from quire.server.context import Context

_log = logging.getLogger("quire")
_OPENING_S: Final = 60.0
_ENDING_S: Final = 3.0
_BREAKS: Final = 8
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)


def _taken(certificates: Certificates) -> dict[str, Any]:
    """
    Return certificates in gRPC's form.

    Raises:
        OptionsError: A file cannot be read.

    """
    try:
        pair = flight.CertKeyPair(_text(certificates.certificate), _text(certificates.key))
        found: dict[str, Any] = {"tls_certificates": [pair]}
        if certificates.authority is not None:
            found |= {"verify_client": True, "root_certificates": _text(certificates.authority)}
    except OSError as error:
        raise OptionsError(f"cannot use TLS: {error}") from None
    return found


def _text(path: str | PathLike[str]) -> str:
    return Path(path).read_text(encoding="ascii", errors="replace")


def _refusal(address: tuple[str, int]) -> str | None:
    """Return why the system refuses to listen on an address: gRPC does not report it."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        with socket.socket(family) as tried:
            tried.bind(address)
            tried.listen()
    except OSError as error:
        return error.strerror
    return None


class FlightListener:
    """
    Serves clients of Arrow Flight beside the other clients of a server.

    Args:
        context: What they share.
        address: The host and the port.
        certificates: The files of certificates; None: no TLS.

    """

    def __init__(
        self,
        context: Context,
        address: tuple[str, int],
        certificates: Certificates | None,
    ) -> None:
        self._context, self._asked = context, address
        self._tls = {} if certificates is None else _taken(certificates)
        self._service: FlightService | None = None

    async def start(self) -> None:
        """
        Listen.

        Raises:
            OSError: The address cannot be listened on, or a certificate cannot be used.

        """
        loop, context = asyncio.get_running_loop(), self._context
        limits = context.limits

        def note(what: str, caller: Caller, about: str) -> None:
            loop.call_soon_threadsafe(context.note, what, caller, about)

        def on_loop(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the call returns
            async def called() -> Any:  # noqa: ANN401
                return call()

            return asyncio.run_coroutine_threadsafe(called(), loop).result(_OPENING_S)

        callers = Callers(context.tokens, note, limits.streams, limits.streams_of_one)
        shared = Shared(context.queues, callers, on_loop, context.created)
        scheme = "grpc+tls" if self._tls else "grpc"
        where = show_address(self._asked)
        try:
            self._service = FlightService(f"{scheme}://{where}", shared, self._tls)
        except (pa.ArrowException, OSError) as error:
            reason = _refusal(self._asked) or error
            raise OSError(f"cannot listen: address={where} reason={reason}") from None
        context.addresses["flight"] = show_address(self.address)

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that it listens on."""
        if self._service is None:
            raise RuntimeError("the server does not listen: use it in `async with`")
        return self._asked[0], self._service.port

    async def close(self) -> None:
        """Stop listening; running streams have a few seconds to end."""
        service, self._service = self._service, None
        if service is None:
            return
        port, ending = service.port, Thread(target=service.shutdown, name="quire-flight-end")
        ending.daemon = True
        ending.start()
        steps: list[Callable[[], None]] = [_nothing, service.end_streams]
        steps += [partial(_disconnect, port)] * _BREAKS  # a client may connect in between
        for step in steps:
            step()
            await asyncio.to_thread(ending.join, _ENDING_S)
            if not ending.is_alive():
                return
        _log.error("clients of Flight are still connected: port=%d", port)


def _nothing() -> None:
    return


def _disconnect(port: int) -> None:
    """Break the connections to a port: gRPC waits for ever for a client that reads nothing."""
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError, ValueError), socket.socket(fileno=os.dup(int(path.name))) as found:
            if found.family in _FAMILIES and found.getsockname()[1] == port and found.getpeername():
                found.shutdown(socket.SHUT_RDWR)
