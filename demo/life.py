"""What becomes of a recorded journal: a group works through it, and retention cuts a copy."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import quire
from demo.events import date_of
from demo.follow import Totals
from demo.journal import Journal

GROUP: Final = "desks"
DESKS: Final = ("desk-1", "desk-2")
AUDIT: Final = "audit"

# The consumer that leaves without acknowledging took this many messages at most.
ABANDONED: Final = 1_000

_BATCH: Final = 1_000
_IDLE_S: Final = 0.001


class Work(NamedTuple):
    """
    What one consumer did.

    Attributes:
        name: The consumer.
        totals: Totals over the messages that it acknowledged.
        again: How many of these had been delivered before.

    """

    name: str
    totals: Totals
    again: int


@dataclass(frozen=True, slots=True)
class Sharing:
    """
    What a consumer group did.

    Attributes:
        desks: The work of each consumer.
        abandoned: Messages that went to a consumer which left without acknowledging them.
        lag: Messages that nobody acknowledged.
        seconds: From the first delivery to the last acknowledgement, processes started included.

    """

    desks: list[Work]
    abandoned: int
    lag: int
    seconds: float

    @property
    def totals(self) -> Totals:
        """Totals over all acknowledged messages."""
        return sum((desk.totals for desk in self.desks), Totals())


class Pruned(NamedTuple):
    """
    A day of the journal, and what retention did with it.

    Attributes:
        day: The UTC day.
        bytes: What its file took on disk.
        removed: Whether it went.
        within: Whether it was within the limit.

    """

    day: date
    bytes: int
    removed: bool
    within: bool


@dataclass(frozen=True, slots=True)
class Pruning:
    """
    What retention did to a copy of the journal.

    Attributes:
        limit: How many cycles the rule keeps.
        days: All days, the oldest first.
        messages: Messages that are left, by day.
        oldest_needed: The day of the message that the named tailer reads next.
        seconds: How long the run took.

    """

    limit: int
    days: list[Pruned]
    messages: dict[date, int]
    oldest_needed: date
    seconds: float

    @property
    def freed(self) -> int:
        """The disk space that was freed, in bytes."""
        return sum(it.bytes for it in self.days if it.removed)


@dataclass(frozen=True, slots=True)
class Life:
    """The journal's life after it was recorded."""

    sharing: Sharing
    pruning: Pruning


def share(journal: Journal) -> Sharing:
    """Have two processes work through *journal*, after a consumer that did not finish its part."""
    start = time.perf_counter()
    with journal.open(read_only=False) as queue:
        group = queue.group(GROUP, ack_timeout_s=math.inf)
        with group.consumer("leaver") as leaver:
            abandoned = len(leaver.read_many(ABANDONED))
        with ProcessPoolExecutor(
            len(DESKS), mp_context=get_context("spawn"), initializer=_ignore_interrupts
        ) as pool:
            desks = list(pool.map(partial(_work, journal), DESKS))
        return Sharing(desks, abandoned, group.lag, time.perf_counter() - start)


def prune(journal: Journal, path: Path) -> Pruning:
    """
    Copy *journal* to *path*, and keep there the newest quarter of its days.

    A named tailer that is halfway through keeps what it has not read yet.
    """
    quire.copy_queue(journal.path, path)
    with quire.open(path, create=False) as queue:
        cycles = queue.cycles
        middle = cycles[len(cycles) // 2]
        limit = max(1, len(cycles) // 4)
        with queue.tailer(AUDIT) as audit:
            audit.move_to_index(queue.roll_cycle.to_index(middle, 0))
    start = time.perf_counter()
    report = quire.prune(path, max_cycles=limit)
    seconds = time.perf_counter() - start
    within = set(cycles[-limit:])
    days = [
        Pruned(date_of(it.cycle), it.bytes, removed, it.cycle in within)
        for removed, found in ((True, report.removed), (False, report.kept))
        for it in found
    ]
    with quire.open(path, read_only=True) as queue:
        left = {date_of(cycle): (queue.end_of_cycle(cycle) or (0, 0))[1] for cycle in queue.cycles}
    return Pruning(limit, days, left, date_of(middle), seconds)


def left_of(messages: Mapping[date, int], oldest_needed: date) -> dict[date, int]:
    """Return what has to be left of *messages* by day."""
    return {day: count for day, count in messages.items() if day >= oldest_needed}


def _work(journal: Journal, name: str) -> Work:
    """Run in a process of its own: acknowledge messages until none is left to anybody."""
    totals, again = Totals(), 0
    with journal.open(read_only=False) as queue:
        group = queue.group(GROUP, ack_timeout_s=math.inf)
        with group.consumer(name) as consumer:
            while group.lag:
                batch = consumer.read_many(_BATCH)
                for message in batch:
                    totals.add(message.to_dict())
                    again += message.delivery_count > 1
                consumer.ack_many(batch)
                if not batch:
                    time.sleep(_IDLE_S)  # the other process has not acknowledged the rest yet
    return Work(name, totals, again)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
