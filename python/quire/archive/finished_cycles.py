"""Which cycles of a queue are finished, and so may be archived."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from quire._formats import uncompressed
from quire.errors import ArchiveError, CorruptError
from quire.queue import Queue
from quire.quick_queue import QuickQueue
from quire.ranges.cycles import CycleRange, count_of, cycles_of
from quire.ranges.numbering import Numbering
from quire.vanilla import VanillaQueue


class End(NamedTuple):
    """Where a cycle's messages end."""

    position: int
    past: int
    """The sequence after the last message."""
    ended: bool
    """Whether nothing can follow: there is an end-of-file marker, or a page is full."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A finished cycle, and when it was inspected (monotonic seconds)."""

    number: int
    file: Path
    end: End
    previous: int | None
    looked_at_s: float

    def range_in(self, queue: Queue) -> CycleRange:
        """Return its indexes."""
        numbering = Numbering.of(queue)
        first = numbering.to_index(self.number, 0)
        return CycleRange(first, self.end.past, numbering.step)


@dataclass(frozen=True, slots=True)
class Look:
    """
    The cycles of a queue that an archive does not have.

    Attributes:
        finished: They have an end-of-file marker, or a later cycle has a message.
        unfinished: They may still grow.
        damaged: What is wrong with them.

    """

    finished: list[Cycle]
    unfinished: list[int]
    damaged: dict[int, str]


def look(queue: Queue, known: Collection[int]) -> Look:
    """Inspect the cycles of a queue that are not *known*."""
    finished: list[Cycle] = []
    unfinished: list[int] = []
    damaged: dict[int, str] = {}
    newest = _newest_with_messages(queue)
    before: int | None = None
    for number in cycles_of(queue):
        previous, before = before, number
        if number in known:
            continue
        try:
            end = end_of(queue, number)
        except CorruptError as error:
            damaged[number] = damage_text(queue, number, error)
            continue
        if end is None:  # deleted a moment ago, or never finished: nothing in it was ever readable
            before = previous
            if number > newest:
                unfinished.append(number)
        elif end.ended or number < newest:
            file = file_of(queue, number)
            finished.append(Cycle(number, file, end, previous, time.monotonic()))
        else:
            unfinished.append(number)
    return Look(finished, unfinished, damaged)


def file_of(queue: Queue, number: int) -> Path:
    """Return the file of a cycle, or its directory; of a Quick-Queue, the page of the index."""
    opened: object = queue
    if isinstance(opened, VanillaQueue):
        return Path(opened.directory_for_cycle(number))
    if isinstance(opened, QuickQueue):
        return Path(opened.path, f"{number}.{'qx' if opened.form == 'single' else 'qmx'}")
    return Path(queue.file_for_cycle(number))


def name_of(queue: Queue, number: int) -> str:
    """Return what a cycle's file is called, as the name of another file."""
    name = file_of(queue, number).relative_to(queue.path).as_posix().replace("/", "-")
    return (
        name if isinstance(cast("object", queue), VanillaQueue) else Path(uncompressed(name)).stem
    )


def end_of(queue: Queue, number: int) -> End | None:
    """
    Return where a cycle ends; None if it has no file, or none that is ready.

    Raises:
        CorruptError: The file is damaged, or ends before its last message.

    """
    if not file_of(queue, number).exists():
        return None
    if isinstance(cast("object", queue), VanillaQueue | QuickQueue):
        return _end_in_older(queue, number)
    found, last = queue.end_of_cycle(number), queue._write_position(number)  # noqa: SLF001 - the package's own
    if found is None or last is None:
        return None
    end = End(*found)
    if last >= end.position and end.past:
        raise CorruptError(
            "messages are missing in the middle of the file, or its end is cut off:"
            f" file={queue.file_for_cycle(number)} position={end.position:#x}"
            f" last={last:#x}"
        )
    return end


def _end_in_older(queue: Queue, number: int) -> End:
    past = count_of(queue, number)
    is_full = not isinstance(cast("object", queue), VanillaQueue) and number + 1 in cycles_of(queue)
    return End(0, past, is_full)


def check_unchanged(queue: Queue, cycle: Cycle, grace_s: float) -> None:
    """
    Check that a cycle has not changed; without an end-of-file marker, wait for the grace time.

    Raises:
        ArchiveError: The cycle grew, or its file was removed.
        CorruptError: The cycle's roll file is damaged.

    """
    if not cycle.end.ended:
        time.sleep(max(0.0, cycle.looked_at_s + grace_s - time.monotonic()))
    now = end_of(queue, cycle.number)
    if now is None:
        raise ArchiveError(f"the file was deleted while it was read: file={cycle.file}")
    if now[:2] != cycle.end[:2]:
        raise ArchiveError(
            f"the cycle is still written to: file={cycle.file}"
            f" messages={cycle.end.past} found={now.past}"
        )


def _newest_with_messages(queue: Queue) -> int:
    """Return the newest cycle that has a message; -1 if none has."""
    for number in reversed(cycles_of(queue)):
        try:
            end = end_of(queue, number)
        except CorruptError:
            continue
        if end is not None and end.past:
            return number
    return -1


def damage_text(queue: Queue, number: int, error: CorruptError) -> str:
    """Return what is wrong with a damaged cycle, and the first index that cannot be read."""
    return f"{error}" if " index=" in f"{error}" else f"{error}{_where(queue, number)}"


def _where(queue: Queue, number: int) -> str:
    numbering = Numbering.of(queue)
    first, past = (numbering.to_index(each, 0) for each in (number, number + 1))
    with queue.tailer() as tailer:
        try:
            if not tailer.move_to_index(first):
                return f" index={first:#x}"
            while tailer.read_bytes() is not None and tailer.index < past:
                pass
        except CorruptError:
            pass
        return f" index={tailer.index:#x}"
