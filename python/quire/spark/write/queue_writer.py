"""Writing a frame to a queue: tasks stage messages, the driver appends them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from quire.arrow.encoder import Encoder
from quire.errors import OptionsError
from quire.spark.write.sink_options import NOT_A_NEW_TABLE, WriteOptions, messages_in
from quire.staged.staging import Part

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_EXECUTION: Final = "spark.sql.execution.id"
_ROOT_EXECUTION: Final = "spark.sql.execution.root.id"


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The part that a task staged, and the writer it belongs to."""

    writer: str
    part: Part | None


class QuireWriter(DataSourceArrowWriter):
    """A batch write, named by the options ``writeId`` and ``batchId``, or by a new name."""

    def __init__(self, options: WriteOptions) -> None:
        """Give the write its name."""
        self._options: Final = options
        self._writer: Final = options.write_id or f"write-{uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:  # type: ignore[override]
        """Stage the messages of one task."""
        if _creates_table(_task()):
            raise OptionsError(NOT_A_NEW_TABLE)
        return _stage(self._options, self._writer, self._options.batch_id, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Append the staged messages."""
        options, kept = self._options, self._options.write_id is not None
        options.place.commit(self._writer, options.batch_id, _parts(messages), kept=kept)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Remove the staged messages."""
        options = self._options
        options.place.abort(self._writer, options.batch_id)


class QuireStreamWriter(DataSourceStreamArrowWriter):
    """The batches of a stream: the writer is the query, whose id is in its checkpoint."""

    def __init__(self, options: WriteOptions) -> None:
        """Keep the options."""
        self._options: Final = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:  # type: ignore[override]
        """Stage the messages of one task."""
        query, batch = _task().getLocalProperty(_QUERY), _task().getLocalProperty(_BATCH)
        if query is None or batch is None:
            raise RuntimeError(f"the task does not know its batch: query={query} batch={batch}")
        return _stage(self._options, query, int(batch), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Append the staged messages, unless the batch is in the queue."""
        for writer in {it.writer for it in messages if isinstance(it, Staged)}:
            self._options.place.commit(writer, batchId, _parts(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove the staged messages."""
        for writer in {it.writer for it in messages if isinstance(it, Staged)}:
            self._options.place.abort(writer, batchId)


def _stage(
    options: WriteOptions, writer: str, batch: int, batches: Iterator[pa.RecordBatch]
) -> Staged:
    encoder: Encoder | None = None
    partition = _task().partitionId()
    with options.place.staging(writer, batch, partition, options.longest) as part:
        for frame in batches:
            rows = messages_in(frame)
            encoder = encoder or Encoder(rows.schema, **options.encoding)
            if rows.num_rows:
                part.write(encoder.encode(rows))
        return Staged(writer, part.finish())


def _creates_table(task: TaskContext) -> bool:
    """Return whether the write is part of a command that creates a table from rows."""
    root, own = task.getLocalProperty(_ROOT_EXECUTION), task.getLocalProperty(_EXECUTION)
    return root != own and task.getLocalProperty(_QUERY) is None


def _task() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("a write happens in the tasks of a query")
    return context


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[Part]:
    return [it.part for it in messages if isinstance(it, Staged) and it.part is not None]
