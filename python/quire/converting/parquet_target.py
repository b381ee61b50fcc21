"""A conversion's result as Parquet files: the index and the bytes of each message."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, BufferedWriter
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from quire._common.durable import SafeFolder
from quire.archive.cycle_file import GROUP_BYTES, GROUP_ROWS, Writer
from quire.arrow.names import INDEX, PAYLOAD
from quire.errors import ConvertError
from quire.formats.columns import Columns

_FILE: Final = re.compile(r"part-(\d{6,})\.parquet")
_READ_ROWS: Final = 16_384
_FIELDS: list[pa.Field[Any]] = [
    pa.field(INDEX, pa.int64(), nullable=False),
    pa.field(PAYLOAD, pa.binary(), nullable=False),
]
_SCHEMA: Final = pa.schema(_FIELDS)


class ParquetTarget:
    """
    Parquet files that a conversion writes, each published when it is complete.

    Args:
        folder: The directory of the files.

    """

    keeps_indexes = True
    shortest = 0
    longest = 2**31 - 1

    def __init__(self, folder: SafeFolder) -> None:
        """Find the files of a run that was interrupted."""
        self._folder = folder
        self._files = sum(1 for name in folder.names() if _FILE.fullmatch(name))
        self._found: Iterator[Columns] = iter(())
        self._rest: Columns | None = None
        self._temporary = ""
        self._file: BufferedWriter | None = None
        self._writer: Writer | None = None
        self._rows = self._bytes = 0

    def rewind(self) -> None:
        """Go to the first message."""
        self._found, self._rest = self._chunks(), None

    def read(self, count: int) -> Columns:
        """Return the next messages, up to *count*; empty at the end."""
        chunk = self._rest if self._rest is not None else next(self._found, _EMPTY)
        self._rest = chunk.part(count, len(chunk)) if len(chunk) > count else None
        return chunk.part(0, min(count, len(chunk)))

    def append(self, chunk: Columns, time_ms: int) -> None:
        """Append messages to the current file."""
        del time_ms
        if self._writer is None:
            self._temporary = self._folder.temporary(_name(self._files))
            self._writer = Writer(self._folder.create(self._temporary), _SCHEMA)
        rows = len(chunk)
        offsets, data = pa.py_buffer(chunk.offsets), pa.py_buffer(chunk.data)
        columns: list[pa.Array[Any]] = [
            pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(chunk.indexes)]),
            pa.Array.from_buffers(pa.binary(), rows, [None, offsets, data]),
        ]
        self._writer.write(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
        self._rows += rows
        self._bytes += len(chunk.data)
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self.finish()

    def finish(self) -> None:
        """Publish the current file."""
        if self._writer is None:
            return
        try:
            with self._writer as writer:
                self._writer = None
                writer.close({})
            self._folder.publish(self._temporary, _name(self._files))
        except BaseException:
            self._folder.remove(self._temporary)
            raise
        self._files += 1
        self._rows = self._bytes = 0

    def close(self) -> None:
        """Remove an unfinished file."""
        if self._writer is None:
            return
        with suppress(OSError), self._writer:  # its footer may not fit on the disk
            self._writer = None
        self._folder.remove(self._temporary)

    def _chunks(self) -> Iterator[Columns]:
        for number in range(self._files):
            name = _name(number)
            try:
                with self._folder.open(name) as file, _opened(file) as parquet:
                    for batch in parquet.iter_batches(_READ_ROWS, columns=_SCHEMA.names):
                        yield _chunk(batch)
            except (pa.ArrowException, KeyError, FileNotFoundError) as error:
                path = self._folder.path / name
                raise ConvertError(f"the file cannot be read: file={path} ({error})") from None


def _opened(file: BufferedReader) -> pq.ParquetFile:
    return pq.ParquetFile(file, page_checksum_verification=True)


def _name(number: int) -> str:
    return f"part-{number:06}.parquet"


def _chunk(batch: Any) -> Columns:  # noqa: ANN401 - pyarrow-stubs leave columns open
    indexes, payloads = batch.column(INDEX), batch.column(PAYLOAD)
    rows = len(batch)
    _, offsets, data = payloads.buffers()
    where = memoryview(offsets).cast("i")[payloads.offset : payloads.offset + rows + 1]
    numbers = memoryview(indexes.buffers()[1]).cast("B").cast("Q")
    numbers = numbers[indexes.offset : indexes.offset + rows]
    return Columns(numbers, where, memoryview(data or b"")).part(0, rows)


_EMPTY: Final = Columns(
    memoryview(array("Q")).cast("B").cast("Q"), memoryview(array("i", [0])), memoryview(b"")
)
