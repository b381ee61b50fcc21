"""
Staged messages of an encrypted queue: each part is encrypted with its own random key.

A task may run on a machine without the queue's directory, so it cannot use the queue's data keys.
The key of its part is wrapped with the key that the task finds on its own machine, and stored in
the part. It is bound to the number in the part's name, so that no part can replace another; each
batch in the part is bound to its position, and the last batch is empty, so that truncation is
noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from quire._native import Cipher, wrap_new_key
from quire.errors import EncryptionError
from quire.sealed.key_ring import KeyRing

_NUMBER: Final = 1
_WRAPPED: Final = b"quire.key"
_WRAPPED_BY: Final = b"quire.wrapped_by"
_SEALED: Final = pa.schema([pa.field("sealed", pa.large_binary(), nullable=False)])


class PartSealer:
    """Encrypts the batches of a new part."""

    def __init__(self, part: bytes, ring: KeyRing) -> None:
        """Create the key for a part, whose number has 16 bytes."""
        wrapped = wrap_new_key(ring.current_key, part, _NUMBER)
        records = [(_NUMBER, wrapped, [ring.current_key])]
        self._cipher: Final = Cipher(part, records, current=_NUMBER)
        self._count = 0
        self.schema: Final = _SEALED.with_metadata(
            {_WRAPPED: wrapped.hex(), _WRAPPED_BY: ring.current}
        )

    @property
    def overhead(self) -> int:
        """How many bytes longer messages are in an encrypted queue."""
        return len(self._cipher.seal_staged(0, b""))

    def sealed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the next batch in encrypted form."""
        self._count += 1
        return self._stored(self._count, batch.serialize().to_pybytes())

    def end(self) -> pa.RecordBatch:
        """Return the empty batch to store at the end."""
        return self._stored(-self._count, b"")

    def _stored(self, number: int, plain: bytes) -> pa.RecordBatch:
        column = pa.array([self._cipher.seal_staged(number, plain)], pa.large_binary())
        return pa.RecordBatch.from_arrays([column], schema=self.schema)


class SealedPart:
    """An encrypted part, checked to be complete."""

    def __init__(self, arrow: Any, file: Path, part: bytes, ring: KeyRing) -> None:  # noqa: ANN401 - a file of Arrow
        """
        Open the key of the part, and check that its end exists.

        Raises:
            EncryptionError: No key of *ring* opens the part.
            ValueError: *arrow* is not an encrypted part.

        """
        self._arrow, self._file = arrow, file
        if not arrow.schema.equals(_SEALED) or not arrow.num_record_batches:
            raise self._refused
        found: dict[bytes, bytes] = arrow.schema.metadata or {}
        name = found.get(_WRAPPED_BY, b"").decode("utf-8", "replace")
        try:
            wrapped = bytes.fromhex(found.get(_WRAPPED, b"").decode("ascii"))
        except ValueError:
            raise self._refused from None
        self._cipher: Final = Cipher(part, [(_NUMBER, wrapped, ring.candidates(name))])
        if not self._cipher.numbers:
            raise EncryptionError(
                f"none of the keys opens a staged file: file={file} keys={ring.names}"
                f" wrapped_by={name!r:.80} (use the key that the tasks of the write had)"
            )
        self._count: Final[int] = arrow.num_record_batches - 1
        if self._opened(self._count, -self._count):
            raise self._refused

    @property
    def _refused(self) -> ValueError:
        return ValueError(f"not a file that a task staged with this key: file={self._file}")

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """
        Yield the batches as they were staged.

        Raises:
            ValueError: A batch is not one that the task staged.

        """
        for place in range(self._count):
            plain = self._opened(place, place + 1)
            yield pa.ipc.read_record_batch(pa.py_buffer(plain), schema)

    def _opened(self, place: int, number: int) -> bytes:
        stored = self._arrow.get_batch(place)
        stored.validate(full=True)
        if len(stored) != 1:
            raise self._refused
        try:
            return self._cipher.open_staged(number, stored.column(0)[0].as_py())
        except EncryptionError:
            raise self._refused from None
