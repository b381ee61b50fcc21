"""
Checks that the columns and functions in a pipeline's SQL exist, where its sources have a schema.

Spark analyses each step on empty tables with these columns: nothing is read, and nothing is run. A
step is left out if it reads a source without a schema, a table of the catalog, or a Python step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException

from quire.pipeline.spec.parts import PipelineFile, PythonStep, SqlStep
from quire.pipeline.spec.validation import sorted_steps
from quire.pipeline.spec.yaml_lines import Place

_UNKNOWN: Final = (
    "UNRESOLVED_COLUMN",
    "UNRESOLVED_FIELD",
    "FIELD_NOT_FOUND",
    "UNRESOLVED_ROUTINE",
)


def unresolved(
    jvm: Any,  # noqa: ANN401 - the one of py4j
    file: PipelineFile,
    with_names: Callable[[str], str],
) -> Iterator[tuple[Place, str]]:
    """Yield the place of each query or rule with an unknown name, and Spark's message."""
    known = {
        name: source.ddl
        for name, source in file.sources.items()
        if source.ddl is not None and source.malformed_action is None
    }
    steps = [*_analysable(file, {*known})]
    if not steps:
        return
    with _session(jvm) as session:
        for name, ddl in known.items():
            schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)
            frame = session.createDataFrame(jvm.java.util.ArrayList(), schema)
            frame.createOrReplaceTempView(name)
        views = {*known}
        for name in steps:
            step = file.steps[name]
            if not views.issuperset(step.inputs):
                continue  # an input was refused
            if isinstance(step, SqlStep):
                found, problem = _analysed(session.sql, with_names(step.sql))
            else:
                found, problem = session.table(step.inputs[0]), None
            if problem is not None:
                yield ("steps", name, "sql"), problem
            if found is None:
                continue
            found.createOrReplaceTempView(name)
            views.add(name)
            for rule, expectation in (step.expect or {}).items():
                _, problem = _analysed(found.filter, expectation.check)
                if problem is not None:
                    yield ("steps", name, "expect", rule), problem


def _analysable(file: PipelineFile, known: set[str]) -> Iterator[str]:
    """Yield the steps all of whose inputs have known columns, each after those it reads."""
    for name in sorted_steps(file):
        step = file.steps[name]
        if known.issuperset(step.inputs) and not isinstance(step, PythonStep):
            known.add(name)
            yield name


def _analysed(analyse: Callable[[str], Any], text: str) -> tuple[Any, str | None]:
    """Return the result of Spark's analysis of a text, and its message about an unknown name."""
    try:
        return analyse(text), None
    except (Py4JJavaError, AnalysisException) as error:
        thrown: Any = getattr(error, "java_exception", error)  # the second where a session runs
        if not str(thrown.getCondition()).startswith(_UNKNOWN):
            return None, None  # may exist where the pipeline runs, such as a table
        message = str(thrown.getMessage()).partition(" SQLSTATE")[0].partition("\n")[0]
        return None, message.partition("] ")[2] or message


@contextmanager
def _session(jvm: Any) -> Generator[Any]:  # noqa: ANN401 - the one of py4j
    """Open a session without views of others; stop Spark afterwards if it was started here."""
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    running = sessions.getDefaultSession()
    if running.isDefined():
        yield running.get().newSession()
        return
    builder = sessions.builder().master("local[1]").appName("quire pipeline check")
    for name, value in (
        ("spark.ui.enabled", "false"),
        ("spark.sql.catalogImplementation", "in-memory"),
        ("spark.driver.host", "localhost"),
        ("spark.driver.bindAddress", "127.0.0.1"),
    ):
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
