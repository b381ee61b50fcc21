"""What the tailers of every format share: waiting for messages, and batches of payloads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from quire._common import arguments
from quire._common.optional_arrow import need_arrow
from quire.errors import WaitTimeoutError
from quire.pausers import TURN_S, Pauser

if TYPE_CHECKING:
    import pyarrow as pa

    from quire._native import Buffer, Column, Plan, Table

_NO_END = 2**63 - 1

_E_co = TypeVar("_E_co", covariant=True)
_T = TypeVar("_T")


class Following(Generic[_E_co]):
    """Waiting for messages on top of a native tailer, whose messages are of the type ``_E_co``."""

    if TYPE_CHECKING:

        @property
        def index(self) -> int: ...
        def __iter__(self) -> Self: ...
        def __next__(self) -> _E_co: ...
        def read(self) -> _E_co | None: ...
        def _prepare(self) -> bool | None: ...
        def _read_columns(
            self, count: int, /, *, max_bytes: int | None = None, end: int = ...
        ) -> tuple[int, Buffer, Buffer, Buffer]: ...
        def _read_decoded(  # noqa: PLR0913 - those of the kernel
            self,
            plan: Plan,
            count: int,
            *,
            max_bytes: int,
            keep_misfits: bool = ...,
            layout: str = ...,
            end: int,
            payload: bool = ...,
            topic: str | None = ...,
        ) -> tuple[int, list[Table], Column | None, Column | None]: ...

    def follow(
        self, timeout_s: float | None = None, *, pauser: Pauser | None = None
    ) -> Iterator[_E_co]:
        """
        Iterate over messages and wait for more.

        Args:
            timeout_s: End when nothing came for this many seconds; None: never end.
            pauser: How to wait, from :mod:`quire.pausers`; its own timeout ends it too.

        Examples:
            >>> _ = appender.write_many([b"one", b"two"])
            >>> for message in tailer.follow(timeout_s=0.01):
            ...     print(message.data)
            b'one'
            b'two'

        """
        pauser = pauser_of(pauser)
        while True:
            for excerpt in self:  # noqa: UP028 - `yield from` would close the tailer with the loop
                yield excerpt
            try:
                self.wait(timeout_s, pauser=pauser)
            except WaitTimeoutError:
                return

    def wait(self, timeout_s: float | None = None, *, pauser: Pauser | None = None) -> None:
        """
        Return when there is a message to read; it is not read, and what was received is done.

        Args:
            timeout_s: Wait at most this many seconds; None: for ever.
            pauser: How to wait, from :mod:`quire.pausers`; it is reset first.

        Raises:
            WaitTimeoutError: No message arrived within *timeout_s* seconds.

        Examples:
            >>> _ = appender.write_text("hello")
            >>> tailer.wait(timeout_s=10)
            >>> tailer.read_text()
            'hello'

        """
        if timeout_s is not None:
            arguments.seconds("timeout_s", timeout_s)
        pauser = pauser_of(pauser)
        pauser.reset()
        while not self._prepare():
            try:
                pauser.pause(timeout_s)
            except WaitTimeoutError as nothing:
                raise WaitTimeoutError(f"{nothing} index={self.index:#x}") from None
        pauser.reset()

    def __aiter__(self) -> AsyncIterator[_E_co]:
        """Iterate over messages and wait for more, without holding up the event loop."""
        return self.follow_async()

    def follow_async(self, *, pauser: Pauser | None = None) -> AsyncIterator[_E_co]:
        """
        As ``async for excerpt in tailer``, which never ends, waiting as *pauser* does.

        The loop's other tasks run every few milliseconds, also while there is a backlog.

        Args:
            pauser: One of :mod:`quire.pausers`.

        Examples:
            >>> import asyncio
            >>> async def first(tailer):
            ...     async for message in tailer.follow_async():
            ...         return message.data
            >>> _ = appender.write_bytes(b"one")
            >>> asyncio.run(first(tailer))
            b'one'

        """
        return poll_async(self._prepare, self.read, pauser_of(pauser))

    def _repr_html_(self) -> str:
        from quire._common.notebook_table import of_facts

        return of_facts(repr(self))

    def _payload_batch(self, count: int, max_bytes: int, end: int = _NO_END) -> pa.RecordBatch:
        """Return the next messages before the index *end*."""
        need_arrow()
        import pyarrow as pa

        rows, *buffers = self._read_columns(count, max_bytes=max_bytes, end=end)
        index, offsets, data = map(pa.py_buffer, buffers)
        columns: list[pa.Array[Any]] = [
            pa.Array.from_buffers(pa.uint64(), rows, [None, index]),
            pa.Array.from_buffers(pa.binary(), rows, [None, offsets, data]),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["index", "payload"])


async def poll_async(
    prepare: Callable[[], bool | None], read: Callable[[], _T | None], pauser: Pauser
) -> AsyncIterator[_T]:
    """
    Yield what *read* returns, and let the loop's other tasks run every few milliseconds.

    Args:
        prepare: Whether a read would return something without waiting; None: look again.
        read: Returns the next message; None if there is none yet.
        pauser: How to wait for more.

    """
    import asyncio

    turn_ends = monotonic() + TURN_S
    while True:
        # A scan for sub-topics may take long: it pauses, and goes on after the other tasks.
        # Nor does it wait within a read, as it would after a file without end-of-file marker.
        while (is_ready := prepare()) is None:  # noqa: ASYNC110 - nobody else knows
            await asyncio.sleep(0)
        found = read() if is_ready else None
        if found is None:
            await pauser.pause_async()
        else:
            # Nothing before the caller has it: what was read is delivered.
            yield found
            pauser.reset()
            if monotonic() < turn_ends:
                continue
            await asyncio.sleep(0)
        turn_ends = monotonic() + TURN_S


def pauser_of(given: Pauser | None) -> Pauser:
    """Return the pauser that was given, or one that sleeps for at most a millisecond."""
    if given is None:
        return Pauser(yield_count=100, min_s=0.000_05, max_s=0.001)
    if not hasattr(given, "pause"):
        raise arguments.refusal("pauser", "one of quire.pausers", given)
    return given
