"""
Queues as Spark frames: ``quire.spark.scan(spark, path)``. Needs ``quire[spark]``.

>>> import quire.spark
>>> spark = quire.spark.session("trades")  # doctest: +SKIP
>>> quire.spark.scan(spark, "orders").count()
0
"""

from quire.errors import DataLossError, NoJavaError, UnfinishedWriteError
from quire.spark import _pyspark as _pyspark  # first: refuses releases that the others cannot use
from quire.spark.data_source import QuireDataSource
from quire.spark.read.lag import lag_of
from quire.spark.read.scans import scan
from quire.spark.sessions.registration import register, session
from quire.spark.tables import table
from quire.staged.commits import finish

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
