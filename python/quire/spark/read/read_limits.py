"""Spark's classes for the limit of a stream's batch; PySpark 4.1 lacks them and has no limit."""

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
        """The base class, as in newer releases."""

    class ReadAllAvailable(ReadLimit):
        """All available messages."""

    class ReadMaxRows(ReadLimit):
        """At most a number of rows; this release never requests that."""

    class SupportsTriggerAvailableNow:
        """A marker; in this release, Spark itself determines where such a query ends."""
