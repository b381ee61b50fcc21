"""A range of a remote queue as batches of columns, by Arrow Flight if its server offers it."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from datetime import date
from typing import TYPE_CHECKING

from quire.dataframes.scan import Scan, check_point
from quire.remote.flight_client import FlightPlace, checked, connected, raising

if TYPE_CHECKING:
    import pyarrow as pa


class FlightScan(Scan):
    """A range of a remote queue, of which only the named columns are decoded and sent."""

    def batches(self, names: Iterable[str] | None = None) -> Generator[pa.RecordBatch]:
        """Yield batches of these columns, cycle by cycle, by the server's tickets."""
        place: FlightPlace | None = self.queue._flight()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        if place is None:
            yield from super().batches(names)
            return
        from pyarrow import flight

        with raising(self.queue.path), connected(place) as (client, call):
            asked = flight.FlightDescriptor.for_command(self._ticket(names))
            for endpoint in client.get_flight_info(asked, call).endpoints:
                for chunk in client.do_get(endpoint.ticket, call):
                    yield checked(chunk.data)

    def _ticket(self, names: Iterable[str] | None) -> str:
        values: dict[str, object] = {
            "queue": self.queue._link.topic,  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            "from": _point("start", self.start),
            "to": _point("end", self.end),
            "schema": None if self.schema is None else self.schema.to_text(),
            "columns": None if names is None else [*names],
            "time_field": self.time_field,
            "errors": self.errors,
        }
        return json.dumps({name: it for name, it in values.items() if it is not None})


def _point(name: str, given: object) -> object:
    if given is not None:
        check_point(name, given)
    return given.isoformat() if isinstance(given, date) else given
