"""The event time of messages as a column, from a field or from the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute

from quire.arrow.column_types import EVENT_TIME_TYPE, type_text
from quire.arrow.content import Content, RowContent
from quire.arrow.names import HISTORY
from quire.arrow.plan import UNIT_OF_NUMBERS
from quire.ranges.event_time import UNIT_LIMITS, TimeField

_Array: TypeAlias = Any  # pyarrow-stubs have a class for each type

_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000}
_INT64_MAX: Final = 2**63 - 1

# Smaller timings of histories count from the boot of a machine, not from 1970.
_WALL_CLOCK_NS: Final = 10**18

pc: Any = pyarrow.compute  # its functions are created when it is imported


def timed(content: Content, field: TimeField | None, method: str | None = None) -> Content:
    """
    Return a schema's content with the columns that :func:`event_times` needs.

    Args:
        content: The other columns to decode.
        field: The event time field; None: take the time from the history.
        method: The only method whose arguments are columns; None: a union, if there are methods.

    Raises:
        ValueError: The messages have no such field.

    """
    if field is None:
        return replace(content, history=True)
    top, *inside = field.name.split(".")
    is_row = isinstance(content, RowContent) and not content.is_value
    if is_row and top not in content.names:
        # The column has microseconds; nanoseconds would end in 2262.
        of_numbers = {None: b"any", "ns": b"ns"}.get(field.unit)
        metadata = None if of_numbers is None else {UNIT_OF_NUMBERS: of_numbers}
        unit: Any = field.unit if of_numbers is None else "us"
        made: Any = pa.field((inside or [top])[-1], pa.timestamp(unit, "UTC"), metadata=metadata)
        for outer in reversed([top, *inside][:-1]):
            made = pa.field(outer, pa.struct([made]))
        return content.convert(lambda columns: columns.append(made))
    columns = content.arrow if method is None else content.methods[method]
    known: dict[str, Any] = {name: columns.field(name).type for name in columns.names}
    paths = [*paths_to(field.name, known)]
    if not paths:
        raise ValueError(f"no such field: field={field.name} known={', '.join(known)}")
    for top, *inside in paths:
        kind: Any = known[top]
        for name in inside:
            kind = kind.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
            raise ValueError(
                "a column of this type cannot hold a time:"
                f" field={field.name} type={type_text(kind)}"
                " (declare it as a whole number or a timestamp, or leave it out)"
            )
    return content


def event_times(arrays: Mapping[str, Any], field: TimeField | None, length: int) -> _Array:
    """
    Return the event time of each message in microseconds; null if it has none.

    Args:
        arrays: The decoded columns by name, with ``history`` if there is no field.
        field: The event time field, which may be inside a struct; None: use the history.
        length: The number of rows.

    """
    if field is None:
        return _last_timings(arrays[HISTORY])
    found = cast("_Array", pa.nulls(length, EVENT_TIME_TYPE))
    types = {name: array.type for name, array in arrays.items()}
    for top, *inside in paths_to(field.name, types):
        array = arrays[top]
        for name in inside:
            array = pc.struct_field(array, name)
        found = pc.coalesce(found, _event_times(array, field))
    return found


def paths_to(name: str, columns: Mapping[str, Any]) -> Iterator[list[str]]:
    """
    Yield the paths of a time field among columns, from the top.

    ``trade.time`` is the field ``time`` of the struct ``trade``. A name without dots that is not
    the name of a column is searched for in all structs, such as those of a method's arguments.

    Args:
        name: The field.
        columns: The columns' types by name.

    """
    top, *inside = name.split(".")
    if top in columns:
        kind: Any = columns[top]
        for inner in inside:
            place = kind.get_field_index(inner) if pa.types.is_struct(kind) else -1
            if place < 0:
                return
            kind = cast("Any", kind.field(place).type)
        yield [top, *inside]
        return
    for column, kind in columns.items():
        if not inside and pa.types.is_struct(kind) and kind.get_field_index(top) >= 0:
            yield [column, top]


def _event_times(array: _Array, field: TimeField) -> _Array:
    if pa.types.is_integer(array.type):
        unit: Any = field.unit
        if unit is None:
            return _of_guessed_unit(array.cast(pa.int64()))
        array = array.cast(pa.int64()).cast(pa.timestamp(unit))
    return pc.cast(_within_microseconds(array), EVENT_TIME_TYPE, safe=False)


def _within_microseconds(array: _Array) -> _Array:
    """Return times that fit into 64-bit microseconds; null for the others."""
    per_unit = _MICROSECONDS.get(getattr(array.type, "unit", ""))
    if per_unit is None:
        return array
    size = array.view(pa.int64())
    most = _INT64_MAX // per_unit
    fits = pc.and_(pc.less_equal(size, most), pc.greater_equal(size, -most))
    return pc.if_else(fits, array, pa.scalar(None, array.type))


def _of_guessed_unit(numbers: _Array) -> _Array:
    """Return numbers as times, in the units that :class:`TimeField` assumes by their size."""
    made = pc.divide(numbers, 1_000)
    size = pc.abs(numbers)
    for limit, unit_ns in reversed(UNIT_LIMITS):
        made = pc.if_else(pc.less(size, limit), pc.multiply(numbers, unit_ns // 1_000), made)
    return made.cast(pa.timestamp("us")).cast(EVENT_TIME_TYPE)


def _last_timings(history: _Array) -> _Array:
    """Return the last timing of each history, if it is of a wall clock."""
    timings = pc.struct_field(history, "timings")
    lengths = pc.list_value_length(timings)
    has_some = pc.fill_null(pc.greater(lengths, 0), fill_value=False)
    values, ends = timings.values, pc.subtract(timings.offsets.slice(1), 1)
    places = pc.if_else(has_some, ends, None)
    last = values.take(places) if len(values) else pa.nulls(len(timings), pa.int64())
    wall = pc.if_else(pc.greater_equal(last, _WALL_CLOCK_NS), last, None)
    return pc.cast(wall.cast(pa.timestamp("ns")), EVENT_TIME_TYPE, safe=False)
