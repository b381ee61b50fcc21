"""Spark's own ways, beside which the data source stands."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from bench.task import Missing

NAME = "Spark"
NAMES = {
    "map_in_arrow_count": "Spark mapInArrow, count",
    "map_in_arrow_sum": "Spark mapInArrow, sum",
    "map_in_arrow_group": "Spark mapInArrow, group by",
    "map_in_arrow_scan": "Spark mapInArrow, all rows",
    "parquet_count": "Spark Parquet, count",
    "parquet_sum": "Spark Parquet, sum",
    "parquet_group": "Spark Parquet, group by",
    "parquet_scan": "Spark Parquet, all rows",
    "write_parquet": "Spark Parquet, written",
    "rate": "Spark rate source, what a trigger costs around its batch",
}


def version() -> str:
    """Return the version of PySpark, if there is a Java to run it."""
    try:
        found = version_of("pyspark")
        from quire.errors import NoJavaError
        from quire.spark.sessions import java
    except (ImportError, PackageNotFoundError) as error:
        raise Missing("pyspark is not installed") from error
    try:
        java.use()
    except NoJavaError as error:
        raise Missing(str(error)) from error
    return found
