"""How retention inspects and changes a queue, by format."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final, Generic, TypeVar

from quire._common.durable import SafeFolder
from quire._common.file_identity import Identity, identity_of
from quire.errors import NotAQueueError, UnsupportedError
from quire.formats.adapters import adapter_at, adapter_of
from quire.formats.detection import refuse_part, refuse_queues
from quire.formats.missing import article
from quire.handles.base import Queue
from quire.handles.journal.queue import JournalQueue
from quire.maintenance.holders import Holder, growth_of, holders_of
from quire.maintenance.removal import (
    LOCK,
    Moves,
    Removal,
    check_place,
    reason_moved,
    removal,
    sweep_compressed,
)
from quire.opening.discovery import check_local, lost
from quire.opening.opener import open_without_key as open_queue
from quire.ranges.stored_positions import stored_position
from quire.retaining.pruning_plan import Cycle
from quire.retaining.rule import Action
from quire.vanilla import VanillaQueue

_BLOCK: Final = 512  # the unit of st_blocks
_LATE_MS: Final = 60_000
"""How long after the end of a Vanilla Chronicle's cycle a slow writer may still use it."""
_LEAVING: Final = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
"""The hidden name of a cycle of a Vanilla Chronicle that was being removed."""


_Queue = TypeVar("_Queue", JournalQueue, VanillaQueue)


class Cycles(ABC, Generic[_Queue]):
    """The cycles of an open queue."""

    def __init__(self, queue: _Queue, folder: SafeFolder | None) -> None:
        """Keep the queue, which must stay open; *folder* is None in a dry run."""
        self.queue: Final[_Queue] = queue
        self.folder: Final = folder

    def listed(self) -> Iterator[Cycle]:
        """Yield the existing cycles, ascending."""
        for number in self.queue.cycles:
            file = self.place_of(number)
            try:
                found = os.lstat(file)
                on_disk = sum(os.lstat(it).st_blocks for it in self.files_of(file)) * _BLOCK
            except FileNotFoundError:  # removed by hand since the listing
                continue
            identity = identity_of(found)
            ended_ms = self.queue.cycle_start_ms(number + 1)
            yield Cycle(number, file, on_disk, ended_ms, identity)

    def place_of(self, number: int) -> Path:
        """Return the file of a cycle, or its directory."""
        return adapter_of(self.queue).place(self.queue, number)

    def files_of(self, place: Path) -> list[Path]:
        """Return the files of a cycle; a link is not followed."""
        return [*place.iterdir()] if S_ISDIR(os.lstat(place).st_mode) else [place]

    @abstractmethod
    def growth(self, cycle: Cycle, now_ms: int) -> str | None:
        """Return why a cycle could still get messages, or why that is unknown."""

    @abstractmethod
    def holders(self) -> list[Holder]:
        """Return the named readers."""

    @abstractmethod
    def moved(self, cycle: Cycle) -> str | None:
        """
        Return why the cycle is no longer the one that was listed, or None.

        Raises:
            TableLostError: The queue's path leads to another queue.

        """

    @abstractmethod
    def remove(self, number: int, action: Action, moves: Moves | None = None) -> None:
        """Remove a cycle that an action has saved, or move its files."""


class JournalCycles(Cycles[JournalQueue]):
    """The cycles of a Chronicle Queue: roll files."""

    def __init__(self, queue: JournalQueue, removes: Removal | None) -> None:
        """Keep the removal; None in a dry run."""
        super().__init__(queue, None if removes is None else removes.folder)
        self._removes: Final = removes

    def growth(self, cycle: Cycle, now_ms: int) -> str | None:
        """Return why Java could append to a cycle, or that the cycle is damaged; or None."""
        del now_ms
        return growth_of(self.queue, cycle.number)

    def holders(self) -> list[Holder]:
        """Return the named tailers of the table, and the consumer groups."""
        return holders_of(self.queue)

    def moved(self, cycle: Cycle) -> str | None:
        """Return a reason if another file has the cycle's name."""
        if self.folder is None:
            return None
        check_place(self.folder, self.queue.path)
        return reason_moved(self.folder, cycle.file.name, cycle.identity)

    def remove(self, number: int, action: Action, moves: Moves | None = None) -> None:
        """Remove a roll file, or move it."""
        if self._removes is not None:
            self._removes.remove(number, keep_compressed=action == "compress", moves=moves)


class VanillaCycles(Cycles[VanillaQueue]):
    """
    The cycles of a Vanilla Chronicle: directories.

    A cycle leaves the queue by one rename, to a hidden name that every reader ignores. The next run
    removes what a killed run left.
    """

    def __init__(self, queue: VanillaQueue, folder: SafeFolder | None) -> None:
        """Take the queue's directory, whose lock is held; None in a dry run."""
        super().__init__(queue, folder)

    def growth(self, cycle: Cycle, now_ms: int) -> str | None:
        """Return a reason if the cycle has just ended: its files do not show the end of appends."""
        if cycle.ended_ms + _LATE_MS > now_ms:
            return "kept as slow writers could still append to it"
        return None

    def holders(self) -> list[Holder]:
        """Return the named tailers that have a file; there are no groups."""
        return [
            Holder("named tailer", name, index, stored_position(self.queue, index)[0])
            for name, index in adapter_of(self.queue).named_tailers(self.queue)
        ]

    def moved(self, cycle: Cycle) -> str | None:
        """Return a reason if another directory has the cycle's name."""
        if self.folder is None:
            return None
        check_place(self.folder, self.queue.path)
        *above, name = cycle.file.relative_to(self.queue.path).parts
        with self.folder.below(above) as inside:
            return reason_moved(inside, name, cycle.identity)

    def remove(self, number: int, action: Action, moves: Moves | None = None) -> None:
        """Remove a cycle's directory, and parent directories that become empty."""
        del action, moves
        if self.folder is None:
            return
        place, root = self.place_of(number), Path(self.queue.path)
        *above, name = place.relative_to(root).parts
        hidden = self.folder.temporary(name)
        with self.folder.below(above) as inside:
            inside.move(name, self.folder, hidden)
            inside.sync()
        self.folder.sync()
        self.folder.remove(hidden)
        for parent in place.parents[: len(above)]:
            with suppress(OSError):  # another cycle is in it
                parent.rmdir()


def identity_in(queue: Queue) -> Identity | None:
    """Return the identity of an open queue's table, or else of its directory, if known."""
    if isinstance(queue, JournalQueue):
        return queue._table_identity()  # noqa: SLF001 - the package's own
    return queue._place  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


@contextmanager
def opened_to_prune(
    path: str, options: dict[str, Any], opened: Identity | None
) -> Generator[Cycles[Any]]:
    """
    Take the retention lock of a queue, and yield its cycles.

    Raises:
        LockHeldError: Another process removes cycles of the queue.
        TableLostError: The path leads to another queue than the one that was *opened*.

    """
    adapter = adapter_at(path)
    if adapter is not None and adapter.is_folder:
        with (
            SafeFolder.at(path) as folder,
            folder.locked(LOCK),
            open_queue(path, format="vanilla", create=False, **options) as chronicle,
        ):
            _check_same(path, opened, folder.identity)
            for name in filter(_LEAVING.fullmatch, folder.names()):
                folder.remove(name)
            yield VanillaCycles(chronicle, folder)
        return
    with removal(path, table=opened, pretouch=False, **options) as removes:
        sweep_compressed(removes.folder)
        removes.queue.refresh()  # a killed run may have announced a removal that it did not reach
        yield JournalCycles(removes.queue, removes)


@contextmanager
def opened_to_look(path: str, opened: Identity | None) -> Generator[Cycles[Any]]:
    """
    Yield the cycles of a queue for a dry run.

    Raises:
        TableLostError: The path leads to another queue than the one that was *opened*.

    """
    adapter = adapter_at(path)
    if adapter is not None and adapter.is_folder:
        with open_queue(path, format="vanilla", read_only=True, create=False) as chronicle:
            _check_same(path, opened, identity_in(chronicle))
            yield VanillaCycles(chronicle, None)
        return
    with open_queue(path, read_only=True, create=False) as queue:
        _check_same(path, opened, identity_in(queue))
        yield JournalCycles(queue, None)


def _check_same(path: str, opened: Identity | None, found: Identity | None) -> None:
    if opened not in {None, found}:
        raise lost(path)


def check_format(path: str, action: Action) -> None:
    """
    Check that there is a queue whose cycles can be removed.

    Raises:
        NotAQueueError: There is no queue at *path*.
        UnsupportedError: The format of the queue has no cycles that can be removed.
        PermissionError: The directory cannot be listed.

    """
    check_local(path)
    adapter = adapter_at(path)
    if adapter is None:
        if os.path.isdir(path):  # noqa: PTH112
            os.scandir(path).close()  # a directory that cannot be listed may be a queue
        refuse_part(path)
        refuse_queues(path)
        raise NotAQueueError(f"no queue here: path={path}")
    if not adapter.has_cycles:
        raise UnsupportedError(
            "only cycles of a Chronicle Queue or a Vanilla Chronicle can be removed: Java's writers"
            f" of a Quick-Queue begin at its first page: format={adapter.name} path={path}"
        )
    if adapter.is_folder and action in {"move", "compress"}:
        done = "moved" if action == "move" else "compressed"
        raise UnsupportedError(f"cycles of {article(adapter.title)} cannot be {done}: path={path}")
