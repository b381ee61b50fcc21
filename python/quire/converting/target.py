"""What a conversion writes: a queue of one of the formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from quire._formats import CHRONICLE, QUICK_QUEUE, VANILLA
from quire._native import ManualClock
from quire.converting.mapping import Settings
from quire.converting.message_runs import Source
from quire.opening.opener import open as open_queue
from quire.ranges.numbering import QUICK_QUEUE_STEP, start_options
from quire.ranges.range import Chunk, read_chunk

PARQUET: Final = "parquet"
ROLL_CYCLES: Final[dict[str, dict[int, str]]] = {
    CHRONICLE: {
        1_000: "TEST_SECONDLY",
        60_000: "MINUTELY",
        300_000: "FIVE_MINUTELY",
        600_000: "TEN_MINUTELY",
        1_200_000: "TWENTY_MINUTELY",
        1_800_000: "HALF_HOURLY",
        3_600_000: "FAST_HOURLY",
        7_200_000: "TWO_HOURLY",
        14_400_000: "FOUR_HOURLY",
        21_600_000: "SIX_HOURLY",
        86_400_000: "FAST_DAILY",
        604_800_000: "WEEKLY",
    },
    # Not WEEKS: directories of weeks have the names of days, which readers would take them for.
    VANILLA: {1_000: "SECONDS", 60_000: "MINUTES", 3_600_000: "HOURS", 86_400_000: "DAYS"},
}
"""The roll cycle of a result whose source has cycles of this length."""

_DAY_MS: Final = 86_400_000
_BLOCK_BYTES: Final = 64 * 2**20
_SHORTEST_OVERLAP: Final = 65_536
_CHRONICLE_LIMIT: Final = 2**30 - 1
_OPTION: Final = {
    CHRONICLE: "block_bytes",
    VANILLA: "data_block_bytes",
    QUICK_QUEUE: "page_bytes",
}


class Target(Protocol):
    """
    The destination of a conversion.

    Attributes:
        shortest: The length of the shortest message that it holds.
        longest: That of the longest one.
        keeps_indexes: Whether messages keep the indexes of the source.

    """

    shortest: int
    longest: int
    keeps_indexes: bool

    def rewind(self) -> None:
        """Read from the first message on."""
        ...

    def read(self, count: int) -> Chunk:
        """Return the next messages, up to *count*; empty at the end."""
        ...

    def append(self, chunk: Chunk, time_ms: int) -> None:
        """Append messages, to the cycle of a time."""
        ...

    def finish(self) -> None:
        """Let what was appended be read."""
        ...

    def close(self) -> None:
        """Close the destination."""
        ...


class QueueTarget:
    """
    A queue that a conversion writes to.

    Args:
        path: Its directory.
        settings: How the conversion was set up.
        source: The source, whose epoch, wire type and source id a Chronicle Queue takes over.

    """

    keeps_indexes = False

    def __init__(self, path: str, settings: Settings, source: Source) -> None:
        """Open the queue, or create it."""
        self._clock = ManualClock(settings.time_ms)
        kind, options = settings.into, self._options(settings, source)
        open_any = cast("Callable[..., Any]", open_queue)
        self._queue = open_any(path, format=kind, **options)
        self._more: dict[str, bool] = {"text": False} if kind == CHRONICLE else {}
        self._appender: Any = None
        self._tailer: Any = None
        self.shortest = 0 if kind == VANILLA else 1
        self.longest = self._longest(kind, settings.block_bytes or _BLOCK_BYTES)

    def _options(self, settings: Settings, source: Source) -> dict[str, Any]:
        options: dict[str, Any] = {"buffer_mode": "none"}  # the clock is set for each cycle
        if settings.block_bytes is not None:
            options[_OPTION[settings.into]] = settings.block_bytes
        if settings.into != QUICK_QUEUE:
            options |= {"roll_cycle": settings.roll_cycle, "clock": self._clock}
        if settings.into == source.format == CHRONICLE:
            queue = source.queue
            options |= {**start_options(queue), "source_id": queue.source_id}
            options["wire_type"] = queue.wire_type
            if settings.roll_cycle == queue.roll_cycle.name:
                options["roll_cycle"] = queue.roll_cycle  # perhaps not one of Chronicle's
        return options

    def _longest(self, kind: str, block_bytes: int) -> int:
        """Return the length of the longest message that the queue holds."""
        if kind == CHRONICLE:
            overlap = max(int(self._queue.block_bytes) // 4, _SHORTEST_OVERLAP)
            return min(overlap, _CHRONICLE_LIMIT)
        if kind == VANILLA:
            return min(block_bytes - 4, 2**30 - 1)
        return 2**31 - 1

    def rewind(self) -> None:
        """Read from the first message on."""
        if self._tailer is not None:
            self._tailer.close()
        self._tailer = self._queue.tailer()

    def read(self, count: int) -> Chunk:
        """Return the next messages, up to *count*; empty at the end."""
        return read_chunk(self._tailer, count)

    def append(self, chunk: Chunk, time_ms: int) -> None:
        """Append messages, to the cycle of a time."""
        self._clock.now_ms = time_ms
        if self._appender is None:
            self._appender = self._queue.appender()
        self._appender._write_column(  # noqa: SLF001 - the package's own
            chunk.offsets, chunk.data, count=len(chunk), start=0, wide=False, **self._more
        )

    def finish(self) -> None:
        """Do nothing: messages are read as soon as they are written."""

    def close(self) -> None:
        """Close the queue and its handles."""
        self._queue.close()


def roll_cycle_for(into: str, source: Source) -> str | None:
    """Return the default roll cycle of a result; None for formats without cycles."""
    if into not in ROLL_CYCLES:
        return None
    if into == source.format == CHRONICLE:
        return source.queue.roll_cycle.name
    known = ROLL_CYCLES[into]
    return known.get(source.cycle_length_ms or _DAY_MS, known[_DAY_MS])


def step_of(into: str, source: Source) -> int:
    """Return the distance from one index of a result to the next."""
    if into == PARQUET:
        return source.step
    return QUICK_QUEUE_STEP if into == QUICK_QUEUE else 1
