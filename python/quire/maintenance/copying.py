"""
A consistent copy of a queue, without a lock.

Roll files only grow, and a document never changes once it is published. So the bytes up to the end
that was found at some moment are a copy of the file at that moment, except for the words that point
into it: those of the first header and of index arrays. The first header is read before the end is
looked for, so that it names no later message, and holds nothing that was unfinished then;
:func:`quire.repair` then completes the words of the copy. The table is read before all files, so
that no named tailer is ahead of the copy. Compressed files are copied as they are.

The copy is made in a hidden folder beside its destination, with a note of what is durable there,
and renamed when it is complete.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from quire._common import arguments
from quire._common.durable import SafeFolder
from quire._common.file_identity import identity_of
from quire._common.roll_file_names import is_compressed, seal_file, times_file
from quire.errors import CorruptError, UnsafePathError, UnsupportedError
from quire.formats.adapters import adapter_at, adapter_of
from quire.groups import lowest_needed
from quire.handles.journal.queue import JournalQueue
from quire.maintenance.copy_run import NOTE, Copied, CopyRun, Progress
from quire.maintenance.copying_groups import put_groups
from quire.maintenance.copying_snapshots import SnapshotCopy
from quire.maintenance.copying_writes import WritesCopy
from quire.maintenance.left_out import warn_pending
from quire.maintenance.repairing import repair
from quire.maintenance.results import working_folder
from quire.maintenance.sink_writes import FOLDER
from quire.opening.discovery import TABLE, check_local, result_path
from quire.opening.opener import open_without_key as open_queue
from quire.sealed.needed_files import bring_needed
from quire.sealed.seal_files import SEALS
from quire.write_lock import lock_keys

_FIRST_DOCUMENT: Final = 1 << 16  # bytes of the longest first header
_END_MARK: Final = 8  # bytes of the marker and its text
_TIMES_HEADER: Final = 64
_TIMES_PIECE: Final = 1 << 16
_CHECK_BITS: Final = 16
_ATTEMPTS: Final = 8
_LONGEST_SEALS: Final = 1 << 30
_SPARE: Final = 4096  # zeros after the end, which a writer finds there


class _File(NamedTuple):
    name: str
    cycle: int
    head: bytes
    end: int
    messages: int
    is_ended: bool


def copy_queue(
    source: str | PathLike[str],
    dest: str | PathLike[str],
    *,
    progress: Progress | None = None,
) -> Copied:
    """
    Copy a queue while processes, including Java's, append to it.

    The copy holds every message that was acknowledged before the call, and no later one without
    those before it. It keeps indexes, metadata, append times and the positions of named tailers; a
    consumer group begins with the first message that it had not acknowledged. Its locks are free.
    The source is not changed, and no lock is taken. Messages that wait in the ring of asynchronous
    appends are not part of the queue yet: a warning says how many there are. Writes of Spark that
    are not finished can be finished in the copy, unless they are staged elsewhere.

    Repeat a copy that was interrupted or killed to resume it: messages copied before are kept where
    they equal the source. Cycles that retention removes meanwhile are left out, with all before
    them.

    Args:
        source: The directory of a queue of any format.
        dest: A directory that does not exist, or is empty.
        progress: Called now and then.

    Raises:
        FileExistsError: *dest* is not empty.
        CorruptError: The source is damaged, or changed other than by appends and retention.
        UnsupportedError: The source is an Indexed Chronicle, or a single file.
        ValueError: *dest* overlaps the source, or is a mount point.

    Examples:
        >>> index = appender.write_text("hello")
        >>> quire.copy_queue(queue.path, "backup").last_index == index
        True
        >>> with quire.open("backup") as backup, backup.tailer() as tailer:
        ...     tailer.read_text()
        'hello'

    """
    given = arguments.path("source", source)
    check_local(given)
    path = result_path("dest", dest)
    adapter = adapter_at(given)
    if Path(given).is_file() or (adapter is not None and not adapter.is_written):
        raise UnsupportedError(
            f"only the directory of a queue is copied: path={given}"
            " (copy the files while no process writes to them)"
        )
    with (
        open_queue(given, read_only=True, create=False) as queue,
        working_folder(path, [Path(queue.path)], "copying") as folder,
    ):
        pending = warn_pending(queue.path, "copy")
        groups = lowest_needed(queue.path)
        if adapter_of(queue).has_snapshots:
            copied = SnapshotCopy(queue, folder, progress).run()
        else:
            copied = _Copy(queue, folder, progress).run()
        put_groups(Path(queue.path), folder, groups)
        folder.remove(NOTE)
        return copied._replace(pending=pending)


class _Copy(CopyRun):
    """One run."""

    def __init__(self, queue: JournalQueue, folder: SafeFolder, progress: Progress | None) -> None:
        super().__init__(Path(queue.path).absolute(), folder, progress)
        self._queue = queue
        self._needed = list[str]()

    def run(self) -> Copied:
        """Copy the table, then each file in the order of its cycle, and complete the words."""
        with SafeFolder.at(self._source) as source:
            return self._run(source)

    def _run(self, source: SafeFolder) -> Copied:
        seals = _content_of(source, SEALS)  # so that they speak of no later message
        bring_needed(source, self._folder)
        writes = WritesCopy(source, self._folder, lambda: self._report(f"copying {FOLDER}"))
        writes.before_files()
        if source.has(TABLE):
            self._folder.replace(TABLE, source.read(TABLE))
        cycles = self._queue.cycles
        paths = [Path(self._queue.file_for_cycle(cycle)) for cycle in cycles]
        self._total = sum(path.stat().st_blocks * 512 for path in paths if path.exists())
        files = self._copy_all(source, cycles)
        self._needed = bring_needed(
            source, self._folder
        )  # of messages that were appended meanwhile
        writes.after_files()
        self._remove_others(files)
        for file in files:
            self._copy_times(file)
            if seals is not None and (checksums := _content_of(source, seal_file(file.name))):
                self._folder.replace(seal_file(file.name), checksums)
        if seals is not None:
            self._folder.replace(SEALS, seals)
        self._report("completing")
        self._complete(files)
        last = next((it for it in reversed(files) if it.messages), None)
        roll = self._queue.roll_cycle
        return Copied(
            sum(it.messages for it in files),
            len(files),
            sum(it.end for it in files),
            None if last is None else roll.to_index(last.cycle, last.messages - 1),
        )

    def _copy_all(self, source: SafeFolder, cycles: list[int]) -> list[_File]:
        """
        Copy the files of all cycles; some may be removed meanwhile, the oldest first.

        Where one was, those before it that are gone by now are left out too: they would be before
        a gap that the source does not have.
        """
        files: list[_File] = []
        removed: int | None = None
        for cycle in cycles:
            try:
                found = self._copy_present(source, cycle)
            except FileNotFoundError:
                removed = cycle
                continue
            if found is not None:
                files.append(found)
        while len(files) > 1 and not files[-1].messages and not files[-2].is_ended:
            files.pop()  # a pretoucher made it before its time, and the one before is in use
        if removed is None:
            return files
        left = set(self._queue.cycles)
        return [it for it in files if it.cycle > removed or it.cycle in left]

    def _copy_present(self, source: SafeFolder, cycle: int) -> _File | None:
        """
        Copy a file up to its end, again if another one takes its place meanwhile.

        Raises:
            FileNotFoundError: The file was removed.

        """
        for _ in range(_ATTEMPTS):
            path = Path(self._queue.file_for_cycle(cycle))
            try:
                with source.open(path.name) as opened:
                    found = self._copy(opened.fileno(), path, cycle)
                    seen, now = os.fstat(opened.fileno()), source.stat(path.name)
            except FileNotFoundError:
                if self._queue.file_for_cycle(cycle) == os.fspath(path):
                    raise
                continue  # compressed meanwhile, or decompressed
            if now is None and found is None:
                raise FileNotFoundError(path)
            if now is None or identity_of(now) == identity_of(seen):
                return found  # what was removed since then was whole when it was copied
            self._lengths.pop(path.name, None)
        file = self._queue.file_for_cycle(cycle)
        raise CorruptError(f"the file is replaced again and again: file={file}")

    def _copy(self, source: int, path: Path, cycle: int) -> _File | None:
        """Copy a file up to its end; None if it is still being created."""
        before = self._queue.end_of_cycle(cycle)
        if before is None:
            return None
        head = os.pread(source, min(before[0], _FIRST_DOCUMENT), 0)
        end = self._queue.end_of_cycle(cycle)
        position, messages, is_ended = end or before
        size = os.fstat(source).st_size
        if is_compressed(path.name):
            head, past = b"", size
        else:
            past = min(position + _END_MARK, size) if is_ended else position
        file = _File(path.name, cycle, head, past, messages, is_ended)
        self._copy_bytes(source, file)
        return file

    def _remove_others(self, files: list[_File]) -> None:
        """Remove what an earlier run copied, or this one began, and is no part of the copy."""
        names = {it.name for it in files} | {TABLE, NOTE, FOLDER, *self._needed}
        for name in self._folder.names():
            if name not in names:
                self._folder.remove(name)
                self._lengths.pop(name, None)

    def _copy_bytes(self, source: int, file: _File) -> None:
        known = min(self._lengths.get(file.name, 0), file.end)
        start = self._begun(source, self._folder, file.name, known)
        with self._folder.update(file.name) as target:
            if start == 0:
                start = target.write(file.head)
            self._done += start
            self._copy_range(source, target, file.name, start, file.end)
            target.truncate(file.end if is_compressed(file.name) else _padded(file.end))
        self._lengths[file.name] = file.end

    def _copy_times(self, file: _File) -> None:
        """
        Copy the append times of a cycle, up to the last that speaks only of messages in the copy.

        Those of a writer that noted nothing yet are as after a kill: found by an earlier time.
        """
        name = times_file(file.name)
        with SafeFolder.at(self._source) as folder:
            try:
                source = folder.open(name)
            except (OSError, UnsafePathError):
                return  # there is none, or none to be trusted
        self._folder.remove(name)
        with source, self._folder.create(name) as target:
            target.write(source.read(_TIMES_HEADER))
            while piece := source.read(_TIMES_PIECE):
                known = _known_times(piece, file.messages)
                target.write(known)
                if len(known) < len(piece):
                    return

    def _complete(self, files: list[_File]) -> None:
        """
        Free the locks of the copy, complete its words, and check what it holds.

        Raises:
            CorruptError: The source is damaged.

        """
        path = self._folder.path
        if self._folder.has(TABLE):
            with open_queue(path, create=False, buffer_mode="none") as copy:
                for key in lock_keys(copy):
                    copy._unlock(key, force=True)  # noqa: SLF001 - the package's own
        report = repair(path, dry_run=False)
        wrong = next((it for it in report.after.findings if it.severity != "note"), None)
        if wrong is not None:
            raise self._damaged(wrong)
        with open_queue(path, read_only=True, create=False) as copy:
            for file in files:
                end = copy.end_of_cycle(file.cycle)
                if end is None or end[1] != file.messages:
                    raise CorruptError(
                        "the source changed other than by appends while it was copied:"
                        f" file={self._source / file.name}"
                    )
                if copy._messages_before(file.cycle, 0) is None:  # noqa: SLF001
                    self._folder.remove(times_file(file.name))  # damaged, or out of use


def _content_of(source: SafeFolder, name: str) -> bytes | None:
    """Return what is in a file of seals; None if there is none, or none to be trusted."""
    try:
        return source.read(name, _LONGEST_SEALS)
    except (OSError, UnsafePathError):
        return None


def _known_times(points: bytes, messages: int) -> bytes:
    """Return the first of some points, those that count only this number of messages."""
    words = memoryview(points[: len(points) // 16 * 16]).cast("Q").tolist()
    past = messages + 2  # what a word has above its check is one more than its number
    count = next(
        (
            at // 2
            for at in range(0, len(words), 2)
            if not words[at] or words[at + 1] >> _CHECK_BITS >= past
        ),
        len(words) // 2,
    )
    return points[: count * 16]


def _padded(end: int) -> int:
    """Return the length of a file whose documents end there."""
    return -(-end // _SPARE) * _SPARE + _SPARE
