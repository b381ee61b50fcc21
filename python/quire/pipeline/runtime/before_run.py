"""
Checks of a pipeline beyond the form of its file: paths, options, and texts in SQL.

Nothing is run, read or written. Spark's own parser parses the SQL, because only it knows all of
Spark's SQL. It needs no session, only a JVM, which starts within seconds. Steps whose columns are
known are also analysed, by a session.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any, Final, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext, java_gateway
from pyspark.errors import ParseException

from quire.errors import NotAQueueError, OptionsError
from quire.opening.discovery import topics_of
from quire.pipeline.runtime.analysis import unresolved
from quire.pipeline.spec.loader import assembled, parsed
from quire.pipeline.spec.parts import (
    FileSource,
    Pipeline,
    PipelineFile,
    QueueSource,
    SqlStep,
    TableSource,
)
from quire.pipeline.spec.value_types import is_url
from quire.pipeline.spec.yaml_lines import Document, Place
from quire.spark.sessions import java
from quire.spark.source_options import ReadOptions
from quire.spark.topics import local_path
from quire.spark.write.sink_options import check_names

_GLOB: Final = re.compile(r"[*?\[{]")
_COLUMNS: Final = "columns as 'symbol string, price double'"
_CONDITION: Final = "a condition in SQL"

_Parse = Callable[[str], object]


def check(path: str | Path) -> Pipeline:
    """
    Load a pipeline file, and check everything that it refers to, without running anything.

    Checks that the paths of its sources exist, that options are known and valid, and that SQL,
    rules and schemas parse. In steps that read only sources with a schema, directly or through
    other SQL steps, it also checks that columns and functions exist; in other steps, missing ones
    are only found when the pipeline runs.

    Args:
        path: The file.

    Raises:
        PipelineFileError: The file is not valid, or refers to something that does not exist; the
            error lists all problems with their lines.
        NoJavaError: The file has SQL, and no Java was found to parse it.
        OSError: The file cannot be read.

    Examples:
        >>> import quire.pipeline
        >>> quire.pipeline.check("trades.yaml").name  # doctest: +SKIP
        'trades'

    """
    document, file = parsed(path)
    _check_sources(document, file)
    _check_sinks(document, file)
    texts = [*_texts(file)]
    if texts:
        with _jvm() as jvm:
            parsers = _parsers(jvm)
            for place, text, kind in texts:
                _check_text(document, place, text, kind, parsers[kind])
            if not document.problems:
                for place, problem in unresolved(jvm, file, _with_names):
                    document.report(place, f"does not resolve: {problem}")
    return assembled(document, file)


def _check_sources(document: Document, file: PipelineFile) -> None:
    for name, source in file.sources.items():
        place: Place = ("sources", name)
        if isinstance(source, TableSource):
            continue
        _check_path(document, (*place, "path"), source)
        if isinstance(source, QueueSource):
            options = {"path": "/", **source.spark_options}  # the path is checked separately
            for problem in _refused(partial(ReadOptions.of, options)):
                document.report((*place, "options"), problem)


def _check_path(document: Document, place: Place, source: QueueSource | FileSource) -> None:
    if _GLOB.search(source.path) or (is_url(source.path) and not source.path.startswith("file:")):
        return
    path = local_path(source.path)
    if isinstance(source, FileSource):
        if not Path(path).exists():
            document.report(place, f"does not exist: found={path} expected: a file or directory")
        return
    try:
        topics_of(path)
    except (NotAQueueError, OSError):
        expected = "the directory of a queue, or one with queues below it"
        is_there = "is not a queue" if Path(path).exists() else "does not exist"
        document.report(place, f"{is_there}: found={path} expected: {expected}")


def _check_sinks(document: Document, file: PipelineFile) -> None:
    for number, sink in enumerate(file.sinks):
        if sink.format == "quire":
            for problem in _refused(partial(check_names, sink.options)):
                document.report(("sinks", number, "options"), problem)
    if file.quarantine is not None and file.quarantine.format == "quire":
        for problem in _refused(partial(check_names, file.quarantine.options)):
            document.report(("quarantine", "options"), problem)


def _refused(read: Callable[[], object]) -> Iterator[str]:
    try:
        read()
    except OptionsError as error:
        yield str(error).partition(": ")[2]


def _texts(file: PipelineFile) -> Iterator[tuple[Place, str, str]]:
    """Yield the place, text and kind of everything that Spark parses."""
    for name, source in file.sources.items():
        if source.ddl is not None:
            yield ("sources", name, "schema"), source.ddl, "columns"
        for option, text in source.options.items():
            is_columns = option.lower() == "schema" and isinstance(source, QueueSource)
            if is_columns and not text.lstrip().startswith("{") and ":" not in text:
                yield ("sources", name, "options", option), text, "columns"
    for name, step in file.steps.items():
        if isinstance(step, SqlStep):
            yield ("steps", name, "sql"), _with_names(step.sql), "query"
        for rule, expectation in (step.expect or {}).items():
            yield ("steps", name, "expect", rule), expectation.check, "condition"


def _with_names(sql: str) -> str:
    """Return a query with table names instead of names in braces."""
    parts = Formatter().parse(sql)
    return "".join(text + ("" if name is None else f"`{name}`") for text, name, _, _ in parts)


def _check_text(document: Document, place: Place, text: str, kind: str, parse: _Parse) -> None:
    try:
        parse(text)
    except (Py4JJavaError, ParseException) as error:  # the second where a session runs
        thrown: Any = getattr(error, "java_exception", None)
        message = str(error if thrown is None else thrown.getMessage()).strip()
        at = re.search(r"\(line (\d+), pos (\d+)\)", message)
        where = f" at line {at[1]}, column {int(at[2]) + 1}" if at else ""
        expected = {"columns": _COLUMNS, "condition": _CONDITION, "query": "a query in SQL"}[kind]
        document.report(
            place,
            f"does not parse{where}: found={' '.join(text.split())!r:.80} expected: {expected}"
            f" ({message.partition(' SQLSTATE')[0].partition(chr(10))[0]})",
        )


def _parsers(jvm: Any) -> dict[str, _Parse]:  # noqa: ANN401 - the one of py4j
    parser = jvm.org.apache.spark.sql.execution.SparkSqlParser()
    return {
        "columns": parser.parseTableSchema,
        "condition": parser.parseExpression,
        "query": parser.parseQuery,
    }


@contextmanager
def _jvm() -> Generator[Any]:
    """Open a JVM with Spark: that of the running session, or a new one."""
    running: Any = SparkContext._gateway  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    gateway = running
    if running is None:
        java.use()
        gateway = cast("Any", java_gateway).launch_gateway(
            popen_kwargs={"stderr": subprocess.DEVNULL}
        )  # hides its warning about the host name
    try:
        yield gateway.jvm
    finally:
        if running is None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()
