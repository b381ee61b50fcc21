"""How the messages of each format are numbered, and when its cycles start."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from quire._native import (
    IndexedQueue,
    IndexedTailer,
    Queue,
    QuickQueue,
    QuickTailer,
    Tailer,
    VanillaQueue,
    VanillaTailer,
)
from quire.errors import IndexOutOfRangeError, UnsupportedError

AnyQueue: TypeAlias = Queue | VanillaQueue | QuickQueue | IndexedQueue
AnyTailer: TypeAlias = Tailer | VanillaTailer | QuickTailer | IndexedTailer

QUICK_QUEUE_STEP = 16


_DAY_MS = 86_400_000
_ONE_CYCLE = 62  # bits, so that every index of an Indexed Chronicle is of cycle 0


class Numbering(NamedTuple):
    """
    How indexes divide into cycle and sequence. In a Quick-Queue, an index page is a cycle.

    Attributes:
        bits: How many bits of an index are the sequence within its cycle.
        step: The distance from one index to the next.
        is_dense: Whether every index below the end of a cycle is that of a message.

    """

    bits: int
    step: int = 1
    is_dense: bool = True

    @classmethod
    def of(cls, queue: AnyQueue) -> Numbering:
        """Return the numbering of a queue."""
        if isinstance(queue, VanillaQueue):
            return cls(queue.entries_per_cycle.bit_length() - 1, is_dense=False)
        if isinstance(queue, QuickQueue):
            return cls(queue.page_bytes.bit_length() - 1, QUICK_QUEUE_STEP, is_dense=False)
        if isinstance(queue, IndexedQueue):
            return cls(_ONE_CYCLE, is_dense=False)
        return cls(queue.roll_cycle.to_index(1, 0).bit_length() - 1)

    def to_index(self, cycle: int, sequence: int) -> int:
        """Return the index of a message."""
        return (cycle << self.bits) + sequence * self.step

    def to_cycle(self, index: int) -> int:
        """Return the cycle of an index."""
        return index >> self.bits

    def to_sequence(self, index: int) -> int:
        """Return the sequence of an index, or of the next one where none has this value."""
        return -(-(index & ((1 << self.bits) - 1)) // self.step)


class Periods(NamedTuple):
    """When cycles start: cycle 0 at *epoch_ms*, the others *length_ms* apart unless zoned."""

    epoch_ms: int
    length_ms: int
    name: str
    zoned: Queue | None = None

    @classmethod
    def of(cls, queue: AnyQueue) -> Periods:
        """
        Return the periods of a queue's cycles.

        Raises:
            UnsupportedError: The format has no cycles.

        """
        if isinstance(queue, QuickQueue):
            raise UnsupportedError(
                "a Quick-Queue has no cycles, so no time is known without a field of the messages:"
                f" path={queue.path} (give an index, or the field)"
            )
        if isinstance(queue, IndexedQueue):
            raise UnsupportedError(
                "an Indexed Chronicle has no cycles, so no time is known without a field of the"
                f" messages: path={queue.path} (give an index, or the field)"
            )
        if isinstance(queue, VanillaQueue):
            return cls(0, queue.cycle_length_ms, queue.cycle_format)
        zoned = None if queue.roll_time_zone == "UTC" else queue
        return cls(queue.epoch_ms, queue.roll_cycle.length_ms, queue.roll_cycle.name, zoned)

    def cycle_at(self, time_ms: int) -> int:
        """Return the cycle of a time."""
        if self.zoned is not None:
            return self._zoned_cycle_at(self.zoned, time_ms)
        return (time_ms - self.epoch_ms) // self.length_ms

    def start_ms(self, cycle: int) -> int:
        """Return when a cycle starts."""
        if self.zoned is not None:
            return self.zoned.cycle_start_ms(cycle)
        return self.epoch_ms + cycle * self.length_ms

    def _zoned_cycle_at(self, queue: Queue, time_ms: int) -> int:
        try:
            return queue.cycle_at(time_ms)
        except IndexOutOfRangeError:
            return -1 if time_ms < self.start_ms(0) else 2**31


def start_options(queue: Queue) -> dict[str, Any]:
    """Return the options of a queue whose cycles start when those of another one do."""
    if queue.roll_time_zone == "UTC":
        return {"epoch_ms": queue.epoch_ms}
    days, time_ms = divmod(queue.epoch_ms, _DAY_MS)
    time = datetime.fromtimestamp(time_ms / 1000, UTC).time()
    return {
        "epoch_ms": days * _DAY_MS,
        "roll_time": time.isoformat(),
        "time_zone": queue.roll_time_zone,
    }


def tailer_of(queue: AnyQueue) -> AnyTailer:
    """Return a new tailer, at the first message."""
    if isinstance(queue, VanillaQueue):
        return VanillaTailer(queue)
    if isinstance(queue, IndexedQueue):
        return IndexedTailer(queue)
    return QuickTailer(queue) if isinstance(queue, QuickQueue) else Tailer(queue)
