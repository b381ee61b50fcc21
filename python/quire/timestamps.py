"""When messages were made, as a column: a field of theirs tells, or their history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute

from quire.schema import HISTORY
from quire.times import GUESSES, TimeField

_Array: TypeAlias = Any  # pyarrow-stubs have a class for each type

TIMESTAMP: Final[Any] = pa.timestamp("us", "UTC")

# Timings of history below this count from the start of a machine, not from 1970.
_WALL_CLOCK_NS: Final = 10**18

pc: Any = pyarrow.compute  # its functions are made when it is imported


def timestamps(arrays: Mapping[str, Any], field: TimeField | None, length: int) -> _Array:
    """
    Return when each message was made, in microseconds since 1970; null where nothing tells.

    Args:
        arrays: The decoded columns by name, with ``history`` if there is no field.
        field: The field that tells, also one inside a struct; None: the history does.
        length: How many rows there are.

    """
    if field is None:
        return _written(arrays[HISTORY])
    if field.name in arrays:
        return _moments(arrays[field.name], field)
    found = [
        _moments(pc.struct_field(array, field.name), field)
        for array in arrays.values()
        if pa.types.is_struct(array.type) and array.type.get_field_index(field.name) >= 0
    ]
    return pc.coalesce(pa.nulls(length, TIMESTAMP), *found)


def _moments(array: _Array, field: TimeField) -> _Array:
    if pa.types.is_string(array.type):
        return pc.cast(array, TIMESTAMP)
    if field.unit is None and not (pa.types.is_timestamp(array.type) and array.type.unit != "ns"):
        # Of the decoder's nanoseconds some are numbers of another unit.
        return _guessed(array.cast(pa.int64()))
    if pa.types.is_integer(array.type):
        unit: Any = field.unit
        array = array.cast(pa.int64()).cast(pa.timestamp(unit))
    return pc.cast(array, TIMESTAMP, safe=False)


def _guessed(numbers: _Array) -> _Array:
    """Return numbers as times, in the units that :class:`quire.times.TimeField` takes them for."""
    made = pc.divide(numbers, 1_000)
    size = pc.abs(numbers)
    for limit, unit_ns in reversed(GUESSES):
        made = pc.if_else(pc.less(size, limit), pc.multiply(numbers, unit_ns // 1_000), made)
    return made.cast(pa.timestamp("us")).cast(TIMESTAMP)


def _written(history: _Array) -> _Array:
    """Return the last timing of each history, where it is of a wall clock."""
    timings = pc.struct_field(history, "timings")
    lengths = pc.list_value_length(timings)
    has_some = pc.fill_null(pc.greater(lengths, 0), fill_value=False)
    values, ends = timings.values, pc.subtract(timings.offsets.slice(1), 1)
    places = pc.if_else(has_some, ends, None)
    last = values.take(places) if len(values) else pa.nulls(len(timings), pa.int64())
    wall = pc.if_else(pc.greater_equal(last, _WALL_CLOCK_NS), last, None)
    return pc.cast(wall.cast(pa.timestamp("ns")), TIMESTAMP, safe=False)
