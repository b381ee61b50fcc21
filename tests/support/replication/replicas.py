"""What tests of replication share: the layout that a source sends, and waiting for copies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import quire
from queues import DAY_MS, START_MS
from quire.opening.opener import open_without_key
from quire.replication import Sink, Source

HANG_S = 120.0
WAIT_S = 60.0
Message = tuple[int, bytes]
NUMBERED = 4096  # what TEST4_DAILY can number: indexes have 32 bits for it
LAYOUT: Mapping[str, Any] = {
    "roll_cycle": "TEST4_DAILY",
    "pattern": "yyyyMMdd'T4'",
    "length_ms": DAY_MS,
    "sequences": NUMBERED,
    "epoch_ms": 0,
    "time_zone": "UTC",
    "wire_type": "BINARY_LIGHT",
    "source_id": 0,
    "block_bytes": 1 << 16,
    "index_count": 32,
    "index_spacing": 4,
}


def wait_until(is_so: Callable[[], bool], *, limit_s: float = HANG_S) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def last_index(path: Path) -> int:
    """Return the index of a copy's last message; -1 while there is none, or no queue yet."""
    if not (path / "metadata.cq4t").exists():
        return -1
    with open_without_key(path, read_only=True, create=False) as copy:
        found: int | None = copy.last_index
        return -1 if found is None else found


def messages(path: Path, key: bytes | None = None) -> list[Message]:
    with quire.open(path, read_only=True, key=key) as queue, queue.tailer() as tailer:
        return [(it.index, it.data) for it in tailer]


def days_of_messages(path: Path, days: int) -> None:
    """Make the queue of a source, of several cycles that have ended."""
    clock = quire.ManualClock(START_MS)
    with quire.open(path, roll_cycle="TEST4_DAILY", block_bytes=1 << 16, clock=clock) as queue:
        for day in range(days):
            queue.appender().write_many([b"%d.%d" % (day, it) for it in range(20)])
            clock.advance(DAY_MS)


def replicate(
    origin: Path,
    copy: Path,
    *,
    repair: bool = False,
    key: bytes | quire.KeyRing | None = None,
    acknowledge: Literal["stored", "synced"] = "stored",
) -> None:
    """Run a source and a sink until the copy has everything."""

    async def work() -> None:
        with quire.open(origin, key=key, block_bytes=1 << 16) as queue:
            last = queue.last_index
            assert last is not None
            async with (
                Source(queue) as source,
                Sink(
                    copy,
                    port=source.address[1],
                    reconnect_s=0.01,
                    repair=repair,
                    acknowledge=acknowledge,
                ) as sink,
            ):
                await asyncio.wait_for(sink.stored(last), WAIT_S)

    asyncio.run(work())
