"""
Queues as Spark tables: ``spark.read.format("quire").load(path)``. Needs ``quire[spark]``.

>>> import quire.spark
>>> spark = quire.spark.session("trades")
>>> spark.read.format("quire").load("/data/trades").count()  # doctest: +SKIP
"""

from quire.spark.archived import table
from quire.spark.commits import UnfinishedWriteError, finish
from quire.spark.followed import DataLossError
from quire.spark.java import NoJavaError
from quire.spark.lags import lag_of
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
    "session",
    "table",
]
