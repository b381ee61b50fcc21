"""A digest of messages that does not depend on how they are batched."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from quire.arrow.names import INDEX, PAYLOAD
from quire.errors import ArchiveError

_INDEX_BYTES: Final = 8
_COMPUTE: Any = pc  # its functions are made when it is imported


class Digest:
    """
    Summarises a range of messages: count, first and last index, and a SHA-256.

    The SHA-256 is of three concatenated hashes: of all indexes (8 bytes each, little endian), of
    all lengths (likewise), and of all payloads.
    """

    def __init__(self) -> None:
        """Start with no messages."""
        self.messages = 0
        self.payload_bytes = 0
        self.first_index: int | None = None
        self.last_index: int | None = None
        self._hashes = [hashlib.sha256() for _ in range(3)]

    def add(self, batch: Any) -> None:  # noqa: ANN401 - pyarrow-stubs leave columns open
        """
        Add rows; consecutive rows with the same index are one message.

        Args:
            batch: A record batch with the columns ``_index`` and ``payload``.

        Raises:
            ArchiveError: Indexes do not ascend, or a payload is missing.

        """
        indexes, payloads = batch.column(INDEX), batch.column(PAYLOAD)
        if indexes.null_count or payloads.null_count:
            raise ArchiveError(f"a row has no index or no payload: after={self.last_index}")
        indexes, payloads = self._once(indexes, payloads)
        if not len(indexes):
            return
        if self.first_index is None:
            self.first_index = indexes[0].as_py()
        self.last_index = indexes[-1].as_py()
        self.messages += len(indexes)
        lengths = _COMPUTE.binary_length(payloads).cast(pa.int64())
        data = _bytes_of(payloads)
        self.payload_bytes += len(data)
        for hashed, part in zip(
            self._hashes, (_numbers_of(indexes), _numbers_of(lengths), data), strict=True
        ):
            hashed.update(part)

    @property
    def hex(self) -> str:
        """The SHA-256 so far, as 64 hexadecimal digits."""
        return hashlib.sha256(b"".join(part.digest() for part in self._hashes)).hexdigest()

    def _once(self, indexes: Any, payloads: Any) -> tuple[Any, Any]:  # noqa: ANN401 - as above
        """Drop further rows of the same message."""
        last = pa.array([self.last_index], pa.int64())
        before: Any = pa.concat_arrays([last, indexes.slice(0, len(indexes) - 1)])
        steps = _COMPUTE.coalesce(_COMPUTE.subtract(indexes, before), 1)
        smallest = _COMPUTE.min(steps).as_py()
        if smallest < 0:
            raise ArchiveError(f"indexes do not ascend: after={self.last_index}")
        if smallest:
            return indexes, payloads
        mask = _COMPUTE.greater(steps, 0)
        return indexes.filter(mask), payloads.filter(mask)


def sha256_of(path: Path) -> str:
    """Return the digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _numbers_of(numbers: Any) -> memoryview:  # noqa: ANN401 - as above
    start, length = numbers.offset * _INDEX_BYTES, len(numbers) * _INDEX_BYTES
    return memoryview(numbers.buffers()[1])[start : start + length]


def _bytes_of(payloads: Any) -> memoryview:  # noqa: ANN401 - as above
    _, offsets, data = payloads.buffers()
    form: Literal["q", "i"] = "q" if pa.types.is_large_binary(payloads.type) else "i"
    places: Any = memoryview(offsets).cast("B").cast(form)
    start, end = places[payloads.offset], places[payloads.offset + len(payloads)]
    return memoryview(b"" if data is None else data)[start:end]
