"""Recording the events into a queue whose clock is the event's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

import quire
from quire.demo.events import DAY_MS, Event
from quire.demo.follow import Follower, Totals

ROLL_CYCLE: Final = "FAST_DAILY"

# A day's events fit in one block; the default would make each of the sparse files look huge.
BLOCK_BYTES: Final = 1 << 20

_ST_BLOCK_BYTES: Final = 512

# Told after each day: its date, how many events were written, what the tailer counted by then.
OnDay: TypeAlias = Callable[[str, int, Totals], None]


@dataclass(frozen=True, slots=True)
class Recording:
    """
    What was recorded.

    Attributes:
        written: Totals over what was written.
        followed: Totals that the tailer's process counted.
        write_s: Seconds from the first to the last write.
        catch_up_s: Seconds after the last write until the tailer had counted everything.
        disk_bytes: What the queue takes on disk.

    """

    written: Totals
    followed: Totals
    cycles: int
    first_index: int
    last_index: int
    write_s: float
    catch_up_s: float
    disk_bytes: int


def record(path: Path, events: Sequence[Event], on_day: OnDay) -> Recording:
    """
    Write *events*, in time order, into a new queue at *path* while a second process tails it.

    Args:
        path: A directory that does not exist or is empty.
        events: At least one.
        on_day: Called after each day.

    Raises:
        QuireError: The queue or the tailer's process failed.

    """
    clock = quire.ManualClock(events[0].time_ms)
    with (
        quire.open(path, roll_cycle=ROLL_CYCLE, block_bytes=BLOCK_BYTES, clock=clock) as queue,
        queue.appender() as appender,
        Follower(path) as follower,
    ):
        start = time.perf_counter()
        written, last_index = 0, 0
        for day, of_day in groupby(events, key=_day):
            count, last_index = _write(appender, clock, of_day)
            written += count
            on_day(_day_text(day), written, follower.poll())
        end = time.perf_counter()
        followed = follower.finish(last_index)
        return Recording(
            written=totals_of(events),
            followed=followed,
            cycles=len(queue.cycles),
            first_index=queue.first_index or 0,
            last_index=last_index,
            write_s=end - start,
            catch_up_s=time.perf_counter() - end,
            disk_bytes=disk_bytes(path),
        )


def totals_of(events: Iterable[Event]) -> Totals:
    """Return the totals over *events*, from the events themselves."""
    totals = Totals()
    for event in events:
        totals.add(event._asdict())
    return totals


def disk_bytes(folder: Path) -> int:
    """Return what the files of *folder* take on disk, holes left out."""
    return sum(
        file.stat().st_blocks * _ST_BLOCK_BYTES for file in folder.iterdir() if file.is_file()
    )


def _write(
    appender: quire.Appender, clock: quire.ManualClock, events: Iterable[Event]
) -> tuple[int, int]:
    """Append each event at its own time; return how many, and the last index."""
    count, index = 0, 0
    for event in events:
        clock.now_ms = event.time_ms
        index = appender.write_map(event._asdict())
        count += 1
    return count, index


def _day(event: Event) -> int:
    return event.time_ms // DAY_MS


def _day_text(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_MS / 1_000, UTC).date().isoformat()
