"""
Scans: a queue as a frame whose messages are chosen when it is made, read without a Spark source.

The driver plans the shares and hands them to ``mapInArrow``; a worker decodes its share in the
kernel. What asks for no more than where messages are needs no Python at all: the messages of a
cycle are numbered one after the other, so that Java can count on from the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from os import PathLike
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from quire._common import arguments
from quire._common.units import duration_us
from quire.arrow.names import CYCLE, INDEX, SEQUENCE, TOPIC
from quire.arrow.schema import Schema
from quire.errors import OptionsError
from quire.formats.adapters import numbering_of
from quire.spark.read import row_plan
from quire.spark.read.batch_reader import planned, refuse_limits
from quire.spark.read.condition_ranges import pruned
from quire.spark.read.missing_fields import warn_of_missing_fields
from quire.spark.read.partitions import TopicRange, partitions_of
from quire.spark.read.row_plan import RowPlan
from quire.spark.read.scan_conditions import condition_of
from quire.spark.sessions.registration import checked_session, parallelism_of, use_this_python
from quire.spark.source_options import ReadOptions, refuse
from quire.spark.spark_columns import any_texts, checked, default_columns
from quire.spark.topics import open_queue

# Java generates positions piece by piece, each as an array of sequence numbers.
_PIECE: Final = 65_536
_PIECES_MAX: Final = 20_000
_PIECE_FIELDS: Final[list[tuple[str, pa.DataType]]] = [
    (TOPIC, pa.string()),
    (CYCLE, pa.int32()),
    ("base", pa.int64()),
    ("first", pa.int64()),
    ("last", pa.int64()),
]


def scan(  # noqa: PLR0913 - by keyword
    spark: SparkSession,
    path: str | PathLike[str],
    *,
    topics: str | Iterable[str] | None = None,
    schema: Schema | StructType | str | None = None,
    method: str | None = None,
    columns: str | Iterable[str] | None = None,
    where: str | Column | None = None,
    lateness: str | None = None,
    **options: Any,  # noqa: ANN401 - as Spark takes them
) -> DataFrame:
    """
    Return the current messages of one or more queues.

    The frame is a snapshot: for later messages, create another frame. It has the same rows and
    columns as ``format("quire")``, but Spark reads it faster.

    Args:
        spark: The session.
        path: The directory of a queue, or of queues; or the address of a server or of a queue
            there, with the options ``token`` and ``tls``.
        topics: Only these topics.
        schema: The structure of the messages: a schema, its text, the name of a class as
            ``module:Name``, or columns such as ``"symbol string, price double"``. A Spark schema
            determines the columns exactly.
        method: One method of an interface: only its calls are rows, with its arguments as columns.
        columns: Only these columns. If they are only ``_topic``, ``_index``, ``_cycle`` and
            ``_sequence``, the rows are generated without reading messages, and without Python.
        where: Only rows for which this condition of Spark is true, such as
            ``"_index >= 83000000000 and symbol = 'EURUSD'"``. Messages that conditions on
            ``_topic``, ``_index`` and ``_cycle`` rule out are not read; the workers drop other rows
            where they can.
        lateness: By how much a message may be earlier than one before it, such as ``"10 minutes"``.
            Then messages that conditions on ``_timestamp`` rule out are not read, either. Requires
            ``timestampField`` and *where*.
        options: Options of the source, such as ``startingOffsets``, ``timestampField`` or
            ``onError``.

    Raises:
        OptionsError: Options are not valid; the error lists every problem.
        NotAQueueError: There is no queue at *path*.
        IndexOutOfRangeError: The messages at the start were deleted.

    Examples:
        >>> import quire.spark
        >>> _ = appender.write_map({"symbol": "EURUSD", "price": 1.1})
        >>> quire.spark.scan(spark, "orders", schema="symbol string, price double").count()
        1

    """
    checked_session(spark)
    struct = any_texts(schema) if isinstance(schema, StructType) else None
    named = {
        "path": arguments.path("path", path),
        "topics": _listed(topics),
        "schema": None if isinstance(schema, StructType) else _described(schema),
        "method": arguments.optional(arguments.text)("method", method),
        "columns": None if columns is None else ", ".join(arguments.names("columns", columns)),
    }
    given = {**named, **options}
    read = ReadOptions.of(
        {name: _text(name, it) for name, it in given.items() if it is not None},
        parallelism_of(spark),
    )
    refuse_limits(read)
    lateness_us = _lateness_us(lateness, where, read)
    if struct is None:
        found = default_columns(read)
        struct = found if isinstance(found, StructType) else _parsed(found, schema)
    plan = RowPlan.of(checked(struct, read), read)
    if where is None:
        spans = planned(read)
        warn_of_missing_fields(spans, plan)
        return frame_of(spark, spans, plan, struct)
    conditions = condition_of(spark, struct, where)
    spans = planned(read)
    warn_of_missing_fields(spans, plan)
    left = pruned(spans, conditions, read, lateness_us)
    return frame_of(spark, left, replace(plan, conditions=conditions), struct).where(where)


def frame_of(
    spark: SparkSession, spans: Iterable[TopicRange], plan: RowPlan, schema: StructType
) -> DataFrame:
    """Return the messages of *spans* as rows of *schema*, by a plan for that schema."""
    spans = [span for span in spans if span.runs]
    if not plan.needs_messages and all(span.is_dense for span in spans):
        return _places(spark, spans, plan)
    use_this_python(spark)
    options = plan.options
    partitions = partitions_of(
        spans, options.records_per_partition, options.min_partitions, options.parallelism
    )

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in cast("list[int]", batch.column(0).to_pylist()):
                yield from row_plan.read(partitions[number], plan)

    numbers = spark.range(0, len(partitions), 1, max(len(partitions), 1))
    return numbers.mapInArrow(read, schema)


def _places(spark: SparkSession, spans: Sequence[TopicRange], plan: RowPlan) -> DataFrame:
    """Return the positions of messages: each row here is a piece of a cycle, which Java expands."""
    total = sum(span.count for span in spans)
    size = max(_PIECE, total // _PIECES_MAX)
    pieces = [piece for span in spans for piece in _pieces(span, plan.options, size)]
    columns = zip(*pieces, strict=True) if pieces else [()] * len(_PIECE_FIELDS)
    table = pa.table(
        {
            name: pa.array(column, kind)
            for (name, kind), column in zip(_PIECE_FIELDS, columns, strict=True)
        }
    )
    sequence = f.explode(f.sequence("first", "last")).alias(SEQUENCE)
    made = spark.createDataFrame(table).select(TOPIC, CYCLE, "base", sequence)
    made = made.withColumn(INDEX, f.col("base") + f.col(SEQUENCE))
    return made.select(*plan.arrow.names)


def _pieces(
    span: TopicRange, options: ReadOptions, size: int
) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield topic, cycle, the cycle's first index, and the first and last sequence of a piece."""
    with open_queue(span.path, options) as queue:
        numbering = numbering_of(queue)
    for run in span.runs:
        cycle = numbering.to_cycle(run.first_index)
        base = numbering.to_index(cycle, 0)
        for first in range(run.first_index - base, run.end_index - base, size):
            yield span.topic, cycle, base, first, min(first + size, run.end_index - base) - 1


def _lateness_us(
    lateness: str | None, where: str | Column | None, options: ReadOptions
) -> int | None:
    if lateness is None:
        return None
    if where is None or options.time_field is None:
        refuse(["lateness requires where, a condition on _timestamp, and timestampField"], "scan")
    try:
        return duration_us(arguments.text("lateness", lateness))
    except ValueError as error:
        refuse([f"lateness: {error}"], "scan")
        raise


def _listed(topics: str | Iterable[str] | None) -> str | None:
    if topics is None or isinstance(topics, str):
        return topics
    return json.dumps(arguments.names("topics", topics))


def _described(schema: Schema | str | None) -> str | None:
    if isinstance(schema, Schema):
        return schema.to_text()
    check = arguments.instance(str, "a schema, its text, or columns")
    text: str | None = arguments.optional(check)("schema", schema)
    return text


def _text(name: str, value: object) -> str:
    """Return an option as Spark passes it to a source."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        try:
            return json.dumps(value)
        except TypeError:
            found = cast("object", value)
            raise arguments.refusal(name, "what JSON can hold", found) from None
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _parsed(columns: str, schema: object) -> StructType:
    try:
        found = StructType.fromDDL(columns)
    except ParseException as error:
        what = (error.getCondition() or "").lower()
        raise OptionsError(f"quire scan: not a list of columns: schema={schema!r} {what}") from None
    assert isinstance(found, StructType)  # noqa: S101 - names stand before the types
    return found
