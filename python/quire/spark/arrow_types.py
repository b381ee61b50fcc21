"""Conversion between Spark's types and Arrow's, the same with every release of PySpark."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas import types as of_pyspark
from pyspark.sql.types import DataType, StructType

from quire.spark import _pyspark

# Times are in UTC: PySpark 4.1 has no other time zone, and so no argument for one.
_IN_UTC: Final[dict[str, Any]] = {"timezone": "UTC"} if _pyspark.has((4, 2)) else {}


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that rows of a Spark schema must have."""
    return of_pyspark.to_arrow_schema(schema, **_IN_UTC)


def from_arrow_type(kind: pa.DataType) -> DataType:
    """Return Spark's type for an Arrow type; times without a zone stay without one."""
    return of_pyspark.from_arrow_type(kind, prefer_timestamp_ntz=True)


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """Return Spark's columns for an Arrow schema."""
    return of_pyspark.from_arrow_schema(schema, prefer_timestamp_ntz=True)
