"""The columns of an archive, and how messages become rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quire.archive.cycles import Cycle
from quire.errors import ArchiveError, CorruptError
from quire.queue import Queue
from quire.tailing import Tailer

BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 16 * 2**20

INDEX: Final = "_index"
PAYLOAD: Final = "payload"
# An index never reaches 2**63, and few readers of Parquet know unsigned integers.
_IN_FRONT: Final = {
    INDEX: pa.int64(),
    "_cycle": pa.int32(),
    "_sequence": pa.int64(),
    "_topic": pa.string(),
}
_COMPUTE: Any = pc  # its functions are made when it is imported


class Columns:
    """
    What each message of a topic becomes.

    Args:
        topic: Its name.

    """

    def __init__(self, topic: str) -> None:
        """Settle the schema of the files."""
        fields: list[Any] = [
            pa.field(name, kind, nullable=False) for name, kind in _IN_FRONT.items()
        ]
        fields.append(pa.field(PAYLOAD, pa.binary(), nullable=False))
        self.schema: Final = pa.schema(fields)
        self._topic = pa.scalar(topic)

    def read(self, tailer: Tailer, count: int, cycle: int, first_index: int) -> pa.RecordBatch:
        """Return rows of at most *count* messages of a cycle, which begins with *first_index*."""
        batch = tailer.read_batch(count, max_bytes=BATCH_BYTES)
        index = batch.column("index").view(pa.int64())
        arrays: list[Any] = [
            index,
            pa.repeat(pa.scalar(cycle, pa.int32()), len(index)),
            _COMPUTE.subtract(index, first_index),
            pa.repeat(self._topic, len(index)),
            batch.column("payload"),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class CycleReader:
    """
    Reads the messages of one cycle as rows, every one of them or none.

    Args:
        queue: The queue.
        columns: What the messages become.
        cycle: The cycle, as it was looked at.

    """

    def __init__(self, queue: Queue, columns: Columns, cycle: Cycle) -> None:
        """Touch nothing."""
        self._queue = queue
        self._columns = columns
        self._cycle = cycle
        self._next: int = queue.roll_cycle.to_index(cycle.number, 0)
        self._first = self._next

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows in order.

        Raises:
            ArchiveError: The messages end before they should.
            CorruptError: The file is damaged.

        """
        past = self._first + self._cycle.end.messages
        if self._next == past:
            return
        with self._queue.tailer() as tailer:
            if not tailer.move_to_index(self._next):
                raise self._ends_early()
            while self._next < past:
                yield self._batch(tailer, past - self._next)

    def _batch(self, tailer: Tailer, left: int) -> pa.RecordBatch:
        try:
            batch = self._columns.read(
                tailer, min(left, BATCH_ROWS), self._cycle.number, self._first
            )
        except CorruptError as error:
            told, *values = error.args
            raise CorruptError(f"{told} index={self._next:#x}", *values) from None
        if not batch.num_rows:
            raise self._ends_early()
        first, last = (_index_in(batch, row) for row in (0, -1))
        if first != self._next:
            raise self._ends_early()
        self._next = last + 1
        return batch

    def _ends_early(self) -> ArchiveError:
        return ArchiveError(
            "the cycle ends before its last message, is its file damaged or gone?"
            f" file={self._cycle.file} index={self._next:#x} found={self._next - self._first}"
            f" expected={self._cycle.end.messages}"
        )


def _index_in(batch: Any, row: int) -> int:  # noqa: ANN401 - pyarrow-stubs leave columns open
    index: int = batch.column(INDEX)[row].as_py()
    return index
