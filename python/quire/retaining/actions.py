"""
Saving a cycle before it is removed from its queue.

Each action ends with a complete, synced copy under its name before the file in the queue is
removed; a file that is moved within a file system is renamed instead. Killed before that, the copy
is incomplete under a temporary name, which the next run removes; killed after it, the next run
finds the same bytes and goes on.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import ClassVar, Final, TypeAlias, cast

from quire._common.durable import Access, SafeFolder, flush_and_sync
from quire._common.file_identity import identity_of
from quire._common.roll_file_names import COMPRESSED, ROLL_FILE_ENDINGS, side_files
from quire._common.sparse_files import copy_sparse
from quire._native import compress_roll_file, is_compressed_copy
from quire.errors import ArchiveError, CorruptError, UnsafePathError
from quire.handles.journal.queue import JournalQueue
from quire.maintenance.removal import LOCK, Moves
from quire.opening.discovery import TABLE, topics_of
from quire.retaining.pruning_plan import Cycle
from quire.retaining.rule import Rule
from quire.sealed.needed_files import bring_needed
from quire.vanilla import VanillaQueue

AnyQueue: TypeAlias = JournalQueue | VanillaQueue
Check: TypeAlias = Callable[[], None]

_CHUNK: Final = 1 << 20


class Saver(ABC):
    """Saves cycles before they are removed."""

    takes_long: ClassVar[bool] = True
    """Whether to check for readers before saving a cycle as well, because saving takes long."""

    @property
    def moves(self) -> Moves | None:
        """The files of the last saved cycle that are renamed instead of removed."""
        return None

    def can_save_again(self, error: OSError) -> bool:
        """Whether to save the cycle once more, in another way, after its removal failed."""
        del error
        return False

    @abstractmethod
    def save(self, queue: AnyQueue, cycle: Cycle) -> Path | None:
        """Save a cycle durably; return where its messages will be."""

    def undo(self, cycle: Cycle) -> None:
        """Remove the copy that this run saved of a cycle that is kept after all."""
        del cycle


def check_dest(rule: Rule, path: str) -> None:
    """
    Check that files are not moved into a queue, nor into a directory of queues.

    Copies of a queue lack other files in its directory; and a directory with roll files is taken
    for a queue, so that queues below it are no longer found.

    Raises:
        ValueError: *dest* lies in a queue, or files would be moved to where the queue lies.

    """
    if rule.dest is None:
        return
    dest, queue = Path(os.fsdecode(rule.dest)).resolve(), Path(path).resolve()
    if dest.is_relative_to(queue) or any((it / TABLE).exists() for it in (dest, *dest.parents)):
        raise ValueError(f"invalid dest: expected a directory outside any queue, found {dest}")
    if rule.action == "move" and queue.is_relative_to(dest):
        raise ValueError(
            "invalid dest: expected a directory beside the queue, not one that the queue is in,"
            f" found {dest} queue={queue}"
        )


@contextmanager
def saver_of(rule: Rule, path: str, folder: SafeFolder, check: Check) -> Generator[Saver]:
    """
    Yield the saver for a rule's action.

    Args:
        rule: The rule.
        path: The path of the queue.
        folder: The directory of the queue.
        check: Called from time to time; raises to stop the run.

    """
    if rule.action == "compress":
        yield _Compress(folder, check)
        return
    if rule.dest is None:
        yield _Delete()
        return
    dest = Path(os.fsdecode(rule.dest)).absolute()
    if rule.action == "archive":
        yield _Archive(path, dest, check)
        return
    with SafeFolder.at(dest, create=Access.of(path)) as there, there.locked(LOCK):
        there.sweep(*ROLL_FILE_ENDINGS)
        bring_needed(folder, there)
        yield _Move(folder, there, check)


class _Delete(Saver):
    takes_long: ClassVar[bool] = False

    def save(self, queue: AnyQueue, cycle: Cycle) -> Path | None:
        del queue, cycle
        return None


class _Move(Saver):
    """
    Renames a file into another directory, or copies it to another file system.

    Hard links are not used: a killed run could leave a file with two names, which writers refuse.
    """

    def __init__(self, folder: SafeFolder, there: SafeFolder, check: Check) -> None:
        self._folder: Final = folder
        self._there: Final = there
        self._check: Final = check
        self._made = list[str]()
        self._copies = False
        self._moves = Moves(there, set())

    @property
    def moves(self) -> Moves:
        return self._moves

    def save(self, queue: AnyQueue, cycle: Cycle) -> Path | None:
        del queue
        self._made.clear()
        self._moves = Moves(self._there, set())
        for beside in side_files(cycle.file.name):
            if self._folder.has(beside):
                self._save(beside)
        target = self._save(cycle.file.name)
        self._there.sync()
        return target

    def can_save_again(self, error: OSError) -> bool:
        again = error.errno == errno.EXDEV and not self._copies
        self._copies = self._copies or again
        return again

    def undo(self, cycle: Cycle) -> None:
        if self._folder.has(cycle.file.name):
            for name in self._made:
                self._there.remove(name)
            self._there.sync()

    def _save(self, name: str) -> Path:
        target = self._there.path / name
        if self._there.stat(name) is None:
            if not self._copies and self._folder.identity[0] == self._there.identity[0]:
                self._moves.names.add(name)
            else:
                self._made.append(name)
                self._copy(name)
        elif not self._is_same(name):
            raise UnsafePathError(f"another file has the name: path={target} (move it away)")
        return target

    def _copy(self, name: str) -> None:
        temporary = self._there.temporary(name)
        try:
            with self._folder.open(name) as source, self._there.create(temporary) as target:
                copy_sparse(source, target, self._check)
                flush_and_sync(target)
            self._there.publish(temporary, name)
        except BaseException:
            self._there.remove(temporary)
            raise

    def _is_same(self, name: str) -> bool:
        """Return whether the directory has the same file already, from a killed run."""
        with self._folder.open(name) as source, self._there.open(name) as found:
            here, there = os.fstat(source.fileno()), os.fstat(found.fileno())
            if identity_of(here) == identity_of(there):
                return True
            return here.st_size == there.st_size and _equal(source, found)


class _Compress(Saver):
    """Creates a compressed file next to a roll file, which readers prefer until it is removed."""

    def __init__(self, folder: SafeFolder, check: Check) -> None:
        self._folder: Final = folder
        self._check: Final = check
        self._made: str | None = None

    def save(self, queue: AnyQueue, cycle: Cycle) -> Path | None:
        self._made = None
        source, name = cycle.file.name, cycle.file.name + COMPRESSED
        cast("JournalQueue", queue)._announce_compression(cycle.number)  # noqa: SLF001 - the package's own
        if not self._folder.has(name):
            self._compress(source, name)
            self._made = name
        elif not self._is_copy(source, name):
            raise UnsafePathError(
                "another file has the name of the compressed file:"
                f" path={self._folder.path / name} (move it away)"
            )
        return self._folder.path / name

    def undo(self, cycle: Cycle) -> None:
        if self._made is not None and self._folder.has(cycle.file.name):
            self._folder.remove(self._made)
            self._folder.sync()

    def _compress(self, source: str, name: str) -> None:
        temporary = self._folder.temporary(name)
        try:
            with self._folder.create(temporary) as target, self._folder.open(source) as found:
                os.fchmod(target.fileno(), os.fstat(found.fileno()).st_mode & 0o777)
            compress_roll_file(*self._paths(source, temporary), self._check)
            self._check_copy(source, temporary)
            self._folder.publish(temporary, name)
        except BaseException:
            self._folder.remove(temporary)
            raise

    def _check_copy(self, source: str, temporary: str) -> None:
        if not self._is_copy(source, temporary):
            raise CorruptError(
                "the file changed while it was compressed, or the disk does not store data"
                f" correctly: file={self._folder.path / source}"
            )

    def _is_copy(self, source: str, name: str) -> bool:
        return is_compressed_copy(*self._paths(source, name), self._check)

    def _paths(self, source: str, name: str) -> tuple[str, str]:
        return str(self._folder.path / source), str(self._folder.path / name)


class _Archive(Saver):
    """Archives to Parquet all finished cycles that the archive lacks."""

    def __init__(self, path: str, dest: Path, check: Check) -> None:
        from quire.archive import archive
        from quire.archive.manifest import Archive

        def progress(_what: str, _done: int, _total: int) -> None:
            check()

        report = archive(path, dest, progress=progress)
        self._failed: Final = {it.cycle: it.reason for it in report.failed}
        (name,) = topics_of(path)
        self._topic: Final = Archive(dest).topic(name)

    def save(self, queue: AnyQueue, cycle: Cycle) -> Path | None:
        from quire.archive.deletion import check_archived

        entry = self._topic.entries.get(cycle.number)
        if entry is None:
            why = self._failed.get(cycle.number) or self._failed.get(None) or "unfinished"
            raise ArchiveError(f"the cycle could not be archived: {why} file={cycle.file}")
        check_archived(self._topic, cast("JournalQueue", queue), entry)
        return self._topic.file(entry)


def _equal(one: BufferedReader, other: BufferedReader) -> bool:
    while piece := one.read(_CHUNK):
        if piece != other.read(_CHUNK):
            return False
    return True
