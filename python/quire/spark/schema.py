"""
The columns of a queue, as Spark and as Arrow see them.

Four columns exist for every message; any other column is the field of that name in messages that
are maps. The Arrow schema must equal what Spark expects, types and nullability included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import types as spark

from quire.spark.options import refuse

# Spark has no unsigned integers: an index is a long. No file of a queue reaches 2**63.
MESSAGE_COLUMNS: Final = {
    "index": "long",
    "cycle": "int",
    "sequence": "long",
    "payload": "binary",
}

_MESSAGE_TYPES: Final[dict[str, spark.DataType]] = {
    "index": spark.LongType(),
    "cycle": spark.IntegerType(),
    "sequence": spark.LongType(),
    "payload": spark.BinaryType(),
}

_ARROW_TYPES: Final[dict[spark.DataType, pa.DataType]] = {
    spark.BooleanType(): pa.bool_(),
    spark.ByteType(): pa.int8(),
    spark.ShortType(): pa.int16(),
    spark.IntegerType(): pa.int32(),
    spark.LongType(): pa.int64(),
    spark.FloatType(): pa.float32(),
    spark.DoubleType(): pa.float64(),
    spark.StringType(): pa.string(),
    spark.BinaryType(): pa.binary(),
}


class Column(NamedTuple):
    """A column of the result, as Arrow sees it."""

    name: str
    type: pa.DataType
    nullable: bool


def declared(columns: str | None) -> str:
    """
    Return the schema in Spark's notation for the option ``columns``.

    Args:
        columns: Names of message columns and typed fields, such as ``index, price double``;
            None means the four message columns.

    Raises:
        OptionsError: A name without a type is not one of a message column.

    """
    if columns is None:
        return ", ".join(f"{name} {kind}" for name, kind in MESSAGE_COLUMNS.items())
    items = list(_split(columns))
    unknown = [item for item in items if " " not in item and item not in MESSAGE_COLUMNS]
    refuse([f"column without a type: {item!r}; write '{item} string'" for item in unknown])
    return ", ".join(item if " " in item else f"{item} {MESSAGE_COLUMNS[item]}" for item in items)


def checked(schema: spark.StructType, columns: str | None) -> spark.StructType:
    """
    Return *schema* when the source can fill it.

    Raises:
        OptionsError: It has columns of the wrong or of an unsupported type, none at all, or
            others than the option ``columns`` names; all problems are listed.

    """
    problems = [problem for field in schema for problem in _problems(field)]
    if not schema.fields:
        problems.append("the schema has no columns")
    if columns is not None and [item.split()[0] for item in _split(columns)] != schema.names:
        problems.append("give a schema or the option columns, not both")
    refuse(problems)
    return schema


def columns_of(schema: spark.StructType) -> list[Column]:
    """Return the columns of *schema*, which was checked."""
    return [Column(field.name, _ARROW_TYPES[field.dataType], field.nullable) for field in schema]


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of *columns*."""
    return pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in columns])


def _problems(field: spark.StructField) -> Iterator[str]:
    kind = field.dataType.simpleString()
    wanted = _MESSAGE_TYPES.get(field.name)
    if wanted is not None and field.dataType != wanted:
        yield f"column {field.name} is {wanted.simpleString()}, not {kind}"
    elif field.dataType not in _ARROW_TYPES:
        known = " ".join(sorted(kind.simpleString() for kind in _ARROW_TYPES))
        yield f"type of column {field.name} is not supported: {kind} (supported: {known})"


def _split(columns: str) -> Iterator[str]:
    """Cut at the commas that stand outside brackets; white space becomes single spaces."""
    depth, start = 0, 0
    for place, letter in enumerate(columns + ","):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth <= 0:
            yield " ".join(columns[start:place].split())
            start = place + 1
