"""
Tables of Spark's catalogue: where the options of ``create table … using quire`` are kept.

Spark passes the options of a table to a Python source once, when it asks for the columns of a new
table; a query of the table passes only its columns. So the options are stored in the comment of a
column, where `describe` shows them. A write passes the columns of the rows, not those of the table,
so the source does not learn where to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql import types as spark

from quire.errors import OptionsError
from quire.spark.spark_columns import split_columns

_PREFIX: Final = "quire table: "
_OPTION: Final = "option."
# An option that Spark passes only for a new table: the name of the format.
_NEW: Final = "provider"
_COMMENT: Final = "comment"
_HAS_COMMENT: Final = re.compile(r"\scomment\s+[\"']", re.IGNORECASE)


def options_of_new(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of a table that is being created; None if these are options of a read."""
    given = {name.lower(): value for name, value in options.items()}
    if _NEW not in given:
        return None
    if f"{_OPTION}token" in given:
        raise OptionsError(
            "quire table: the catalogue would show the token: create a temp view with these options"
        )
    own = {
        name.removeprefix(_OPTION): value
        for name, value in given.items()
        if name.startswith(_OPTION)
    }
    place = given.get("location", given.get("path"))
    return own if place is None else own | {"path": place}


def with_options(
    columns: str | spark.StructType, options: Mapping[str, str]
) -> str | spark.StructType:
    """
    Return the columns of a new table, with its options in the comment of one.

    Raises:
        OptionsError: All columns already have a comment.

    """
    comment = _PREFIX + json.dumps(dict(options), sort_keys=True)
    if isinstance(columns, spark.StructType):
        first, *others = columns.fields
        metadata = {**first.metadata, _COMMENT: comment}
        commented = spark.StructField(first.name, first.dataType, first.nullable, metadata)
        return spark.StructType([commented, *others])
    items = [*split_columns(columns)]
    free = next((at for at, item in enumerate(items) if not _HAS_COMMENT.search(item)), None)
    if free is None:
        raise OptionsError(
            "quire table: all columns have a comment, but the table's options need one: remove the"
            f" comment of a column: columns={columns}"
        )
    items[free] += " comment '" + comment.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return ", ".join(items)


def with_those_of_table(options: Mapping[str, str], schema: spark.StructType) -> dict[str, str]:
    """Return the options of a read, with those stored in the columns of a table."""
    if any(name.lower() == "path" for name in options):
        return dict(options)
    given = {name.lower() for name in options}
    kept = next(_kept(schema), dict[str, str]())
    return {name: value for name, value in kept.items() if name.lower() not in given} | {**options}


def _kept(schema: spark.StructType) -> Iterator[dict[str, str]]:
    for field in schema.fields:
        comment = field.metadata.get(_COMMENT)
        if isinstance(comment, str) and comment.startswith(_PREFIX):
            try:
                found: Any = json.loads(comment.removeprefix(_PREFIX))
                kept = {str(name): str(value) for name, value in found.items()}
            except (ValueError, AttributeError):
                raise OptionsError(
                    "quire table: the options in a column's comment are damaged:"
                    f" column={field.name} comment={comment:.200} (create the table again)"
                ) from None
            yield kept
