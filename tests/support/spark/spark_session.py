"""
The one Spark session of a test process, and the settings of every Spark that a test starts.

A test that is interrupted in the middle of a call to Java, by its time limit or by Ctrl-C, leaves
the answer of that call in the connection, where the next call would take it for its own. So each
test first asks a question with a known answer, and gets a new Java process if it is not given.
"""

from __future__ import annotations

import os
import threading
import uuid
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from paths import SUPPORT, SUPPORT_FOLDERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER_TIMEOUT_S = 60

# The launcher is a short Java process of its own; daemons are the master and workers of a cluster.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
ENVIRONMENT = {
    "SPARK_CONF_DIR": str(SUPPORT / "spark" / "spark_conf"),
    "SPARK_DAEMON_JAVA_OPTS": _JAVA_OPTIONS,
    "SPARK_LAUNCHER_OPTS": _JAVA_OPTIONS,
}


class SharedSession:
    """A session that is started at first use, and again after a test has broken it."""

    def __init__(self) -> None:
        self._session: SparkSession | None = None

    def get(self) -> SparkSession:
        """Return a session that answers."""
        if self._session is not None and not answers(self._session):
            abandon(self._session)
            self._session = None
        if self._session is None:
            self._session = _start()
        return self._session

    def stop(self) -> None:
        """Stop the session, if it was ever started."""
        if self._session is not None:
            self._session.stop()


def answers(session: SparkSession) -> bool:
    """Whether Java answers the question of this call, and its context still runs."""
    question = uuid.uuid4().hex
    context: Any = session.sparkContext
    hung = threading.Timer(ANSWER_TIMEOUT_S, context._gateway.proc.kill)
    hung.start()
    try:
        answer = context._jvm.java.lang.System.getProperty(question, question)
        return bool(answer == question and not context._jsc.sc().isStopped())
    except Exception:  # noqa: BLE001 - whatever comes of another call's answer
        return False
    finally:
        hung.cancel()
        hung.join()


def abandon(session: SparkSession) -> None:
    """Kill the Java process, and make PySpark forget it."""
    from pyspark import SparkContext

    context: Any = session.sparkContext
    context._gateway.proc.kill()
    context._gateway.proc.wait()
    # It asks Java to stop, which cannot answer, before it forgets.
    with suppress(Exception), warnings.catch_warnings(action="ignore"):
        session.stop()
    with suppress(Exception):
        context._gateway.shutdown_callback_server()
    of_context: Any = SparkContext
    of_context._active_spark_context = of_context._gateway = of_context._jvm = None
    of_session: Any = type(session)
    of_session._instantiatedSession = of_session._activeSession = None


def _start() -> SparkSession:
    import quire.spark

    # Spark's Python workers import the support modules by it.
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(SUPPORT) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join(
            [*map(str, SUPPORT_FOLDERS), *filter(None, path)]
        )
    return quire.spark.session("tests", cores=2)
