"""Recording the events into a queue whose clock is the event's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

import quire
from demo.events import DAY_MS, Event, date_of
from demo.follow import TIMED_EVERY, Follower, Totals
from demo.journal import Journal, ServedJournal
from quire.metrics import Metrics

_ST_BLOCK_BYTES: Final = 512

# Reported after each day: its date, how many events were written, what the tailer counted by then.
OnDay: TypeAlias = Callable[[str, int, Totals], None]


@dataclass(frozen=True, slots=True)
class Recording:
    """
    What was recorded.

    Attributes:
        journal: Where.
        written: Totals over what was written.
        followed: Totals that the tailer's process counted.
        write_s: Seconds from the first to the last write.
        catch_up_s: Seconds after the last write until the tailer had counted everything.
        disk_bytes: What the queue takes on disk.
        messages: Messages by the UTC day of their cycle.
        timed: When each timed message was appended, in seconds since the first one, and the seconds
            until the tailer's process had it.
        metrics: What both processes counted; empty where the format counts nothing.
        replicated: How many of the events came to this journal by replication.

    """

    journal: Journal
    written: Totals
    followed: Totals
    first_index: int
    last_index: int
    write_s: float
    catch_up_s: float
    disk_bytes: int
    messages: dict[date, int]
    timed: list[tuple[float, float]]
    metrics: Metrics
    replicated: int = 0


def record(journal: Journal, events: Sequence[Event], on_day: OnDay) -> Recording:
    """
    Write *events*, in time order, into a new queue while a second process tails it.

    Args:
        journal: A directory that does not exist or is empty.
        events: At least one.
        on_day: Called after each day.

    Raises:
        QuireError: The queue or the tailer's process failed.

    """
    clock = quire.ManualClock(events[0].time_ms)
    with (
        journal.create(clock) as queue,
        queue.appender() as appender,
        Follower(journal) as follower,
    ):
        is_served = isinstance(journal, ServedJournal)
        writer = (ServedWriter if is_served else Writer)(journal, appender, clock)
        start = time.perf_counter()
        messages: dict[date, int] = {}
        for day, of_day in groupby(events, key=_day):
            date_of_day = date_of(day)
            messages[date_of_day] = writer.write(of_day)
            on_day(date_of_day.isoformat(), writer.count, follower.poll())
        end = time.perf_counter()
        followed = follower.finish(writer.last_index)
        caught_up = time.perf_counter()
        return Recording(
            journal=journal,
            written=totals_of(events),
            followed=followed,
            first_index=queue.first_index or 0,
            last_index=writer.last_index,
            write_s=end - start,
            catch_up_s=caught_up - end,
            disk_bytes=disk_bytes(journal.path),
            messages=messages,
            timed=timed(writer.written_ns, follower.read_ns),
            metrics=journal.metrics(queue),
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
        file.stat().st_blocks * _ST_BLOCK_BYTES for file in folder.rglob("*") if file.is_file()
    )


class Writer:
    """Appends each event at its own time; *first* of them are in the journal already."""

    def __init__(
        self,
        journal: Journal,
        appender: quire.Appender,
        clock: quire.ManualClock,
        first: int = 0,
    ) -> None:
        self._journal = journal
        self._appender = appender
        self._clock = clock
        self.count = first
        self.last_index = 0
        self.written_ns: dict[int, int] = {}  # by the number of the event

    def write(self, events: Iterable[Event]) -> int:
        """Append *events* and return how many they were."""
        before = self.count
        for event in events:
            self._clock.now_ms = event.time_ms
            if self.count % TIMED_EVERY == 0:
                self.written_ns[self.count] = time.monotonic_ns()
            self.last_index = self._journal.write(self._appender, event._asdict())
            self.count += 1
        return self.count - before


class ServedWriter(Writer):
    """Appends the events of a day together: each command to a server has many."""

    def write(self, events: Iterable[Event]) -> int:
        """Append *events*, at least one, and return how many they were."""
        found, before = [*events], self.count
        begun_ns = time.monotonic_ns()
        numbers = range(before, before + len(found))
        self.written_ns |= {it: begun_ns for it in numbers if it % TIMED_EVERY == 0}
        assert isinstance(self._journal, ServedJournal)  # noqa: S101 - what it is made for
        rows = (event._asdict() for event in found)
        self.last_index = self._journal.write_all(self._appender, rows)
        self.count += len(found)
        return len(found)


def timed(written_ns: Mapping[int, int], read_ns: Sequence[int]) -> list[tuple[float, float]]:
    """Return when each timed event was appended, and the seconds until it was read."""
    begin = min(written_ns.values())
    read = {place * TIMED_EVERY: time_ns for place, time_ns in enumerate(read_ns)}
    return [
        ((time_ns - begin) / 1e9, (read[number] - time_ns) / 1e9)
        for number, time_ns in sorted(written_ns.items())
        if number in read
    ]


def _day(event: Event) -> int:
    return event.time_ms // DAY_MS
