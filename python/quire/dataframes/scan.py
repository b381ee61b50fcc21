"""A range of a queue as batches of columns, in constant memory."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from datetime import date
from typing import Any, Final, NamedTuple

import pyarrow as pa

from quire._common import arguments
from quire.arrow.column_types import fields_of
from quire.arrow.names import ERROR
from quire.arrow.schema import Schema, SchemaLike
from quire.dataframes.until_exit import UntilExit
from quire.formats.adapters import end_index_of
from quire.ranges.event_time import TimeField, epoch_ns_of
from quire.ranges.seek import first_at, first_from, index_at_time

BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 8 * 2**20
_NO_END: Final = 2**63 - 1
_COLUMNS: Final[dict[str, Any]] = {"index": pa.uint64(), "payload": pa.binary()}
_MESSAGES: Final[pa.Schema] = pa.schema(_COLUMNS)
_OPTIONS: Final = ("start", "end", "time_field", "errors")
_POINT: Final = "an index, a datetime, ISO 8601 text, or seconds since 1970 as a float"


class Scan(NamedTuple):
    """
    A range of a queue. Each reading has its own tailer, and stops at the end it found at first.

    Attributes:
        queue: The queue.
        schema: The form of the messages; None: their bytes, as the column ``payload``.
        start: The first index or time; None: the first message.
        end: The index or time after the last; None: the end of the queue when a reading starts.
        time_field: The field that contains the time of a message.
        errors: ``raise``, or ``column`` for null rows with the reason in a further column.

    """

    queue: Any
    schema: Schema | None = None
    start: object = None
    end: object = None
    time_field: str | None = None
    errors: str = "raise"

    @classmethod
    def of(cls, queue: object, schema: SchemaLike | None, **options: Any) -> Scan:  # noqa: ANN401
        """
        Check the options.

        Raises:
            TypeError: An option is unknown.
            ValueError: An option has an invalid value, or requires a schema.

        """
        for name in options.keys() - _OPTIONS:
            known = ", ".join(_OPTIONS)
            raise TypeError(f"got an unexpected keyword argument '{name}' (known: {known})")
        errors = options.get("errors", "raise")
        arguments.one_of("raise", "column")("errors", errors)
        if schema is None and errors == "column":
            raise ValueError('`errors="column"` requires `schema=`')
        return cls(queue, None if schema is None else Schema.given(schema), **options)

    @property
    def columns(self) -> pa.Schema:
        """The columns of the batches."""
        if self.schema is None:
            return _MESSAGES
        if self.errors == "raise":
            return self.schema.arrow
        return with_errors(self.schema.arrow, self.schema)

    def batches(self, names: Iterable[str] | None = None) -> Generator[pa.RecordBatch]:
        """Yield batches of these columns; other columns are decoded only for method calls."""
        wanted = None if names is None else [*names]
        plan = self._plan(wanted)
        with self.queue.tailer() as tailer:
            past = self.go_to_start(tailer)
            while past:
                count, batch = self._next(tailer, plan, past)
                if not count:
                    return
                yield batch if wanted is None else batch.select(wanted)

    def reader(self, names: Iterable[str] | None = None) -> pa.RecordBatchReader:
        """Return the batches as a stream."""
        wanted = self.columns.names if names is None else [*names]
        return pa.RecordBatchReader.from_batches(
            part_of(self.columns, wanted), UntilExit(self.batches(wanted))
        )

    def _plan(self, names: list[str] | None) -> Schema | None:
        """Return the schema of these columns; for calls, all: selecting would drop rows."""
        if self.schema is None or names is None or self.schema.shape == "calls":
            return self.schema
        if ERROR in names:  # any column may be the misfit
            return self.schema
        return self.schema.select([name for name in self.schema.names if name in names])

    def _next(self, tailer: Any, plan: Schema | None, past: int) -> tuple[int, pa.RecordBatch]:  # noqa: ANN401
        """Return the number of messages read, and their rows."""
        if plan is None:
            batch: pa.RecordBatch = tailer._payload_batch(BATCH_ROWS, BATCH_BYTES, past)  # noqa: SLF001
            return batch.num_rows, batch
        count, tables, *_ = tailer._read_decoded(  # noqa: SLF001
            plan.plan,
            BATCH_ROWS,
            max_bytes=BATCH_BYTES,
            keep_misfits=self.errors == "column",
            layout="union",
            end=past,
        )
        return count, plan.batches(tables, "union")[""]

    def range(self) -> tuple[int, int]:
        """Return the first index, or 0 for the first message, and the index after the last."""
        past_all = end_index_of(self.queue)
        first = self._index("start", self.start)
        past = past_all if self.end is None else min(self._index("end", self.end), past_all)
        return first, past

    def go_to_start(self, tailer: Any) -> int:  # noqa: ANN401
        """Move to the first message; return the index after the last, or 0 if there is none."""
        first, past = self.range()
        if self.start is not None:
            first = first_from(self.queue, first)
            if first >= past:
                return 0
            tailer.move_to_index(first)  # in older formats, to the first after a gap
        return past

    def _index(self, name: str, point: object) -> int:
        """Return the index of a point."""
        if point is None:
            return 0
        check_point(name, point)
        if isinstance(point, int):
            return int(point)
        time_ns = epoch_ns_of(point)
        if self.time_field is None:
            return first_at(self.queue, time_ns)
        return index_at_time(self.queue, time_ns, TimeField(self.time_field))


def check_point(name: str, point: object) -> None:
    """
    Check that a point is an index or a time.

    Raises:
        TypeError: *point* is neither an index nor a time.
        ValueError: The index or the time is out of range.

    """
    if isinstance(point, int) and not isinstance(point, bool):
        arguments.whole(0, _NO_END)(name, point)
    elif not isinstance(point, str | float | date):
        raise arguments.refusal(name, _POINT, point)
    else:
        epoch_ns_of(point)


def with_errors(columns: pa.Schema, schema: Schema) -> pa.Schema:
    """Return the columns of a schema's batches with a further column for errors."""
    index = schema.content.index_name
    fields: list[Any] = [
        field if field.name == index else field.with_nullable(True)  # noqa: FBT003
        for field in fields_of(columns)
    ]
    return pa.schema([*fields, pa.field(ERROR, pa.string())])


def part_of(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return the columns of these names."""
    fields: list[Any] = [schema.field(name) for name in names]
    return pa.schema(fields)
