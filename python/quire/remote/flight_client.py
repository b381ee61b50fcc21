"""Arrow Flight of a server: its address, its streams, and its errors as Quire's."""

from __future__ import annotations

import ssl
from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

import quire.errors
from quire.errors import QuireError, RefusedError, ServerLostError
from quire.remote.address import SCHEME, parse

if TYPE_CHECKING:
    from quire.remote.address import Tls
    from quire.remote.link import RemoteLink

_ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - as a server says it, not to listen there
_DETAIL: Final = (". Detail:", ". gRPC client debug context:", ". Client context:")


class FlightPlace(NamedTuple):
    """
    The address of a server's Arrow Flight, and how to reach it.

    Attributes:
        location: The address, as gRPC takes it.
        token: The token, if the server requires one.
        authority: The authority of its certificate, as PEM text; None: those of the system.

    """

    location: str
    token: str | None
    authority: bytes | None

    @classmethod
    def of(cls, link: RemoteLink, tls: Tls) -> FlightPlace | None:
        """
        Return the Flight address of a queue's server; None: it has none, or none that fits *tls*.

        The token is sent only to addresses to which the server may redirect the client.
        """
        greeting: dict[bytes | str, Any] = link.ask("HELLO", 3)
        found = greeting.get("flight", greeting.get(b"flight"))
        if found is None or isinstance(tls, ssl.SSLContext):
            return None
        at = parse(f"{SCHEME}{found.decode()}/flight")
        at = at._replace(host=link.address.host) if at.host in _ANYWHERE else at
        if link.server.token is not None and not link.server.leads_to(at.host):
            return None
        scheme = "grpc+tls://" if tls else "grpc://"
        location = at.url.replace(SCHEME, scheme).removesuffix("/flight")
        authority = tls if isinstance(tls, bytes) else None
        if isinstance(tls, str | PathLike):
            authority = Path(tls).read_bytes()
        return cls(location, link.server.token, authority)


@contextmanager
def connected(place: FlightPlace) -> Generator[tuple[Any, Any]]:
    """Yield a client, and the options of its calls."""
    from pyarrow import flight

    headers: Any = []
    if place.token is not None:
        headers = [(b"authorization", f"Bearer {place.token}".encode())]
    authority: Any = place.authority  # bytes, although its stubs say text
    client: Any = flight.FlightClient(place.location, tls_root_certs=authority)
    with client:
        yield client, flight.FlightCallOptions(headers=headers, read_options=_aligned())


def _aligned() -> pa.ipc.IpcReadOptions | None:
    """Return options that align buffers as computations expect: otherwise they warn on stderr."""
    kinds: Any = getattr(pa.ipc, "Alignment", None)
    options: Any = pa.ipc.IpcReadOptions
    return None if kinds is None else options(ensure_alignment=kinds.DataTypeSpecific)


def checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose buffers were checked: the server may not be trustworthy."""
    batch.validate(full=True)
    return batch


def batches_of(place: FlightPlace, ticket: str) -> Generator[pa.RecordBatch]:
    """Yield the batches of one stream, which is ended when the caller stops."""
    from pyarrow import flight

    with connected(place) as (client, call):
        reader = client.do_get(flight.Ticket(ticket.encode()), call)
        is_whole = False
        try:
            for chunk in reader:
                yield checked(chunk.data)
            is_whole = True
        finally:
            if not is_whole:
                reader.cancel()


@contextmanager
def raising(path: str) -> Generator[None]:
    """
    Raise the errors of Quire that a server names.

    Raises:
        RefusedError: The server refused the token, or the call.
        ServerLostError: The server was not reached.

    """
    from pyarrow import flight

    try:
        yield
    except (flight.FlightUnauthenticatedError, flight.FlightUnauthorizedError) as error:
        raise RefusedError(f"{_plain(error)} path={path}") from None
    except (flight.FlightUnavailableError, flight.FlightTimedOutError) as error:
        raise ServerLostError(f"{_plain(error)} path={path}") from None
    except flight.FlightError as error:
        named: Any = getattr(quire.errors, error.extra_info.decode("ascii", "replace"), None)
        is_ours = isinstance(named, type) and issubclass(named, QuireError)
        raise (named if is_ours else RefusedError)(f"{_plain(error)} path={path}") from None


def _plain(error: Exception) -> str:
    """Return the server's text, without gRPC's additions."""
    text = str(error)
    for mark in _DETAIL:
        text = text.partition(mark)[0]
    return text
