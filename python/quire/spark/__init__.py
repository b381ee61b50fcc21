"""
Queues as Spark tables: ``spark.read.format("quire").load(path)``. Needs ``quire[spark]``.

>>> import quire.spark
>>> spark = quire.spark.session("trades")
>>> spark.read.format("quire").load("/data/trades").count()  # doctest: +SKIP
"""

from quire.spark.java import NoJavaError
from quire.spark.sessions import register, session
from quire.spark.source import QuireDataSource

__all__ = ["NoJavaError", "QuireDataSource", "register", "session"]
