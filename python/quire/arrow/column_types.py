"""The table of Arrow types: their names, and the types of messages and Spark they map to."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from quire.arrow import names

Type: TypeAlias = Any
"""An Arrow type; pyarrow-stubs have a class for each."""

Field: TypeAlias = Any
"""A named Arrow type."""


class ColumnType(NamedTuple):
    """
    A row of the table.

    Attributes:
        arrow: The type.
        decoder: Its name in the native decoder and encoder.
        names: Further names for users, in addition to Arrow's own alias.
        declared: The kinds of annotations that map to it.
        inferred: The kinds of values in a sample that map to it.

    """

    arrow: Type
    decoder: str
    names: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()


CATEGORY: Final[Type] = pa.dictionary(pa.int32(), pa.string())
UUID: Final[Type] = pa.binary(16)

TABLE: Final = (
    ColumnType(pa.bool_(), "bool", declared=("bool",), inferred=("bool",)),
    ColumnType(pa.int8(), "int8", declared=("int8",)),
    ColumnType(pa.int16(), "int16", declared=("int16",)),
    ColumnType(pa.int32(), "int32", declared=("int32",)),
    ColumnType(pa.int64(), "int64", ("int",), ("int64",), ("int",)),
    ColumnType(pa.uint8(), "uint8", declared=("uint8",)),
    ColumnType(pa.uint16(), "uint16", declared=("uint16",)),
    ColumnType(pa.uint32(), "uint32", declared=("uint32",)),
    ColumnType(pa.uint64(), "uint64"),
    ColumnType(pa.float32(), "float32", declared=("float32",)),
    # As in Python and numpy; Arrow's alias `float` means 32 bits.
    ColumnType(pa.float64(), "float64", ("float",), ("float64",), ("float",)),
    ColumnType(pa.string(), "utf8", ("str",), ("str", "decimal", "timedelta"), ("text",)),
    ColumnType(CATEGORY, "dictionary", ("category",), ("enum",)),
    ColumnType(pa.binary(), "binary", ("bytes",), ("bytes",), ("bytes",)),
    ColumnType(UUID, "uuid", ("uuid",), ("uuid",), ("uuid",)),
    ColumnType(pa.date32(), "date32", ("date",), ("date",), ("date",)),
    ColumnType(pa.time32("s"), "time[s]"),
    ColumnType(pa.time32("ms"), "time[ms]"),
    ColumnType(pa.time64("us"), "time[us]", declared=("time",)),
    ColumnType(pa.time64("ns"), "time[ns]", ("time",), inferred=("time",)),
    ColumnType(pa.timestamp("us", "UTC"), "timestamp[us]", declared=("datetime",)),
    ColumnType(pa.timestamp("ns", "UTC"), "timestamp[ns]", ("timestamp",), inferred=("instant",)),
    ColumnType(pa.timestamp("ns"), "timestamp[ns]", inferred=("datetime",)),
)

DECODER_NAMES: Final = {row.arrow: row.decoder for row in TABLE}
BY_NAME: Final = {name: row.arrow for row in TABLE for name in row.names}
BY_KIND: Final = {kind: row.arrow for row in TABLE for kind in row.declared}
BY_VALUE: Final = {kind: row.arrow for row in TABLE for kind in row.inferred}

BATCH_INDEX_TYPE: Final[Type] = pa.uint64()
INDEX_TYPE: Final[Type] = pa.int64()
"""An index never reaches 2**63, and Spark and most readers of Parquet lack unsigned integers."""
CYCLE_TYPE: Final[Type] = pa.int32()
EVENT_TIME_TYPE: Final[Type] = pa.timestamp("us", "UTC")
TIMINGS_TYPE: Final[Type] = pa.list_(pa.int64())
HISTORY_TYPE: Final[Type] = pa.struct(
    [
        ("sources", pa.list_(pa.struct([("id", pa.int32()), ("index", pa.int64())]))),
        ("timings", TIMINGS_TYPE),
    ]
)

MESSAGE_COLUMNS: Final[dict[str, Type]] = {
    names.INDEX: INDEX_TYPE,
    names.CYCLE: CYCLE_TYPE,
    names.SEQUENCE: pa.int64(),
    names.TOPIC: pa.string(),
    names.SUBTOPIC: pa.string(),
    names.TIMESTAMP: EVENT_TIME_TYPE,
    names.SPARK_HISTORY: HISTORY_TYPE,
    names.ERROR: pa.string(),
}
"""The columns that every message has in archives and on Spark, whatever its content."""

SPARK_TIME: Final[Type] = pa.time64("ns")
"""The Arrow type that Spark accepts as a time of day."""
PARQUET_TIME: Final[Type] = pa.time64("us")
"""The Parquet type that Spark reads as a time of day."""


def fields_of(kind: Any) -> list[Field]:  # noqa: ANN401 - a schema or a type
    """Return the fields of a schema, or of a type."""
    count = len(kind) if isinstance(kind, pa.Schema) else kind.num_fields
    return [kind.field(number) for number in range(count)]


def is_binary(kind: Type) -> bool:
    """Whether values are bytes of any length."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def is_text(kind: Type) -> bool:
    """Whether values are strings."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_castable(kind: Type, target: Type) -> bool:
    """Whether pyarrow can cast one type to the other."""
    try:
        pa.nulls(0, kind).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True


def type_text(kind: Type) -> str:
    """Return a type's name: floats by their width, which Arrow calls ``float`` and ``double``."""
    types = pa.types
    if types.is_floating(kind):
        return f"float{kind.bit_width}"
    if types.is_struct(kind):
        return f"struct<{', '.join(map(field_text, fields_of(kind)))}>"
    if types.is_list(kind):
        return f"list<{field_text(kind.value_field)}>"
    if types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    return str(kind)


def field_text(field: Field) -> str:
    """Return a column's name and type."""
    return f"{field.name}: {type_text(field.type)}{'' if field.nullable else ' not null'}"


def encoded_type(kind: Type) -> Type:  # noqa: C901, PLR0911 - one case a type
    """Return the type that values of *kind* are cast to before they are encoded."""
    types: Any = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return encoded_type(kind.storage_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_dictionary(kind) and kind != CATEGORY:
        return encoded_type(kind.value_type)
    if types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if types.is_null(kind):
        return pa.bool_()
    if types.is_date64(kind):
        return pa.date32()
    if types.is_struct(kind):
        return pa.struct([it.with_type(encoded_type(it.type)) for it in fields_of(kind)])
    if types.is_map(kind):
        item = kind.item_field
        return pa.map_(encoded_type(kind.key_type), item.with_type(encoded_type(item.type)))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = kind.value_field
        return pa.list_(item.with_type(encoded_type(item.type)))
    return kind


def spark_columns(columns: pa.Schema, time: Type = SPARK_TIME) -> pa.Schema:
    """Return the columns with the types of :func:`spark_type`."""
    return pa.schema([_spark_field(field, time) for field in fields_of(columns)])


def spark_type(kind: Type, time: Type = SPARK_TIME) -> Type:
    """Return the type nearest to *kind* that both Spark and the decoder support."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([_spark_field(field, time) for field in fields_of(kind)])
    if types.is_list(kind):
        return pa.list_(_spark_field(kind.value_field, time))
    if types.is_map(kind):
        map_of: Any = pa.map_
        return map_of(pa.string(), _spark_field(kind.item_field, time))
    return time if types.is_time(kind) else _spark_scalar(kind)


def _spark_scalar(kind: Type) -> Type:
    if pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_unsigned_integer(kind):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
        return wider.get(kind.bit_width, pa.decimal128(20, 0))
    return kind


def _spark_field(field: Field, time: Type) -> Field:
    return field.with_type(spark_type(field.type, time))
