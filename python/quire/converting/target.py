"""The result of a conversion: a queue of one of the formats."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from quire._native import ManualClock, RollCycle
from quire.converting.mapping import Settings
from quire.converting.message_runs import Source
from quire.formats.adapters import adapter_named
from quire.formats.columns import Columns
from quire.formats.journal import JOURNAL
from quire.formats.protocols import AnyTailer
from quire.handles.base import Queue
from quire.opening.opener import OF_RESULTS, open_as
from quire.ranges.range import read_chunk

if TYPE_CHECKING:
    from quire.handles.journal.queue import JournalQueue

PARQUET: Final = "parquet"
_DAY_MS: Final = 86_400_000
_BLOCK_BYTES: Final = 64 * 2**20
_LARGEST_BLOCK: Final = 2**32  # which holds the longest message of the format


class Target(Protocol):
    """
    The destination of a conversion.

    Attributes:
        shortest: The length of the shortest message that the target can hold.
        longest: The length of the longest message that it can hold.
        keeps_indexes: Whether messages keep the indexes of the source.

    """

    shortest: int
    longest: int
    keeps_indexes: bool

    def rewind(self) -> None:
        """Go to the first message."""
        ...

    def read(self, count: int) -> Columns:
        """Return the next messages, up to *count*; empty at the end."""
        ...

    def append(self, chunk: Columns, time_ms: int) -> None:
        """Append messages to the cycle that *time_ms* lies in."""
        ...

    def finish(self) -> None:
        """Make appended messages readable."""
        ...

    def close(self) -> None:
        """Close the destination."""
        ...


class QueueTarget:
    """
    A queue that a conversion writes to.

    Args:
        path: The directory of the queue.
        settings: The settings of the conversion.
        source: The source; if both are Chronicle Queues, the result gets its epoch, wire type and
            source id.

    """

    keeps_indexes = False

    def __init__(self, path: str, settings: Settings, source: Source) -> None:
        """Open the queue, or create it."""
        self._clock = ManualClock(settings.time_ms)
        self._adapter = adapter_named(settings.into)
        self._path = path
        self._opened_with = self._options(settings, source)
        self._queue: Queue = open_as(settings.into, path, **self._opened_with)
        self._appender: Any = None
        self._tailer: AnyTailer | None = None
        self.shortest = self._adapter.shortest
        block_bytes: int = getattr(self._queue, "block_bytes", settings.block_bytes or _BLOCK_BYTES)
        self._grows = settings.block_bytes is None and self._adapter is JOURNAL
        self.longest = self._adapter.longest(_LARGEST_BLOCK if self._grows else block_bytes)

    def _options(self, settings: Settings, source: Source) -> dict[str, Any]:
        options: dict[str, Any] = {**OF_RESULTS}
        if self._adapter is source.adapter and self._adapter.is_wire:
            options |= self._adapter.options_like(source.queue)
        if settings.block_bytes is not None:
            options[self._adapter.block_option] = settings.block_bytes
        if not self._adapter.has_cycles:
            return options
        kept: RollCycle | None = options.get("roll_cycle")  # perhaps not one of Chronicle's
        is_kept = kept is not None and kept.name == settings.roll_cycle
        return options | {
            "roll_cycle": kept if is_kept else settings.roll_cycle,
            "clock": self._clock,
        }

    def rewind(self) -> None:
        """Go to the first message."""
        if self._tailer is not None:
            self._tailer.close()
        self._tailer = self._queue.tailer()

    def read(self, count: int) -> Columns:
        """Return the next messages, up to *count*; empty at the end."""
        return Columns.empty() if self._tailer is None else read_chunk(self._tailer, count)

    def append(self, chunk: Columns, time_ms: int) -> None:
        """Append messages to the cycle that *time_ms* lies in."""
        self._clock.now_ms = time_ms
        if self._grows:
            self._make_room(chunk)
        if self._appender is None:
            self._appender = self._queue.appender()
        self._adapter.write(self._appender, chunk)

    def _make_room(self, chunk: Columns) -> None:
        """Open the queue with larger blocks if its blocks are too small for a message."""
        block_bytes = cast("JournalQueue", self._queue).block_bytes
        if len(chunk.data) <= self._adapter.longest(block_bytes):
            return
        longest = max(past - first for first, past in pairwise(chunk.offsets))
        needed = JOURNAL.block_for(longest, block_bytes)
        if needed > block_bytes:
            self._queue.close()
            self._opened_with["block_bytes"] = needed
            self._queue = open_as(self._adapter.name, self._path, **self._opened_with)
            self._appender = self._tailer = None

    def finish(self) -> None:
        """Do nothing: messages are read as soon as they are written."""

    def close(self) -> None:
        """Close the queue and its handles."""
        self._queue.close()


def has_cycles(into: str) -> bool:
    """Return whether a result is divided into cycles."""
    return into != PARQUET and adapter_named(into).has_cycles


def roll_cycle_for(into: str, source: Source) -> str | None:
    """Return the default roll cycle of a result; None for formats without cycles."""
    if not has_cycles(into):
        return None
    adapter = adapter_named(into)
    if adapter is source.adapter and adapter.is_wire:
        kept: RollCycle = adapter.options_like(source.queue)["roll_cycle"]
        return kept.name
    known = adapter.roll_cycles
    return known.get(source.cycle_length_ms or _DAY_MS, known[_DAY_MS])


def step_of(into: str, source: Source) -> int:
    """Return the distance from one index of a result to the next."""
    return source.step if into == PARQUET else adapter_named(into).step
