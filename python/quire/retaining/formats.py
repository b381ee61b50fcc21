"""What retention asks of a queue and does to it, by format."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from quire._durable import SafeFolder
from quire._formats import CHRONICLE, VANILLA, format_of, refuse_part, refuse_queues
from quire.discovery import check_local
from quire.errors import NotAQueueError, UnsupportedError
from quire.maintenance.holders import Holder, growth_of, holders_of
from quire.maintenance.removal import LOCK, Removal, removal, sweep_compressed
from quire.queue import Queue
from quire.queue import open as open_queue
from quire.ranges.numbering import Numbering
from quire.retaining.plan import Cycle
from quire.retaining.rule import Action
from quire.vanilla import VanillaQueue

_BLOCK: Final = 512  # the unit of st_blocks
_LATE_MS: Final = 60_000
"""How long after a cycle of a Vanilla Chronicle a slow writer may still be in it."""


_Queue = TypeVar("_Queue", Queue, VanillaQueue)


class Cycles(ABC, Generic[_Queue]):
    """The cycles of an open queue."""

    def __init__(self, queue: _Queue) -> None:
        """Take the queue, which stays open as long as this is used."""
        self.queue: Final[_Queue] = queue

    def listed(self) -> Iterator[Cycle]:
        """Yield the cycles that are there, ascending."""
        for number in self.queue.cycles:
            file = self.place_of(number)
            try:
                on_disk = sum(os.lstat(it).st_blocks for it in self.files_of(file)) * _BLOCK
            except FileNotFoundError:  # removed by hand since the listing
                continue
            yield Cycle(number, file, on_disk, self.queue.cycle_start_ms(number + 1))

    @abstractmethod
    def place_of(self, number: int) -> Path:
        """Return the file of a cycle, or its directory."""

    @abstractmethod
    def files_of(self, place: Path) -> list[Path]:
        """Return the files of a cycle."""

    @abstractmethod
    def growth(self, cycle: Cycle, now_ms: int) -> str | None:
        """Return why a cycle could still get messages, or cannot be judged."""

    @abstractmethod
    def holders(self) -> list[Holder]:
        """Return the named readers."""

    @abstractmethod
    def remove(self, number: int, action: Action) -> None:
        """Remove a cycle for good, after what an action has saved of it."""


class JournalCycles(Cycles[Queue]):
    """Those of a Chronicle Queue: roll files."""

    def __init__(self, queue: Queue, removes: Removal | None) -> None:
        """Take what removes; None in a dry run."""
        super().__init__(queue)
        self._removes: Final = removes

    def place_of(self, number: int) -> Path:
        """Return the file of a cycle."""
        return Path(self.queue.file_for_cycle(number))

    def files_of(self, place: Path) -> list[Path]:
        """Return the one file."""
        return [place]

    def growth(self, cycle: Cycle, now_ms: int) -> str | None:
        """Return why Java could append to a cycle, or that it is damaged."""
        del now_ms
        return growth_of(self.queue, cycle.number)

    def holders(self) -> list[Holder]:
        """Return the named tailers of the table, and the consumer groups."""
        return holders_of(self.queue)

    def remove(self, number: int, action: Action) -> None:
        """Remove a roll file."""
        if self._removes is not None:
            self._removes.remove(number, keep_compressed=action == "compress")


class VanillaCycles(Cycles[VanillaQueue]):
    """
    Those of a Vanilla Chronicle: directories.

    A cycle leaves the queue by one rename, to a hidden name that every reader ignores; what a
    killed run left of it is removed by the next one.
    """

    def __init__(self, queue: VanillaQueue, folder: SafeFolder | None) -> None:
        """Take the queue's directory, whose lock is held; None in a dry run."""
        super().__init__(queue)
        self._folder: Final = folder

    def place_of(self, number: int) -> Path:
        """Return the directory of a cycle."""
        return Path(self.queue.directory_for_cycle(number))

    def files_of(self, place: Path) -> list[Path]:
        """Return the index and data files."""
        return [*place.iterdir()]

    def growth(self, cycle: Cycle, now_ms: int) -> str | None:
        """Return that the cycle has just ended: nothing in its files says that nobody appends."""
        if cycle.ended_ms + _LATE_MS > now_ms:
            return "kept as slow writers could still append to it"
        return None

    def holders(self) -> list[Holder]:
        """Return the named tailers that have a file; there are no groups."""
        numbering = Numbering.of(self.queue)
        return [
            Holder(
                "named tailer", name, index or 0, -1 if index is None else numbering.to_cycle(index)
            )
            for name, index in self.queue._named_positions()  # noqa: SLF001 - the package's own
        ]

    def remove(self, number: int, action: Action) -> None:
        """Remove a directory, and those above it that become empty."""
        del action
        if self._folder is None:
            return
        place, root = self.place_of(number), Path(self.queue.path)
        *above, name = place.relative_to(root).parts
        hidden = self._folder.temporary(name)
        with self._folder.below(above) as inside:
            inside.move(name, self._folder, hidden)
            inside.sync()
        self._folder.sync()
        self._folder.remove(hidden)
        for parent in place.parents[: len(above)]:
            with suppress(OSError):  # another cycle is in it
                parent.rmdir()


@contextmanager
def opened_to_prune(path: str, options: dict[str, Any]) -> Generator[Cycles[Any]]:
    """
    Hold the lock of a queue's retention, and return its cycles.

    Raises:
        LockHeldError: Another process removes cycles.

    """
    if format_of(path) == VANILLA:
        with (
            SafeFolder.at(path) as folder,
            folder.locked(LOCK),
            cast("VanillaQueue", open_queue(path, create=False, **options)) as chronicle,
        ):
            folder.sweep()
            yield VanillaCycles(chronicle, folder)
        return
    with (
        open_queue(path, create=False, pretouch=False, buffer_mode="none", **options) as queue,
        removal(queue, path) as removes,
    ):
        sweep_compressed(removes.folder)
        queue.refresh()  # a killed run may have announced a removal that it did not reach
        yield JournalCycles(queue, removes)


@contextmanager
def opened_to_look(path: str) -> Generator[Cycles[Any]]:
    """Return the cycles of a queue, which nothing is removed from."""
    with open_queue(path, read_only=True, create=False) as queue:
        found = cast("object", queue)
        if isinstance(found, VanillaQueue):
            yield VanillaCycles(found, None)
        else:
            yield JournalCycles(queue, None)


def check_format(path: str, action: Action) -> None:
    """
    Check that there is a queue whose cycles can be removed.

    Raises:
        NotAQueueError: There is none.
        UnsupportedError: It has another format.
        PermissionError: The directory cannot be listed.

    """
    check_local(path)
    found = format_of(path)
    if found is None:
        if os.path.isdir(path):  # noqa: PTH112
            os.scandir(path).close()  # a directory that cannot be listed may be a queue
        refuse_part(path)
        refuse_queues(path)
        raise NotAQueueError(f"no queue here: path={path}")
    if found not in {CHRONICLE, VANILLA}:
        raise UnsupportedError(
            "only cycles of a Chronicle Queue or a Vanilla Chronicle are removed: Java's writers"
            f" of a Quick-Queue begin at its first page: format={found} path={path}"
        )
    if found == VANILLA and action in {"move", "compress"}:
        done = "moved" if action == "move" else "compressed"
        raise UnsupportedError(f"cycles of a Vanilla Chronicle are not {done}: path={path}")
