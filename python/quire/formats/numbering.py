"""How messages are numbered, and when cycles start: what each format says of an open queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from quire.errors import IndexOutOfRangeError

if TYPE_CHECKING:
    from quire._native import Queue

_DAY_MS = 86_400_000


class Numbering(NamedTuple):
    """
    What an index consists of. In a Quick-Queue, a page of the index stands for a cycle.

    Attributes:
        bits: How many bits of an index are the sequence within its cycle.
        step: The distance from one index to the next.
        is_dense: Whether every index below the end of a cycle is that of a message.

    """

    bits: int
    step: int = 1
    is_dense: bool = True

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
    """Return the settings of a queue whose cycles start when those of another one do."""
    if queue.roll_time_zone == "UTC":
        return {"epoch_ms": queue.epoch_ms, "roll_time": None, "time_zone": None}
    days, time_ms = divmod(queue.epoch_ms, _DAY_MS)
    time = datetime.fromtimestamp(time_ms / 1000, UTC).time()
    return {
        "epoch_ms": days * _DAY_MS,
        "roll_time": time.isoformat(),
        "time_zone": queue.roll_time_zone,
    }
