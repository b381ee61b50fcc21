"""Spark sessions that know the format ``quire``."""

from __future__ import annotations

import os
import sys
from importlib.resources import as_file, files
from typing import Final

from pyspark.sql import SparkSession

from quire.spark.source import QuireDataSource

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The source does not push filters down yet; it needs this when it does.
    "spark.sql.python.filterPushdown.enabled": "true",
}


def register(spark: SparkSession) -> None:
    """Make the format ``quire`` known to *spark*. Safe to repeat."""
    spark.dataSource.register(QuireDataSource)


def session(
    app_name: str = "quire", *, cores: int | None = None, memory: str = "2g"
) -> SparkSession:
    """
    Return a quiet local session that knows the format; a running one is used as it is.

    Args:
        app_name: What Spark calls the application.
        cores: How many tasks run at once; None means one for each core of the machine.
        memory: The heap of the Java process, in Spark's notation.

    """
    # The workers must be this interpreter, or they may lack this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = cores or os.cpu_count() or 1
    builder = SparkSession.builder.appName(app_name).master(f"local[{cores}]")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    with as_file(files("quire.spark") / "log4j2.properties") as logging:
        spark = (
            builder.config("spark.driver.memory", memory)
            .config("spark.sql.shuffle.partitions", str(cores))
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging}")
            .getOrCreate()
        )
    register(spark)
    return spark
