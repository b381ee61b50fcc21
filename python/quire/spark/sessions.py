"""Spark sessions that know the format ``quire``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
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
    app_name: str = "quire",
    *,
    cores: int | None = None,
    memory: str = "2g",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """
    Return a quiet local session that knows the format; a running one is used as it is.

    Args:
        app_name: What Spark calls the application.
        cores: How many tasks run at once; None means one for each core of the machine.
        memory: The heap of the Java process, in Spark's notation.
        settings: More of Spark's settings, which hold over those made here.

    """
    # The workers must be this interpreter, or they may lack this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = cores or os.cpu_count() or 1
    with as_file(files("quire.spark") / "log4j2.properties") as logging:
        chosen = _SETTINGS | {
            "spark.app.name": app_name,
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
            "spark.driver.memory": memory,
            "spark.master": f"local[{cores}]",
            "spark.sql.shuffle.partitions": str(cores),
        }
        spark = SparkSession.builder.config(map={**chosen, **(settings or {})}).getOrCreate()
    register(spark)
    return spark
