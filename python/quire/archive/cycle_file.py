"""One cycle as a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedWriter
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from quire._common.durable import flush_and_sync
from quire.archive.digest import Digest
from quire.arrow.column_types import fields_of
from quire.arrow.names import INDEX, PAYLOAD, SEQUENCE
from quire.errors import ArchiveError

GROUP_ROWS: Final = 1_048_576
GROUP_BYTES: Final = 64 * 2**20
"""The bytes of payloads in a row group; a run has a few times as much in memory."""

_READ_ROWS: Final = 16_384
_ASCENDING: Final = {INDEX, SEQUENCE}
_FAILURES: Final = (pa.ArrowException, OSError, ValueError)


class Writer:
    """
    Writes rows into a new file.

    Args:
        file: The file, which is new; the writer closes it.
        schema: Its columns.

    """

    def __init__(self, file: BufferedWriter, schema: pa.Schema) -> None:
        """Write the beginning of the file."""
        indexed = [*_indexed(schema)]
        options: Any = {
            "compression": "zstd",
            "use_dictionary": [name for name in indexed if name not in _ASCENDING],
            "column_encoding": dict.fromkeys(_ASCENDING, "DELTA_BINARY_PACKED"),
            "write_statistics": indexed,
            "write_page_index": True,
            "write_page_checksum": True,
            "sorting_columns": [pq.SortingColumn(0)],
        }
        self._to = file
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._file = pq.ParquetWriter(file, schema, **options)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, which are written once there are enough for a row group."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._end_group()

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, even if it is incomplete."""
        with self._to:
            self._file.close()

    def close(self, metadata: dict[bytes, bytes]) -> None:
        """Complete the file, with metadata, and sync it."""
        self._end_group()
        values: Any = metadata
        self._file.add_key_value_metadata(values)
        self._file.close()
        flush_and_sync(self._to)

    def _end_group(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._file.write_table(table, row_group_size=table.num_rows)
        self._waiting.clear()
        self._rows = self._bytes = 0


def _indexed(schema: pa.Schema) -> Iterator[str]:
    """
    Yield the columns that get a minimum, a maximum and a dictionary, by which readers skip rows.

    Floats get none: a minimum and maximum ignore NaN, which Spark orders above every number, and a
    dictionary keeps -0.0 apart from 0.0, which are equal. A name with a dot may be the path of a
    field inside another column.
    """
    nested = {it.name for it in fields_of(schema) if pa.types.is_nested(it.type)}
    for field in fields_of(schema):
        paths = {*accumulate(field.name.split("."), "{}.{}".format)}
        is_plain = field.name != PAYLOAD and not pa.types.is_floating(field.type)
        if is_plain and not nested & paths:
            yield field.name


def rewrite_in(source: Path, file: BufferedWriter, metadata: dict[bytes, bytes]) -> None:
    """
    Write the rows of a file of an archive into a new file with today's layout.

    Args:
        source: The file to read.
        file: The new file, which is closed at the end.
        metadata: The metadata of the new file.

    Raises:
        ArchiveError: The file to read is damaged.

    """
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as old:
            schema = pa.schema(fields_of(old.schema_arrow))
            with Writer(file, schema) as writer:
                for group in range(old.num_row_groups):
                    for batch in old.iter_batches(_READ_ROWS, row_groups=[group]):
                        writer.write(batch.cast(schema))
                writer.close(metadata)
    except (pa.ArrowException, ValueError) as error:
        raise ArchiveError(f"the file cannot be read: file={source} ({error})") from None


def digest_in(path: Path) -> tuple[Digest, int]:
    """
    Read a whole file, and return the digest of its messages and the number of its rows.

    Raises:
        ArchiveError: The file is not a Parquet file of an archive, or is damaged.

    """
    digest, rows = Digest(), 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(_READ_ROWS, row_groups=[group]):
                    digest.add(batch)
                    rows += batch.num_rows
    except _FAILURES as error:
        raise ArchiveError(f"the file cannot be read: file={path} ({error})") from None
    return digest, rows
