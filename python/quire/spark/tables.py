"""
Archives and live queues as one table: Spark's own Parquet reader reads the archive.

When a table is created, the manifest of the archive is read once, and the remaining messages of the
queue are counted. Cycles in the manifest are read from their files, all others from the queue. So
each message appears once, even if a run of the archive adds or deletes cycles meanwhile; a cycle
that is gone when the query runs is an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark_types

import quire
from quire._common import arguments
from quire.archive.archived_columns import Columns
from quire.archive.cycle_entry import LAYOUT
from quire.archive.decoding import HISTORY, Decoding
from quire.archive.gaps import record_losses
from quire.archive.identity import drop_grown
from quire.archive.manifest import Archive, Topic
from quire.arrow.column_types import fields_of
from quire.arrow.names import ERROR, METHOD
from quire.arrow.schema import Schema
from quire.arrow.schema_loader import load_schema
from quire.errors import ArchiveError, CorruptError, OptionsError
from quire.formats.adapters import adapter_of, cycles_of, numbering_of
from quire.opening.discovery import topics_of
from quire.opening.opener import open_without_key
from quire.ranges.cycles import CycleRange, cycle_ranges
from quire.spark.arrow_types import from_arrow_schema
from quire.spark.read import row_plan
from quire.spark.read.partitions import Partition, TopicRange
from quire.spark.read.row_plan import RowPlan
from quire.spark.read.scans import frame_of
from quire.spark.sessions.registration import checked_session
from quire.spark.source_options import ReadOptions
from quire.spark.spark_columns import checked
from quire.spark.topics import local_path, topic_in_errors

_NOT_OF_TABLES: Final = (
    "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp", "inferSchema",
    "onError", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "topics",
    "topicsPattern",
)  # fmt: skip
# Up to this many messages of a queue are decoded by the driver: workers would cost more.
SMALL_MESSAGES: Final = 65_536
_SMALL_BYTES: Final = 16 << 20
_GLOB: Final = re.compile(r"([\\{}\[\]*?])")
_TRIES: Final = 3
_TIMES: Final = "spark.sql.timeType.enabled"

_log = logging.getLogger("quire.spark")


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of :func:`table`."""

    schema: Schema | None
    method: str | None
    columns: list[str] | None
    fail_on_data_loss: bool
    time_field: str | None
    time_unit: str | None
    source: Mapping[str, str]
    """Options that are passed to the source unchanged."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A topic: the files of its archived cycles, and the other cycles in its queue."""

    topic: str
    root: str
    decoding: Decoding
    files: list[str]
    older: list[str]
    """Files of earlier versions, with a minimum and maximum of float columns that ignore NaN."""
    live: TopicRange | None


def table(  # noqa: PLR0913 - by keywords
    spark: SparkSession,
    path: str | PathLike[str],
    archive: str | PathLike[str] | None = None,
    *,
    schema: Schema | str | None = None,
    method: str | None = None,
    columns: str | Iterable[str] | None = None,
    **options: Any,  # noqa: ANN401 - as Spark takes them
) -> DataFrame:
    """
    Return archived cycles and the remaining messages of their queues as one table.

    Both parts have the columns of the archive, with the same names and types. Spark's own Parquet
    reader reads the archive, with filters pushed down to row groups and no Python in the workers.
    The remaining messages are planned now: a few are decoded here, more by
    :func:`quire.spark.scan`. The table is a snapshot.

    Args:
        spark: The session.
        path: The archive, which records where its queues are; or the queue, or the directory of
            queues.
        archive: The archive, if *path* is a queue or a directory of queues.
        schema: Typed columns of both parts; None: those of the archive. A schema, the name of a
            class as ``module:Name``, or a file that holds :meth:`quire.Schema.to_text`.
        method: One method of an interface: only its calls are rows, with its arguments as columns.
        columns: Only these columns.
        options: Options of the source: ``failOnDataLoss``, ``recordsPerPartition``,
            ``minPartitions``, ``batchRows``, ``wireType``, ``timestampField``, ``timestampUnit``,
            ``keyFile``, ``keyVariable``, ``allowPlain``.

    Raises:
        ArchiveError: There is no archive, cycles are missing in both archive and queue, or some
            files lack a requested column.
        OptionsError: An option is not supported by tables.

    Examples:
        >>> import quire.spark
        >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        >>> import quire.archive
        >>> _ = quire.archive.archive("orders", "archive")
        >>> quire.spark.table(spark, "orders", "archive").count()
        1

    """
    checked_session(spark)
    asked = _asked(schema, method, columns, options)
    first = local_path(arguments.path("path", path))
    kept = Archive(
        Path(first if archive is None else local_path(arguments.path("archive", archive)))
    )
    queues = None if archive is None else first
    parts = _parts(kept, queues, asked)
    if not parts:
        raise ArchiveError(f"the archive has no topics: path={kept.path}")
    _check_alike(parts)
    united = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True),
        (frame for part in parts for frame in _frames(spark, part, asked)),
    )
    return _chosen(united, asked, parts)


def _asked(
    schema: Schema | str | None,
    method: str | None,
    columns: str | Iterable[str] | None,
    options: Mapping[str, Any],
) -> _Asked:
    given = {name.lower(): str(value) for name, value in options.items()}
    if refused := [name for name in _NOT_OF_TABLES if name.lower() in given]:
        raise OptionsError(
            f"quire table: a table does not support the option {refused[0]}: filter the frame"
            " instead"
        )
    loss = given.pop("failondataloss", "true").lower()
    if loss not in {"true", "false"}:
        raise OptionsError(f"quire table: failOnDataLoss must be true or false: {loss}")
    if isinstance(schema, str):
        try:
            schema = load_schema(schema)
        except (ValueError, TypeError, ImportError, AttributeError, OSError) as error:
            raise OptionsError(f"quire table: schema={schema}: {error}") from None
    is_schema = arguments.instance(Schema, "a schema, or the name of one")
    if isinstance(columns, str):
        columns = [name.strip() for name in columns.split(",")]
    return _Asked(
        arguments.optional(is_schema)("schema", schema),
        arguments.optional(arguments.text)("method", method),
        arguments.optional(arguments.names)("columns", columns),
        loss == "true",
        given.pop("timestampfield", None),
        given.pop("timestampunit", None),
        given,
    )


def _parts(kept: Archive, path: str | None, asked: _Asked) -> list[_Part]:
    names = kept.topics()
    if path is not None:
        queues = topics_of(path)
        if not {*queues} & {*names}:
            raise ArchiveError(
                f"the archive holds no cycle of this queue: path={path} archive={kept.path}"
                f" topics={', '.join(names)}"
            )
        names = [*queues]
    return [_part(kept, name, path, asked) for name in names]


def _part(kept: Archive, name: str, path: str | None, asked: _Asked) -> _Part:
    """Return where the messages of a topic are; look again if that changed meanwhile."""
    left = _TRIES
    while True:
        topic = kept.topic(name)
        root = path or topic.root
        live, problems = _live(topic, root, asked)
        left -= 1
        if not problems or not left:
            break
    if problems:
        problem = f"the table would lack messages: topic={name} {'; '.join(problems)}"
        if asked.fail_on_data_loss:
            raise ArchiveError(f"{problem} (failOnDataLoss=false reads the remaining messages)")
        _log.warning("%s", problem)
    decoding = _decoding(topic, asked)
    _check_columns(topic, decoding, asked)
    entries = [entry for _, entry in sorted(topic.entries.items())]
    files = [_escaped(topic.file(it)) for it in entries if it.layout >= LAYOUT]
    older = [_escaped(topic.file(it)) for it in entries if it.layout < LAYOUT]
    return _Part(name, root, decoding, files, older, live)


def _live(topic: Topic, root: str, asked: _Asked) -> tuple[TopicRange | None, list[str]]:
    """Return the messages of a topic that only its queue has, and problems with missing ones."""
    try:
        path = topics_of(root)[topic.name]
        queue = open_without_key(path, read_only=True, create=False)
    except KeyError:
        return None, topic.problems if topic.gone else [f"its queue is gone: path={root}"]
    except (quire.QuireError, OSError) as error:
        return None, [f"its queue is gone, or does not open: path={root} ({error})"]
    with queue:
        drop_grown(topic, queue)
        record_losses(topic, queue)
        problems = [
            why if cycle is None else f"cycle={cycle} was {why}" for cycle, why in topic.lost
        ]
        listed = [cycle for cycle in cycles_of(queue) if cycle not in topic.entries]
        with topic_in_errors(topic.name):
            runs = [run for cycle in listed for run in _runs(topic, queue, cycle, asked)]
        adapter_of(queue).refresh(queue)
        left = {*cycles_of(queue)}
        problems += [
            f"cycle={cycle} was deleted while the table was made"
            for cycle in listed
            if cycle not in left
        ]
        live = TopicRange(topic.name, queue.path, tuple(runs), numbering_of(queue).is_dense)
        return live, [*topic.problems, *problems]


def _runs(topic: Topic, queue: quire.Queue, cycle: int, asked: _Asked) -> Iterator[CycleRange]:
    """Yield the messages of a cycle, if there are any."""
    to_index = numbering_of(queue).to_index

    def skipped(error: CorruptError) -> None:
        _log.warning("a damaged cycle is skipped: %s topic=%s", error, topic.name)

    yield from cycle_ranges(
        queue,
        to_index(cycle, 0),
        to_index(cycle + 1, 0),
        None if asked.fail_on_data_loss else skipped,
    )


def _decoding(topic: Topic, asked: _Asked) -> Decoding:
    last = topic.decodings[-1] if topic.decodings else Decoding()
    if asked.schema is None and asked.time_field is None:
        return last
    text = last.schema if asked.schema is None else asked.schema.to_text()
    return Decoding(text, None, asked.time_field, asked.time_unit)


def _check_columns(topic: Topic, decoding: Decoding, asked: _Asked) -> None:
    """
    Check that every file has the requested columns.

    Raises:
        ArchiveError: A file lacks a requested column, or has the column with another type.

    """
    wanted = _types(Columns(topic.name, decoding))
    if asked.columns is not None:
        wanted = {name: kind for name, kind in wanted.items() if name in asked.columns}
    elif asked.method is not None:
        wanted = {name: kind for name, kind in wanted.items() if name in {METHOD, asked.method}}
    for place, made in enumerate(topic.decodings):
        cycles = sorted(it.cycle for it in topic.entries.values() if it.decoding == place)
        if not cycles or (made.inferred and decoding.inferred):
            continue
        found = _types(Columns(topic.name, made))
        wrong = [name for name, kind in wanted.items() if found.get(name) != kind]
        wrong.sort(key=lambda name: name.startswith("_"))  # fields first
        if wrong:
            raise ArchiveError(
                f"cycles are archived without this column: column={wrong[0]} topic={topic.name}"
                f" type={wanted[wrong[0]]} archived={found.get(wrong[0])} cycles={len(cycles)}"
                f" first={cycles[0]} last={cycles[-1]} (select other columns with columns=)"
            )


def _types(columns: Columns) -> dict[str, Any]:
    return {field.name: field.type for field in fields_of(columns.schema)}


def _check_alike(parts: list[_Part]) -> None:
    types: dict[str, Any] = {}
    for part in parts:
        for name, kind in _types(Columns(part.topic, part.decoding)).items():
            if types.setdefault(name, kind) != kind:
                raise ArchiveError(
                    f"topics have different types of a column: column={name} topic={part.topic}"
                    f" type={kind} other={types[name]} (give one schema= for all)"
                )


def _frames(spark: SparkSession, part: _Part, asked: _Asked) -> Iterator[DataFrame]:
    schema = from_arrow_schema(Columns(part.topic, part.decoding).schema)
    schema = spark_types.StructType(
        [spark_types.StructField(it.name, it.dataType) for it in schema]
    )
    if part.files:
        yield spark.read.schema(schema).parquet(*part.files)
    if part.older:
        yield _with_nan(spark.read.schema(schema).parquet(*part.older))
    if part.live is not None and part.live.runs:
        yield _live_frame(spark, part, part.live, schema, asked)
    elif not part.files and not part.older:
        yield spark.createDataFrame([], schema)


def _with_nan(older: DataFrame) -> DataFrame:
    """Return the same values as expressions, so that Spark does not push down filters on them."""
    kinds = {"double", "float"}
    nan = f.lit(float("nan"))
    return older.withColumns(
        {
            it.name: f.nanvl(_quoted(it.name), nan.cast(it.dataType))
            for it in older.schema
            if it.dataType.typeName() in kinds
        }
    )


def _quoted(name: str) -> Column:
    """Return the column with a name, which may contain dots."""
    return f.col("`" + name.replace("`", "``") + "`")


def _live_frame(
    spark: SparkSession,
    part: _Part,
    live: TopicRange,
    schema: spark_types.StructType,
    asked: _Asked,
) -> DataFrame:
    decoding = part.decoding
    flattened = decoding.method
    if flattened is not None:
        schema = _spark_schema(part, replace(decoding, method=None))
    values: dict[str, str | None] = {
        "path": part.root,
        "schema": decoding.schema,
        "timestampField": None if decoding.time_field == HISTORY else decoding.time_field,
        "onError": "column" if decoding.schema is not None else None,
        **asked.source,
        "failOnDataLoss": str(asked.fail_on_data_loss).lower(),
    }
    if values["timestampField"] is not None:
        values["timestampUnit"] = decoding.time_unit
    options = ReadOptions.of({name: value for name, value in values.items() if value is not None})
    plan = RowPlan.of(checked(schema, options), options)
    frame = _decoded(spark, live, plan, schema)
    if frame is None:
        frame = frame_of(spark, [live], plan, schema)
    if flattened is None:
        return frame
    return _flattened(frame, flattened)


def _decoded(
    spark: SparkSession, live: TopicRange, plan: RowPlan, schema: spark_types.StructType
) -> DataFrame | None:
    """Return the messages, decoded here; None if there are too many."""
    if live.count > SMALL_MESSAGES:
        return None
    batches, size = list[pa.RecordBatch](), 0
    for batch in row_plan.read(Partition([live]), plan):
        batches.append(batch)
        size += batch.nbytes
        if size > _SMALL_BYTES:
            return None
    return spark.createDataFrame(pa.Table.from_batches(batches, plan.arrow), schema)


def _spark_schema(part: _Part, decoding: Decoding) -> spark_types.StructType:
    """Return the columns for Spark, all nullable, as those of Parquet files are."""
    found = from_arrow_schema(Columns(part.topic, decoding).schema)
    return spark_types.StructType([spark_types.StructField(it.name, it.dataType) for it in found])


def _flattened(frame: DataFrame, method: str) -> DataFrame:
    """Replace the structs of all methods by the arguments of one."""
    struct = frame.schema[method].dataType
    assert isinstance(struct, spark_types.StructType)  # noqa: S101 - each method is one
    inside = [f.col(method)[name].alias(name) for name in struct.names]
    names = frame.schema.names
    others = {it.name for it in frame.schema if isinstance(it.dataType, spark_types.StructType)}
    leading = names[: names.index(METHOD) + 1]
    trailing = [name for name in names if name not in {*leading, *others}]
    return frame.select(*leading, *inside, *trailing)


def _chosen(united: DataFrame, asked: _Asked, parts: list[_Part]) -> DataFrame:
    """Select the requested calls and columns."""
    if asked.method is not None:
        united = _calls(united, asked.method, parts)
    if asked.columns is None:
        return united
    known = united.columns
    if unknown := [name for name in asked.columns if name not in known]:
        raise OptionsError(
            f"quire table: no such column: column={unknown[0]} known={', '.join(known)}"
        )
    return united.select(*asked.columns)


def _calls(united: DataFrame, method: str, parts: list[_Part]) -> DataFrame:
    flattened = {part.decoding.method for part in parts}
    known = united.columns
    if METHOD not in known or (method not in known and flattened != {method}):
        raise OptionsError(f"quire table: no such method: method={method} known={', '.join(known)}")
    misfit = f.col(METHOD).isNull() & f.col(ERROR).isNotNull()
    rows = united.where((f.col(METHOD) == method) | misfit)
    if method in known:
        rows = _flattened(rows, method)
    return rows.drop(METHOD)


def _escaped(file: Path) -> str:
    """Return a path as Spark's readers expect it, with characters of patterns escaped."""
    return "file://" + _GLOB.sub(r"\\\1", str(file))
