"""
Reading the messages of a partition as Arrow batches, one at a time.

Only the requested columns are decoded; if they are only positions, no message is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

import quire
from quire.arrow.batches import array_of
from quire.arrow.column_types import CYCLE_TYPE, INDEX_TYPE, fields_of
from quire.arrow.names import (
    CYCLE,
    ERROR,
    HISTORY,
    INDEX,
    PAYLOAD,
    SEQUENCE,
    SPARK_HISTORY,
    SUBTOPIC,
    TIMESTAMP,
    TOPIC,
)
from quire.arrow.schema import Schema
from quire.arrow.timed_columns import event_times
from quire.errors import CorruptError, IndexOutOfRangeError
from quire.formats.adapters import numbering_of
from quire.formats.numbering import Numbering
from quire.handles.journal.subtopics import ROUTE
from quire.ranges.cycles import CycleRange
from quire.ranges.sparse import sparse_batches
from quire.spark.read.partitions import Partition, TopicRange
from quire.spark.read.scan_conditions import Condition, kept
from quire.spark.source_options import ReadOptions
from quire.spark.spark_columns import arrow_schema, decoding, is_message_column
from quire.spark.topics import open_queue, tailer_for, topic_in_errors

# Limits the memory of a worker: a batch ends before its messages have more bytes than this.
_BATCH_BYTES: Final = 64 * 2**20
_POSITION_COLUMNS: Final = {INDEX, CYCLE, SEQUENCE, TOPIC}

_log = logging.getLogger("quire.spark")

# pyarrow-stubs name a class for each type of array.
_Array: TypeAlias = Any
_Arrays: TypeAlias = dict[str, _Array]
pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class RowPlan:
    """
    How messages become rows; Spark sends it to the tasks.

    Attributes:
        arrow: The schema that Spark expects.
        decoded: The schema of the decoder.
        layout: The method whose calls are rows, or ``union``.
        options: The options of the read.
        wants_payload: Whether the bytes of the messages are a column.
        conditions: A row is dropped if one of these is false for it.

    """

    arrow: pa.Schema
    decoded: Schema
    layout: str
    options: ReadOptions
    wants_payload: bool
    conditions: tuple[Condition, ...] = ()

    @staticmethod
    def of(schema: StructType, options: ReadOptions) -> RowPlan:
        """
        Return the plan of a read whose columns were checked.

        Raises:
            OptionsError: The columns do not fit the form of messages that the options declare.

        """
        wants_payload = any(is_message_column(it) for it in schema if it.name == PAYLOAD)
        decoded, layout = decoding(schema, options), options.method or "union"
        return RowPlan(arrow_schema(schema), decoded, layout, options, wants_payload)

    @property
    def needs_messages(self) -> bool:
        """Whether messages are read at all; with methods, a message may have any number of rows."""
        return bool(self.decoded.methods) or not _POSITION_COLUMNS.issuperset(self.arrow.names)

    @property
    def is_raw(self) -> bool:
        """Whether only the bytes of the messages are needed."""
        others = {*self.arrow.names} - {PAYLOAD} - _POSITION_COLUMNS
        return not self.decoded.methods and not others


def read(share: InputPartition, plan: RowPlan) -> Iterator[pa.RecordBatch]:
    """
    Yield the rows of a partition.

    Raises:
        WireError: A message is malformed, and there is no column for errors.
        CorruptError: A roll file is damaged.
        IndexOutOfRangeError: Messages were deleted after the query was planned.

    """
    if isinstance(share, Partition):
        for span in share.spans:
            for batch in _read_span(span, plan):
                yield kept(plan.conditions, batch) if plan.conditions else batch


def _read_span(span: TopicRange, plan: RowPlan) -> Iterator[pa.RecordBatch]:
    options = plan.options
    with (
        topic_in_errors(span.topic),
        open_queue(span.path, options) as queue,
    ):
        numbering = numbering_of(queue)
        rows = _Rows(numbering, span, plan)
        if not plan.needs_messages and numbering.is_dense:
            for run in span.runs:
                for first in range(run.first_index, run.end_index, options.batch_rows):
                    count = min(options.batch_rows, run.end_index - first)
                    yield rows.batch(np.arange(first, first + count), {})
            return
        seen = 0
        for messages, indexes, arrays in _read_messages(queue, numbering, span, plan):
            seen += messages
            if len(indexes):
                yield rows.batch(indexes, arrays)
        if seen != span.count:
            _lost(span, plan, seen)


def _read_messages(
    queue: quire.Queue, numbering: Numbering, span: TopicRange, plan: RowPlan
) -> Iterator[tuple[int, _Array, _Arrays]]:
    """
    Yield batches: the number of messages, the indexes of the rows, and the columns.

    Reads cycle by cycle, because a tailer alone would wait at the end of a file without an
    end-of-file marker, and skip a deleted one.
    """
    with tailer_for(queue, span.runs[-1].end_index) as tailer:
        for run in span.runs:
            try:
                if numbering.is_dense:
                    yield from _read_run(tailer, run, plan)
                else:
                    yield from _read_sparse(tailer, run, numbering, plan)
            except CorruptError as error:
                if plan.options.fail_on_data_loss:
                    raise
                _log.warning(
                    "the rest of a damaged cycle is skipped: %s topic=%s", error, span.topic
                )


def _read_run(
    tailer: quire.Tailer, run: CycleRange, plan: RowPlan
) -> Iterator[tuple[int, _Array, _Arrays]]:
    step = _payloads if plan.is_raw else _columns
    left = run.count if tailer.move_to_index(run.first_index) else 0
    while left > 0:
        wanted = min(left, plan.options.batch_rows)
        count, indexes, arrays = step(tailer, wanted, run.end_index, plan)
        if count == 0:
            break
        left -= count
        yield count, indexes, arrays


def _read_sparse(
    tailer: quire.Tailer, run: CycleRange, numbering: Numbering, plan: RowPlan
) -> Iterator[tuple[int, _Array, _Arrays]]:
    step = _payloads if plan.is_raw else _columns

    def read(count: int) -> tuple[int, _Array, _Arrays]:
        return step(tailer, min(count, plan.options.batch_rows), run.end_index, plan)

    for passed, (_, indexes, arrays) in sparse_batches(tailer, run, numbering, read):
        yield passed, indexes, arrays


def _payloads(
    tailer: quire.Tailer, count: int, end: int, plan: RowPlan
) -> tuple[int, _Array, _Arrays]:
    del plan
    batch = tailer._payload_batch(count, _BATCH_BYTES, end)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    columns = cast("list[_Array]", batch.columns)
    return batch.num_rows, columns[0], {PAYLOAD: columns[1]}


def _columns(
    tailer: quire.Tailer, count: int, end: int, plan: RowPlan
) -> tuple[int, _Array, _Arrays]:
    seen, tables, payload, topic = tailer._read_decoded(  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        plan.decoded.plan,
        count,
        max_bytes=_BATCH_BYTES,
        keep_misfits=plan.options.keep_errors,
        layout=plan.layout,
        end=end,
        payload=plan.wants_payload,
        topic=ROUTE if SUBTOPIC in plan.arrow.names else None,
    )
    batch = plan.decoded.batches(tables, plan.layout)[""]
    columns = cast("list[_Array]", batch.columns)
    arrays: _Arrays = dict(zip(batch.schema.names, columns, strict=True))
    if payload is not None:
        arrays[PAYLOAD] = array_of(pa.binary(), payload)
    if topic is not None:
        arrays[SUBTOPIC] = array_of(pa.string(), topic)
    return seen, arrays.pop(INDEX), arrays


def _lost(span: TopicRange, plan: RowPlan, seen: int) -> None:
    message = (
        "messages that existed when the query was planned are gone (was a cycle deleted?):"
        f" topic={span.topic} first={span.runs[0].first_index:#x}"
        f" end={span.runs[-1].end_index:#x} planned={span.count} read={seen}"
    )
    if plan.options.fail_on_data_loss:
        raise IndexOutOfRangeError(f"{message} (failOnDataLoss=false reads the remaining messages)")
    _log.warning("%s", message)


class _Rows:
    """Builds the batches of a span from decoded columns and those that the source adds."""

    def __init__(self, numbering: Numbering, span: TopicRange, plan: RowPlan) -> None:
        self._numbering: Final = numbering
        self._topic: Final = span.topic
        self._plan: Final = plan

    def batch(self, indexes: _Array, arrays: _Arrays) -> pa.RecordBatch:
        """Return a batch of the messages at *indexes* (int64 or uint64, one for each row)."""
        index = _as_int64(indexes)
        bits, step = self._numbering.bits, self._numbering.step
        made: dict[str, Callable[[], _Array]] = {
            INDEX: lambda: index,
            CYCLE: lambda: pc.shift_right(index, bits).cast(CYCLE_TYPE),
            SEQUENCE: lambda: pc.divide(pc.bit_wise_and(index, (1 << bits) - 1), step),
            TOPIC: lambda: pa.repeat(pa.scalar(self._topic), len(index)),
            TIMESTAMP: lambda: event_times(arrays, self._plan.options.time_field, len(index)),
            SPARK_HISTORY: lambda: arrays[HISTORY],
            ERROR: lambda: arrays.get(ERROR, pa.nulls(len(index), pa.string())),
        }
        wanted: list[Any] = fields_of(self._plan.arrow)
        columns = [
            _as_expected(
                made[field.name]() if field.name in made else arrays[field.name], field.type
            )
            for field in wanted
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._plan.arrow)


def _as_int64(indexes: _Array) -> _Array:
    array = cast("_Array", pa.array(indexes))
    return array if pa.types.is_int64(array.type) else array.view(INDEX_TYPE)


def _as_expected(array: _Array, kind: pa.DataType) -> _Array:
    return array if array.type == kind else array.cast(kind)
