"""The queue that a sink keeps: every message under the index that it has at the source."""

from __future__ import annotations

from bisect import bisect_left
from contextlib import ExitStack
from os import PathLike
from time import time
from typing import Any, Final

from quire._common.durable import SafeFolder
from quire._native import ManualClock
from quire.errors import ReplicationError, UnsupportedError
from quire.handles.vanilla import open as open_vanilla
from quire.opening.discovery import check_directory
from quire.vanilla.replication.wire_frames import Run

_LOCK: Final = ".sink.lock"
_OWN_OPTIONS: Final = ("clock", "consumption", "create", "format", "read_only")
_CYCLES_ASKED: Final = 16
_EARLIEST_MS: Final = 946_684_800_000  # 2000: there was no Chronicle before
_TEN_YEARS_MS: Final = 315_576_000_000  # clocks may be wrong; lengths differ by a factor of 7


class Replica:
    """
    A copy of a source's queue.

    Args:
        path: Its directory.
        options: Options of :func:`quire.vanilla.open`.

    Raises:
        LockHeldError: Another sink keeps this copy.

    """

    def __init__(self, path: str | PathLike[str], options: dict[str, Any]) -> None:
        for name in _OWN_OPTIONS:
            if name in options:
                raise UnsupportedError(f"not an option of a copy: {name}={options[name]!r}")
        self.is_synchronous = bool(options.get("synchronous"))
        self._clock = ManualClock(0)  # set to the cycle of what is stored
        with ExitStack() as stack:
            opened = open_vanilla(path, clock=self._clock, **options)
            self._queue = stack.enter_context(opened)
            self._folder = stack.enter_context(SafeFolder.at(self._queue.path))
            stack.enter_context(self._folder.locked(_LOCK))
            self._appender = stack.enter_context(self._queue.appender())
            self._tailer = stack.enter_context(self._queue.tailer())
            self._looking = stack.enter_context(self._queue.tailer())
            self._last: int | None = self._queue.last_index
            self._open = stack.pop_all()

    def close(self) -> None:
        """Close the copy, and let another sink have it."""
        self._open.close()

    @property
    def path(self) -> str:
        """Its directory."""
        return self._queue.path

    def check_present(self) -> None:
        """
        Check that its directory is still the one at its path.

        Raises:
            TableLostError: The directory was renamed, removed or replaced.

        """
        check_directory(self.path, self._folder.identity)

    @property
    def last_index(self) -> int | None:
        """The index of the last message."""
        return self._last

    def cycle_of(self, index: int) -> int:
        """Return the cycle of a message."""
        return index // self._queue.entries_per_cycle

    def has(self, index: int) -> bool:
        """Whether there is a message of this index."""
        return index >= 0 and self._looking.move_to_index(index)

    def ends(self) -> list[int]:
        """Return the last index of each of the newest cycles, in ascending order."""
        found: list[int] = []
        for cycle in self._queue.cycles[-_CYCLES_ASKED:]:
            first = cycle * self._queue.entries_per_cycle
            places = range(first, first + self._queue.entries_per_cycle)
            if count := bisect_left(places, x=True, key=lambda index: not self.has(index)):
                found.append(first + count - 1)
        return found

    def store(self, run: Run) -> None:
        """
        Append messages, except those that the copy already has.

        Raises:
            ReplicationError: A message would get another index than at the source, or the copy has
                a different message at that index.
            TableLostError: The directory was renamed, removed or replaced.

        """
        self.check_present()
        self._append(run)
        self.check_present()  # or what is acknowledged is not where it is looked for

    def _append(self, run: Run) -> None:
        cycle = self.cycle_of(run.first)
        self._check_cycle(cycle, run.first)
        held = self._count_held(run)
        if held == len(run.payloads):
            return
        first = run.first + held
        if first % self._queue.entries_per_cycle and not self.has(first - 1):
            text = "the source sent a message before the one that precedes it"
            raise ReplicationError(f"{text}: index={first:#x} path={self.path}")
        self._clock.now_ms = cycle * self._queue.cycle_length_ms
        last = self._appender.write_many(run.payloads[held:])
        if last != run.last:
            text = "a message got another index than at the source: the copy has another writer"
            where = f"found={last} expected={run.last} path={self.path}"
            raise ReplicationError(f"{text}: {where}")
        self._last = run.last if self._last is None else max(self._last, run.last)

    def _count_held(self, run: Run) -> int:
        for place, payload in enumerate(run.payloads):
            # Another thread may look for a message meanwhile, with the other tailer.
            if not self._tailer.move_to_index(run.first + place):
                return place
            held = self._tailer.read()
            # Readers may change a message in place, but not its length.
            if held is None or len(held.view) != len(payload):
                text = "the copy has a different message from the source"
                raise ReplicationError(f"{text}: index={run.first + place:#x} path={self.path}")
        return len(run.payloads)

    def _check_cycle(self, cycle: int, index: int) -> None:
        """Refuse an index of an unlikely time: the source's cycles must have another length."""
        length_ms = self._queue.cycle_length_ms
        start_ms = cycle * length_ms
        if _EARLIEST_MS <= start_ms + length_ms and start_ms <= time() * 1000 + _TEN_YEARS_MS:
            return
        text = "the cycles of the copy differ from those of the source"
        asked = f"index={index:#x} cycle={cycle} cycle_length_ms={length_ms} path={self.path}"
        raise ReplicationError(f"{text}: {asked} (roll_cycle, entries_per_cycle)")
