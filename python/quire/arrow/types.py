"""Arrow types as other programs know them: Spark, and what reads Parquet."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import pyarrow as pa

from quire.arrow.plan import fields_of

# pyarrow-stubs have a class for each type.
_Type: TypeAlias = Any
_Field: TypeAlias = Any


SPARKS_TIME: Final[_Type] = pa.time64("ns")
PARQUETS_TIME: Final[_Type] = pa.time64("us")
"""Of Spark's readers of Parquet; those of Arrow take the other."""


def fitting(kind: _Type, time: _Type = SPARKS_TIME) -> _Type:
    """Return the Arrow type nearest to *kind* that Spark knows and the decoder makes."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([_fitting_field(field, time) for field in fields_of(kind)])
    if types.is_list(kind):
        return pa.list_(_fitting_field(kind.value_field, time))
    if types.is_map(kind):
        made: _Type = pa.map_
        return made(pa.string(), _fitting_field(kind.item_field, time))
    return time if types.is_time(kind) else _fitting_scalar(kind)


def fitting_columns(columns: pa.Schema, time: _Type = SPARKS_TIME) -> pa.Schema:
    """Return the columns with their types as :func:`fitting` has them."""
    return pa.schema([_fitting_field(field, time) for field in fields_of(columns)])


def _fitting_scalar(kind: _Type) -> _Type:
    if pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_unsigned_integer(kind):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
        return wider.get(kind.bit_width, pa.decimal128(20, 0))
    return kind


def _fitting_field(field: _Field, time: _Type) -> _Field:
    return field.with_type(fitting(field.type, time))
