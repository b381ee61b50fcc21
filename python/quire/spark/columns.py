"""
Messages turned into Arrow columns, a batch at a time.

The two classes read the same messages through tailers of their own: one takes indexes and payloads
as they are, the other decodes maps. Only those that the schema asks for are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

import quire
from quire.errors import IndexOutOfRangeError, WireError
from quire.spark.schema import MESSAGE_COLUMNS, Column, arrow_schema


class Columns:
    """
    The columns of a range of messages.

    Args:
        queue: An open queue; it stays open while batches are read.
        wanted: The columns of the result.
        first_index: The first message of the range.

    Raises:
        IndexOutOfRangeError: There is no message at *first_index*.

    """

    def __init__(self, queue: quire.Queue, wanted: Sequence[Column], first_index: int) -> None:
        """Place a tailer for each kind of column that is wanted."""
        fields = [column for column in wanted if column.name not in MESSAGE_COLUMNS]
        self._schema: Final = arrow_schema(wanted)
        self._messages: Final = (
            MessageColumns(queue, first_index) if len(fields) < len(wanted) else None
        )
        self._fields: Final = FieldColumns(queue, fields, first_index) if fields else None

    def read(self, count: int) -> pa.RecordBatch:
        """
        Return the next messages: *count* of them, or fewer, but at least one.

        Raises:
            IndexOutOfRangeError: There are no more.
            WireError: A message is not a map, or a field does not fit its column.

        """
        columns: dict[str, pa.Array[Any]] = {}
        if self._messages is not None:
            columns = self._messages.read(count)
            count = len(columns["index"])
        if self._fields is not None:
            columns |= self._fields.read(count)
        return pa.RecordBatch.from_arrays(
            [columns[name] for name in self._schema.names], schema=self._schema
        )


class MessageColumns:
    """The columns that every message has: index, cycle, sequence and payload."""

    def __init__(self, queue: quire.Queue, first_index: int) -> None:
        """Place a tailer at *first_index*."""
        self._tailer = tailer_at(queue, first_index)
        self._cycle_ones: Final = queue.roll_cycle.to_index(1, 0)

    def read(self, count: int) -> dict[str, pa.Array[Any]]:
        """Return the columns of at most *count* messages; the index is cast without a copy."""
        batch = self._tailer.read_batch(count)
        if batch.num_rows == 0:
            raise_gone(self._tailer.index)
        index = batch.column("index").view(pa.int64())
        shift = self._cycle_ones.bit_length() - 1
        return {
            "index": index,
            "cycle": pc.shift_right(index, shift).cast(pa.int32()),
            "sequence": pc.bit_wise_and(index, self._cycle_ones - 1),
            "payload": batch.column("payload"),
        }


class FieldColumns:
    """Fields of messages that are maps, each a column; a field that a message lacks is null."""

    def __init__(self, queue: quire.Queue, fields: Sequence[Column], first_index: int) -> None:
        """Place a tailer at *first_index*."""
        self._tailer = tailer_at(queue, first_index)
        self._fields: Final = fields

    def read(self, count: int) -> dict[str, pa.Array[Any]]:
        """Return the columns of exactly *count* messages."""
        first_index, read_map = self._tailer.index, self._tailer.read_map
        messages = [message for _ in range(count) if (message := read_map()) is not None]
        if len(messages) < count:
            raise_gone(self._tailer.index)
        return {
            field.name: _array(
                field, [message.get(field.name) for message in messages], first_index
            )
            for field in self._fields
        }


def tailer_at(queue: quire.Queue, index: int) -> quire.Tailer:
    """
    Return a tailer whose next message is the one at *index*.

    Raises:
        IndexOutOfRangeError: There is none.

    """
    tailer = queue.tailer()
    if not tailer.move_to_index(index):
        raise_gone(index)
    return tailer


def raise_gone(index: int) -> NoReturn:
    """Tell that a message which was there when the query was planned is not there any more."""
    raise IndexOutOfRangeError(f"no message there, was its cycle deleted? index={index:#x}")


def _array(field: Column, values: list[Any], first_index: int) -> pa.Array[Any]:
    """Return *values* as an Arrow array of the column's type."""
    try:
        array: pa.Array[Any] = pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise _misfit(field, values, first_index) from None
    if array.null_count and not field.nullable:
        raise _misfit(field, values, first_index)
    return array


def _misfit(field: Column, values: list[Any], first_index: int) -> WireError:
    """Return the error that names the first value which does not fit."""
    place = next((n for n, value in enumerate(values) if not _fits(field, value)), 0)
    return WireError(
        f"field does not fit its column: column={field.name} type={field.type}"
        f" nullable={field.nullable} found={values[place]!r:.80}"
        f" message={place + 1} from index={first_index:#x}"
    )


def _fits(field: Column, value: object) -> bool:
    try:
        pa.array([value], field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return value is not None or field.nullable
