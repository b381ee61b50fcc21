"""The columns of an archive, and how messages become rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute

from quire.archive.decoding import LEADING, Decoding
from quire.archive.finished_cycles import Cycle
from quire.arrow.batches import array_of
from quire.arrow.column_types import (
    CYCLE_TYPE,
    EVENT_TIME_TYPE,
    INDEX_TYPE,
    MESSAGE_COLUMNS,
    fields_of,
)
from quire.arrow.content import RowContent
from quire.arrow.names import (
    CYCLE,
    ERROR,
    INDEX,
    METHOD,
    PAYLOAD,
    SEQUENCE,
    SUBTOPIC,
    TIMESTAMP,
    TOPIC,
)
from quire.arrow.schema import Schema
from quire.arrow.timed_columns import event_times, timed
from quire.errors import ArchiveError, CorruptError
from quire.formats.adapters import numbering_of
from quire.formats.numbering import Numbering
from quire.handles.base import Queue, Tailer
from quire.handles.journal.subtopics import ROUTE
from quire.ranges.cycles import CycleRange
from quire.ranges.sparse import sparse_batches

BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 16 * 2**20

pc: Any = pyarrow.compute  # its functions are made when it is imported


class Columns:
    """
    The columns of a topic in the archive.

    Args:
        topic: The name of the topic.
        decoding: The typed columns.

    Raises:
        ArchiveError: The schema's columns cannot be columns of an archive.

    """

    def __init__(self, topic: str, decoding: Decoding = Decoding()) -> None:  # noqa: B008 - frozen
        """Make the schema of the files."""
        self._topic = pa.scalar(topic)
        self._decoding = decoding
        content, types = decoding.content(), decoding.types()
        self._is_raw = content is None and decoding.time_field is None
        decoded = content or RowContent(pa.schema([]))
        if decoding.time_field is not None:
            decoded = timed(decoded, decoding.timed)
        self._schema = Schema.of_content(replace(decoded, index_name=INDEX))
        fields: list[Any] = [pa.field(it, MESSAGE_COLUMNS[it], nullable=False) for it in LEADING]
        if not self._is_raw:
            fields.append(pa.field(SUBTOPIC, pa.string()))
        if decoding.time_field is not None:
            fields.append(pa.field(TIMESTAMP, EVENT_TIME_TYPE))
        fields += [pa.field(name, kind) for name, kind in types.items()]
        if content is not None:
            fields.append(pa.field(ERROR, pa.string()))
        self.schema: Final = pa.schema([*fields, pa.field(PAYLOAD, pa.binary(), nullable=False)])

    def read(self, tailer: Tailer, cycle: int, within: CycleRange) -> tuple[int, pa.RecordBatch]:
        """
        Read the next messages of a cycle; return their number and their rows.

        Args:
            tailer: A tailer at the next message.
            cycle: The number of the cycle.
            within: The indexes of all messages of the cycle.

        """
        past = within.end_index
        count = min(past - tailer.index, BATCH_ROWS)
        seen, arrays = (self._raw if self._is_raw else self._decoded)(tailer, count, past)
        index = arrays[INDEX].view(INDEX_TYPE)
        arrays |= {
            INDEX: index,
            CYCLE: pa.repeat(pa.scalar(cycle, CYCLE_TYPE), len(index)),  # pyright: ignore[reportUnknownArgumentType]
            SEQUENCE: pc.divide(pc.subtract(index, within.first_index), within.step),
            TOPIC: pa.repeat(self._topic, len(index)),
        }
        columns = [arrays[name] for name in self.schema.names]
        return seen, pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @staticmethod
    def _raw(tailer: Tailer, count: int, past: int) -> tuple[int, dict[str, Any]]:
        batch = tailer._payload_batch(count, BATCH_BYTES, past)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return batch.num_rows, {INDEX: batch.column(0), PAYLOAD: batch.column(1)}

    def _decoded(self, tailer: Tailer, count: int, past: int) -> tuple[int, dict[str, Any]]:
        seen, tables, payload, topic = tailer._read_decoded(  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            self._schema.plan,
            count,
            max_bytes=BATCH_BYTES,
            keep_misfits=True,
            layout="union",
            end=past,
            payload=True,
            topic=ROUTE,
        )
        batch: Any = self._schema.batches(tables, "union")[""]
        arrays: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays.setdefault(ERROR, pa.nulls(batch.num_rows, pa.string()))
        if self._decoding.time_field is not None:
            arrays[TIMESTAMP] = event_times(arrays, self._decoding.timed, batch.num_rows)
        if self._decoding.method is not None:
            arrays |= _arguments(arrays, self._decoding.method)
        assert payload is not None and topic is not None  # noqa: S101, PT018 - they were asked for
        return seen, {
            **arrays,
            PAYLOAD: array_of(pa.binary(), payload),
            SUBTOPIC: array_of(pa.string(), topic),
        }


def _arguments(arrays: dict[str, Any], method: str) -> dict[str, Any]:
    """Return the arguments of one method as columns."""
    struct = arrays[method]
    inside = {it.name: pc.struct_field(struct, it.name) for it in fields_of(struct.type)}
    return {METHOD: arrays[METHOD], **inside}


class CycleReader:
    """
    Reads all messages of a cycle as rows, or raises.

    Args:
        queue: The queue.
        columns: The columns of the rows.
        cycle: The cycle, as it was when it was inspected.

    Attributes:
        messages: The number of messages read so far.

    """

    def __init__(self, queue: Queue, columns: Columns, cycle: Cycle) -> None:
        """Read nothing yet."""
        self._queue = queue
        self._columns = columns
        self._cycle = cycle
        self._range = cycle.range_in(queue)
        self._next = self._range.first_index
        self.messages = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows in order.

        Raises:
            ArchiveError: The cycle ends before its last message, or the number of rows differs from
                the number of messages.
            CorruptError: The roll file is damaged.

        """
        if not self._range.count:
            return
        with self._queue.tailer() as tailer:
            if not (numbering := numbering_of(self._queue)).is_dense:
                yield from self._sparse(tailer, numbering)
                return
            if not tailer.move_to_index(self._next):
                raise self._ends_early()
            while self._next < self._range.end_index:
                yield self._batch(tailer)

    def _sparse(self, tailer: Tailer, numbering: Numbering) -> Iterator[pa.RecordBatch]:
        batches = sparse_batches(tailer, self._range, numbering, lambda _: self._read(tailer))
        for passed, (_, batch) in batches:
            self._next += passed * numbering.step
            if batch.num_rows:
                yield batch
        if self._next != self._range.end_index:
            raise self._ends_early()

    def _batch(self, tailer: Tailer) -> pa.RecordBatch:
        seen, batch = self._read(tailer)
        if not seen or _index_in(batch, 0) != self._next:
            raise self._ends_early()
        self._next += seen
        if _index_in(batch, -1) != self._next - 1:
            raise self._ends_early()
        return batch

    def _read(self, tailer: Tailer) -> tuple[int, pa.RecordBatch]:
        try:
            seen, batch = self._columns.read(tailer, self._cycle.number, self._range)
        except CorruptError as error:
            message, *values = error.args
            raise CorruptError(f"{message} index={self._next:#x}", *values) from None
        self.messages += seen
        return seen, batch

    def _ends_early(self) -> ArchiveError:
        return ArchiveError(
            "the cycle ends before its last message (its file may be damaged or deleted):"
            f" file={self._cycle.file} index={self._next:#x}"
            f" found={self._range.until(self._next).count} expected={self._range.count}"
        )


def misfits_in(batch: Any) -> int:  # noqa: ANN401 - pyarrow-stubs leave columns open
    """Return the number of malformed records: rows with a reason in ``_error``."""
    if ERROR not in batch.schema.names:
        return 0
    errors = batch.column(ERROR)
    return int(len(errors) - errors.null_count)


def _index_in(batch: Any, row: int) -> int:  # noqa: ANN401 - pyarrow-stubs leave columns open
    return int(batch.column(INDEX)[row].as_py()) if batch.num_rows else -1
