"""
Queues as Spark frames: ``quire.spark.scan(spark, path)``. Needs ``quire[spark]``.

>>> import quire.spark
>>> spark = quire.spark.session("trades")
>>> quire.spark.scan(spark, "/data/trades").count()  # doctest: +SKIP
"""

from quire.errors import DataLossError
from quire.spark.archived import table
from quire.spark.commits import UnfinishedWriteError, finish
from quire.spark.java import NoJavaError
from quire.spark.lags import lag_of
from quire.spark.scanning import scan
from quire.spark.sessions import register, session
from quire.spark.source import QuireDataSource

__all__ = [
    "DataLossError",
    "NoJavaError",
    "QuireDataSource",
    "UnfinishedWriteError",
    "finish",
    "lag_of",
    "register",
    "scan",
    "session",
    "table",
]
