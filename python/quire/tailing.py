"""Tailers: waiting for messages, and Arrow batches, on top of the native one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from quire import _native
from quire._native import Excerpt
from quire.errors import WaitTimeoutError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_COUNT = 65_536
_YIELDS = 100
_FIRST_PAUSE_S = 0.000_05
_LONGEST_PAUSE_S = 0.001


class Tailer(_native.Tailer):
    """Reads messages of a queue, from :meth:`quire.Queue.tailer`."""

    def follow(self, timeout_s: float | None = None) -> Iterator[Excerpt]:
        """
        Iterate over messages and wait for more.

        Args:
            timeout_s: End when nothing came for so many seconds; None: never end.

        """
        while True:
            for excerpt in self:  # noqa: UP028 - `yield from` would close the tailer with the loop
                yield excerpt
            try:
                self.wait(timeout_s)
            except WaitTimeoutError:
                return

    def wait(self, timeout_s: float | None = None) -> None:
        """
        Return when there is a message to read; it is not read, and what was received is done.

        Args:
            timeout_s: Wait at most so many seconds; None: for ever.

        Raises:
            WaitTimeoutError: Nothing came.

        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for pause_s in _pauses():
            if self._has_next():
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeoutError(f"no message came: timeout_s={timeout_s} index={self.index}")
            time.sleep(pause_s)

    async def __aiter__(self) -> AsyncIterator[Excerpt]:
        """Iterate over messages and wait for more, without holding up the event loop."""
        pauses = _pauses()
        while True:
            excerpt = self.read()
            if excerpt is None:
                await asyncio.sleep(next(pauses))
            else:
                pauses = _pauses()
                yield excerpt

    def read_batch(self, count: int = _BATCH_COUNT) -> pa.RecordBatch:
        """
        Return at most *count* messages as columns ``index`` (uint64) and ``payload`` (binary).

        No Python object is made per message. The batch is empty when nothing is there yet, and
        smaller than asked for when its payloads would pass 2 GiB. For a named tailer it is finished
        when the next one is asked for.
        """
        import pyarrow as pa

        rows, *buffers = self.read_columns(count)
        index, offsets, data = map(pa.py_buffer, buffers)
        columns: list[pa.Array[Any]] = [
            pa.Array.from_buffers(pa.uint64(), rows, [None, index]),
            pa.Array.from_buffers(pa.binary(), rows, [None, offsets, data]),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["index", "payload"])

    def _has_next(self) -> bool:
        document = self.reading_document()
        document.rollback_on_close()
        document.close()
        return document.is_present


def _pauses() -> Iterator[float]:
    """Yield what to sleep between two looks: first just let others run, then longer and longer."""
    for _ in range(_YIELDS):
        yield 0.0
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
