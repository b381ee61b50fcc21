"""A tailer for ranges of a remote queue, whose messages come by Arrow Flight."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from quire.errors import RefusedError
from quire.formats.columns import Columns
from quire.remote.flight_client import FlightPlace, batches_of, raising
from quire.remote.tailer import RemoteTailer

if TYPE_CHECKING:
    from quire.remote.link import RemoteLink

_INDEX: Final[Any] = pa.uint64()
_PAYLOAD: Final[Any] = pa.binary()


class FlightTailer(RemoteTailer):
    """
    Reads the messages before an index, which the server sends as columns without decoding them.

    Args:
        queue: The open queue.
        handle: The handle of the queue, for searches.
        place: The server's Flight address.
        past: The index after the last message.

    """

    def __init__(self, queue: RemoteLink, handle: Any, place: FlightPlace, past: int) -> None:  # noqa: ANN401
        super().__init__(queue, handle)
        self._place, self._past = place, past
        self._batches: Iterator[pa.RecordBatch] | None = None

    def close(self) -> None:
        """Close it; a stream that was not read to its end is cancelled. Idempotent."""
        self._stop()
        super().close()

    def _stop(self) -> None:
        found, self._batches = self._batches, None
        if found is not None:
            found.close()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]

    def _go(self, index: int) -> None:
        is_here = self._batches is not None and self._at < self._count and self.index == index
        if not is_here:
            self._stop()
            super()._go(index)

    def _fill(self) -> bool:
        self._check_open()
        if self._at < self._count:
            return True
        if self._position >= self._past:
            return False
        if self._batches is None:
            asked = {"queue": self._topic_name, "from": self._position, "to": self._past}
            self._batches = batches_of(self._place, json.dumps(asked))
        with raising(self.path):
            for batch in self._batches:
                if batch.num_rows:
                    return self._take_batch(batch)
        self._stop()
        return False

    def _take_batch(self, batch: pa.RecordBatch) -> bool:
        columns = cast("list[Any]", batch.columns)
        kinds = [it.type for it in columns]
        if kinds != [_INDEX, _PAYLOAD] or any(it.null_count for it in columns):
            raise RefusedError(f"the server sent unexpected columns: {batch.schema.names}")
        index, payload = columns
        first, rows = payload.offset, batch.num_rows
        _, indexes = index.buffers()
        _, offsets, data = payload.buffers()
        found = Columns.of(
            memoryview(indexes)[8 * index.offset :][: 8 * rows],
            memoryview(offsets)[4 * first :][: 4 * (rows + 1)],
            memoryview(data if data is not None else b""),
        )
        self._columns, self._offsets = found, found.offsets
        self._at, self._count = 0, rows
        self._position = found.indexes[-1] + 1
        return True
