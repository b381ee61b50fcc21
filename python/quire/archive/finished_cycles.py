"""Which cycles of a queue are finished and can be archived."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from quire._common.roll_file_names import uncompressed
from quire.errors import ArchiveError, CorruptError
from quire.formats.adapter import End
from quire.formats.adapters import adapter_of, cycles_of, numbering_of, tailer_of
from quire.formats.protocols import AnyQueue
from quire.ranges.cycles import CycleRange


@dataclass(frozen=True, slots=True)
class Cycle:
    """A finished cycle, and when it was inspected (monotonic seconds)."""

    number: int
    file: Path
    end: End
    previous: int | None
    looked_at_s: float

    def range_in(self, queue: AnyQueue) -> CycleRange:
        """Return the range of its indexes."""
        numbering = numbering_of(queue)
        first = numbering.to_index(self.number, 0)
        return CycleRange(first, self.end.past, numbering.step)


@dataclass(frozen=True, slots=True)
class Look:
    """
    The cycles of a queue that an archive does not have.

    Attributes:
        finished: Cycles with an end-of-file marker, or with a later cycle that has a message.
        unfinished: Cycles that may still grow.
        damaged: Cycles that cannot be read, with the reason.

    """

    finished: list[Cycle]
    unfinished: list[int]
    damaged: dict[int, str]


def look(queue: AnyQueue, known: Collection[int]) -> Look:
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
        if end is None:  # deleted a moment ago, or never initialised: no message was ever readable
            before = previous
            if number > newest:
                unfinished.append(number)
        elif end.ended or number < newest:
            file = file_of(queue, number)
            finished.append(Cycle(number, file, end, previous, time.monotonic()))
        else:
            unfinished.append(number)
    return Look(finished, unfinished, damaged)


def file_of(queue: AnyQueue, number: int) -> Path:
    """Return the file or directory of a cycle; for a Quick-Queue, its index page."""
    return adapter_of(queue).place(queue, number)


def name_of(queue: AnyQueue, number: int) -> str:
    """Return the name of a cycle's file, for use in the name of another file."""
    name = file_of(queue, number).relative_to(queue.path).as_posix().replace("/", "-")
    return name if adapter_of(queue).is_folder else Path(uncompressed(name)).stem


def end_of(queue: AnyQueue, number: int) -> End | None:
    """
    Return where a cycle ends; None if its file does not exist or is not initialised.

    Raises:
        CorruptError: The file is damaged, or ends before its last message.

    """
    return adapter_of(queue).end(queue, number) if file_of(queue, number).exists() else None


def check_unchanged(queue: AnyQueue, cycle: Cycle, grace_s: float) -> None:
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


def _newest_with_messages(queue: AnyQueue) -> int:
    """Return the newest cycle that has a message; -1 if none has."""
    for number in reversed(cycles_of(queue)):
        try:
            end = end_of(queue, number)
        except CorruptError:
            continue
        if end is not None and end.past:
            return number
    return -1


def damage_text(queue: AnyQueue, number: int, error: CorruptError) -> str:
    """Return the damage of a cycle as text, with the first index that cannot be read."""
    return f"{error}" if " index=" in f"{error}" else f"{error}{_where(queue, number)}"


def _where(queue: AnyQueue, number: int) -> str:
    numbering = numbering_of(queue)
    first, past = (numbering.to_index(each, 0) for each in (number, number + 1))
    with tailer_of(queue) as tailer:
        try:
            if not tailer.move_to_index(first):
                return f" index={first:#x}"
            while tailer.read_bytes() is not None and tailer.index < past:
                pass
        except CorruptError:
            pass
        return f" index={tailer.index:#x}"
