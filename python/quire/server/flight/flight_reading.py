"""The messages that a ticket asks for, as batches of columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyarrow import flight

from quire.arrow.batches import array_of
from quire.arrow.column_types import fields_of
from quire.arrow.names import PAYLOAD, SUBTOPIC
from quire.dataframes.scan import BATCH_BYTES, BATCH_ROWS, Scan, part_of, with_errors
from quire.errors import RefusedError
from quire.formats.adapters import adapter_of, numbering_of
from quire.handles.base import Queue
from quire.handles.journal.subtopics import ROUTE
from quire.ranges.cycles import CycleRange, cycle_ranges
from quire.server.flight.tickets import Wanted

_MOST_ENDPOINTS: Final = 10_000


def columns_of(wanted: Wanted) -> pa.Schema:
    """
    Return the columns of the batches.

    Raises:
        RefusedError: A wanted column is not among those of the messages.

    """
    every = _every_column(wanted)
    if wanted.columns is None:
        return every
    for name in wanted.columns:
        if name not in every.names:
            raise RefusedError(
                f"no such column: column={name!r:.80} known={', '.join(every.names)[:400]}"
            )
    return part_of(every, wanted.columns)


def _every_column(wanted: Wanted) -> pa.Schema:
    schema = wanted.schema
    if wanted.method is not None and schema is not None:
        narrow = schema.methods[wanted.method]
        columns = narrow if wanted.errors == "raise" else with_errors(narrow, schema)
    else:
        columns = Scan(None, schema, errors=wanted.errors).columns
    fields: list[Any] = [*fields_of(columns)]
    if schema is not None and wanted.payload:
        fields.append(pa.field(PAYLOAD, pa.binary()))
    if wanted.subtopic:
        fields.append(pa.field(SUBTOPIC, pa.string()))
    return pa.schema(fields)


def batches_of(wanted: Wanted, queue: Queue) -> Iterator[pa.RecordBatch]:
    """Yield the requested messages, in batches of some megabytes."""
    scan = _scan(wanted, queue)
    columns = columns_of(wanted)
    if wanted.schema is None or not (wanted.method or wanted.payload or wanted.subtopic):
        yield from scan.batches(columns.names)
        return
    with queue.tailer() as tailer:
        past = scan.go_to_start(tailer)
        while past:
            count, batch = _decoded(wanted, tailer, past)
            if not count:
                return
            yield batch.select(columns.names)


def _decoded(wanted: Wanted, tailer: Any, past: int) -> tuple[int, pa.RecordBatch]:  # noqa: ANN401
    """Return the number of messages read, and their rows with the columns besides the schema's."""
    schema, layout = wanted.schema, wanted.method or "union"
    assert schema is not None  # noqa: S101 - see batches_of
    count, tables, payload, subtopic = tailer._read_decoded(  # noqa: SLF001
        schema.plan,
        BATCH_ROWS,
        max_bytes=BATCH_BYTES,
        keep_misfits=wanted.errors == "column",
        layout=layout,
        end=past,
        payload=wanted.payload,
        topic=ROUTE if wanted.subtopic else None,
    )
    batch = schema.batches(tables, layout)[""]
    found: list[Any] = [*batch.columns]
    fields: list[Any] = [*fields_of(batch.schema)]
    if payload is not None:
        fields.append(pa.field(PAYLOAD, pa.binary()))
        found.append(array_of(pa.binary(), payload))
    if subtopic is not None:
        fields.append(pa.field(SUBTOPIC, pa.string()))
        found.append(array_of(pa.string(), subtopic))
    return count, pa.RecordBatch.from_arrays(found, schema=pa.schema(fields))


def _scan(wanted: Wanted, queue: Queue) -> Scan:
    return Scan(
        queue, wanted.schema, wanted.start, wanted.end, wanted.time_field, errors=wanted.errors
    )


def info_of(wanted: Wanted, queue: Queue, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:
    """
    Return the parts of a request: an endpoint per cycle, in order.

    Each ticket is for a range of indexes, so that clients read the parts in parallel, and the same
    messages again. ``app_metadata`` says how messages are numbered: ``bits`` of an index are the
    sequence in a cycle, ``step`` is from one message to the next, and ``dense`` says whether each
    index has a message; that of an endpoint, the first index and the count of each of its
    ``cycles``.
    """
    adapter_of(queue).refresh(queue)
    start, end = _scan(wanted, queue).range()
    runs = _joined([*cycle_ranges(queue, start, end)])
    numbering = numbering_of(queue)
    about: dict[str, object] = {
        "bits": numbering.bits,
        "step": numbering.step,
        "dense": numbering.is_dense,
    }
    about |= {"from": start, "to": end, "format": adapter_of(queue).name}
    return flight.FlightInfo(
        columns_of(wanted),
        descriptor,
        [_endpoint(wanted, run) for run in runs],
        sum(it.count for run in runs for it in run),
        -1,
        ordered=True,
        app_metadata=json.dumps(about),
    )


def _joined(runs: list[CycleRange]) -> list[list[CycleRange]]:
    """Return the cycles of each endpoint: one each, unless there are very many."""
    size = -(-len(runs) // _MOST_ENDPOINTS) or 1
    return [runs[first : first + size] for first in range(0, len(runs), size)]


def _endpoint(wanted: Wanted, runs: list[CycleRange]) -> flight.FlightEndpoint:
    ticket = wanted.ticket(runs[0].first_index, runs[-1].end_index)
    about = [[it.first_index, it.count] for it in runs]
    return flight.FlightEndpoint(ticket, [], None, json.dumps({"cycles": about}))
