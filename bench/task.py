"""What one process is asked to measure, the messages it uses, and what it answers."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

DISTINCT = 1000
"""So many different messages there are; they come in turn. Bulk calls take so many at a time."""
BLOCK_BYTES = 64 << 20
ROLL_CYCLE = "FAST_DAILY"
START_MS = 1_700_000_000_000
"""The clock of every measured queue stands still here, so that none rolls."""


class Missing(Exception):  # noqa: N818 - a reason to skip a system, not a failure
    """A system cannot run here; the text says what it lacks."""


@dataclass(frozen=True, slots=True)
class Task:
    """One measurement. Counts are multiples of ``DISTINCT``."""

    system: str
    operation: str
    directory: str
    size: int
    count: int
    warm_up: int
    rate: int = 0
    out: str = ""
    writer: int = 0
    duration_ms: int = 0
    """Longer than zero: append for so long beside other writers, and not a count."""
    roll_cycle: str = ROLL_CYCLE
    block_bytes: int = BLOCK_BYTES
    start_ms: int = START_MS

    @property
    def queue(self) -> Path:
        """Where the queue lies, or any other file of the measured system."""
        return Path(self.directory) / "queue"

    @property
    def total(self) -> int:
        """Messages of the warm-up and of the measured part."""
        return self.warm_up + self.count

    def to_json(self) -> str:
        """Return it as the worker's argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """Read the worker's argument."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How long the measured part took, and what it handled."""

    nanos: int
    cpu_nanos: int | None
    """CPU time of the process that ran the loop; None where more than one did the work."""
    count: int
    checksum: int

    def to_json(self) -> str:
        """Return it as the worker's last line."""
        return json.dumps(asdict(self))


def messages(size: int, writer: int | None = None) -> list[bytes]:
    """Return the distinct messages: number as i64, writer as i64 if any, then each byte's place."""
    head = b"" if writer is None else writer.to_bytes(8, "little")
    rest = head + bytes(place & 0xFF for place in range(8 + len(head), size))
    return [number.to_bytes(8, "little") + rest for number in range(DISTINCT)]


def checksum(count: int) -> int:
    """Return the sum of the numbers of *count* messages in turn."""
    assert count % DISTINCT == 0
    return count // DISTINCT * (DISTINCT * (DISTINCT - 1) // 2)


class Stopwatch:
    """Measures its block: time, and CPU time of this process, in nanoseconds."""

    nanos = 0
    cpu_nanos = 0

    def __enter__(self) -> Self:
        """Start."""
        self._begin = time.process_time_ns(), time.monotonic_ns()
        return self

    def __exit__(self, *raised: object) -> None:
        """Stop."""
        end = time.monotonic_ns(), time.process_time_ns()
        self.nanos, self.cpu_nanos = end[0] - self._begin[1], end[1] - self._begin[0]
