"""A range of a remote queue as batches of columns, by Arrow Flight where its server has that."""

from __future__ import annotations

import json
import ssl
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

import quire.errors
from quire.dataframes.scan import Scan
from quire.errors import QuireError, RefusedError, ServerLostError
from quire.remote.address import SCHEME, parse

if TYPE_CHECKING:
    from quire.remote.address import Tls
    from quire.remote.link import RemoteLink

_ANYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - as a server says it, not to listen there
_DETAIL: Final = (". Detail:", ". gRPC client debug context:", ". Client context:")


class FlightPlace(NamedTuple):
    """
    Where a server has Arrow Flight, and how it is reached.

    Attributes:
        location: Its address, as gRPC takes it.
        token: The token, if it needs one.
        authority: The PEM text of who signs its certificate; None: those of the system.

    """

    location: str
    token: str | None
    authority: bytes | None

    @classmethod
    def of(cls, link: RemoteLink, tls: Tls) -> FlightPlace | None:
        """Return where the server of a queue has Flight; None: it has none, or not for *tls*."""
        greeting: dict[bytes | str, Any] = link.ask("HELLO", 3)
        found = greeting.get("flight", greeting.get(b"flight"))
        if found is None or isinstance(tls, ssl.SSLContext):
            return None
        at = parse(f"{SCHEME}{found.decode()}/flight")
        at = at._replace(host=link.address.host) if at.host in _ANYWHERE else at
        scheme = "grpc+tls://" if tls else "grpc://"
        location = at.url.replace(SCHEME, scheme).removesuffix("/flight")
        file = None if isinstance(tls, bool) else tls
        return cls(location, link.server.token, None if file is None else Path(file).read_bytes())


class FlightScan(Scan):
    """A range of a remote queue. Columns that are not named are neither decoded nor sent."""

    def batches(self, names: Iterable[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield batches of these columns: cycle by cycle, by the tickets that the server gives."""
        place: FlightPlace | None = self.queue._flight()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if place is None:
            yield from super().batches(names)
            return
        from pyarrow import flight

        headers: Any = []
        if place.token is not None:
            headers = [(b"authorization", f"Bearer {place.token}".encode())]
        call = flight.FlightCallOptions(headers=headers)
        authority: Any = place.authority  # bytes, although its stubs say text
        client: Any = flight.FlightClient(place.location, tls_root_certs=authority)
        with client, _raising(self.queue.path):
            asked = flight.FlightDescriptor.for_command(self._ticket(names))
            for endpoint in client.get_flight_info(asked, call).endpoints:
                for chunk in client.do_get(endpoint.ticket, call):
                    chunk.data.validate(full=True)  # the server may be anybody's
                    yield chunk.data

    def _ticket(self, names: Iterable[str] | None) -> str:
        values: dict[str, object] = {
            "queue": self.queue._link.topic,  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            "from": _point(self.start),
            "to": _point(self.end),
            "schema": None if self.schema is None else self.schema.to_text(),
            "columns": None if names is None else [*names],
            "time_field": self.time_field,
            "errors": self.errors,
        }
        return json.dumps({name: it for name, it in values.items() if it is not None})


def _point(given: object) -> object:
    return given.isoformat() if isinstance(given, date) else given


@contextmanager
def _raising(path: str) -> Generator[None]:
    """Raise the errors of Quire that a server names."""
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
    """Return what the server said, without what gRPC adds."""
    text = str(error)
    for mark in _DETAIL:
        text = text.partition(mark)[0]
    return text
