"""How long a batch of a stream may be, in Spark's words; PySpark 4.1 has none, and asks for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.spark import _pyspark

__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]

if TYPE_CHECKING or _pyspark.has(_pyspark.READ_LIMITS):
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:

    class ReadLimit:
        """As that of newer ones."""

    class ReadAllAvailable(ReadLimit):
        """All there is."""

    class ReadMaxRows(ReadLimit):
        """At most a number of rows, which this PySpark never asks for."""

    class SupportsTriggerAvailableNow:
        """Here Spark itself fixes where such a query ends."""
