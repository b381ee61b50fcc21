"""
A consistent copy of a Vanilla Chronicle or a Quick-Queue, without a lock.

Both publish a message by an entry of an index, and store the message before it. So the kernel reads
the index first, and says up to where each file is named by it (``_snapshot``). Before that, only
messages that readers change in place do change. It also says which bytes differ in the copy, where
no producer is alive. Positions of named tailers are read first, so that none is ahead of the copy.
Hints are left out, and locks are not held in the copy.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, nullcontext
from io import BufferedWriter
from itertools import groupby
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from quire._common.durable import SafeFolder
from quire._common.sparse_files import data_ranges
from quire.errors import CorruptError, UnsafePathError
from quire.formats.adapters import adapter_of, cycles_of
from quire.formats.protocols import AnyQueue
from quire.maintenance.copy_run import NOTE, Copied, CopyRun, Progress
from quire.maintenance.verification import verify

_POSITION: Final = re.compile(r"\.tailer-.+")
_POSITION_BYTES: Final = 64
_MARK: Final = "quick-queue.lock"
_INDEX: Final = re.compile(r"index-\d+|\d+\.qm?x")
_NOT_FOLLOWED: Final = os.O_NOFOLLOW | os.O_CLOEXEC


class _File(NamedTuple):
    name: str
    used: int
    length: int

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(self.name.split("/")[:-1])


class SnapshotCopy(CopyRun):
    """One run."""

    def __init__(
        self,
        queue: AnyQueue,
        folder: SafeFolder,
        progress: Progress | None,
    ) -> None:
        """Look for what an earlier run left."""
        super().__init__(Path(queue.path).absolute(), folder, progress)
        self._queue = queue

    def run(self) -> Copied:
        """
        Copy positions, then the files as far as the index names them.

        Where retention removes a cycle meanwhile, what is left is copied as it is then; what has
        been copied of it stays.

        Raises:
            CorruptError: The source is damaged.

        """
        positions = self._positions()
        while True:
            places = self._places()
            try:
                return self._run(positions)
            except (CorruptError, FileNotFoundError):
                if all(map(os.path.lexists, places)):
                    raise

    def _places(self) -> list[Path]:
        """Return the directories of the source's cycles."""
        adapter = adapter_of(self._queue)
        if not adapter.is_folder:
            return []
        return [adapter.place(self._queue, cycle) for cycle in cycles_of(self._queue)]

    def _run(self, positions: dict[str, bytes]) -> Copied:
        self._done = 0
        messages, last_index, rows, patches = adapter_of(self._queue).snapshot(self._queue)
        files = sorted(_File(*row) for row in rows)
        self._remove_others({it.name for it in files})
        self._total = sum(it.used for it in files)
        for folders, within in groupby(files, lambda it: it.folders):
            with self._folder.below(folders, make=True) as folder:
                for file in within:
                    self._copy(file, folder)
        for name, position, content in patches:
            self._patch(name, position, content)
        for name, content in positions.items():
            self._folder.replace(name, content)
        if os.path.lexists(self._source / _MARK):
            self._folder.replace(_MARK, b"")
        self._report("checking")
        self._check(messages)
        holding = [it for it in files if it.used]
        return Copied(messages, len(holding), self._total, last_index)

    def _positions(self) -> dict[str, bytes]:
        """Return the files of named tailers: both indexes in them belong together."""
        names = [it for it in os.listdir(self._source) if _POSITION.fullmatch(it)]  # noqa: PTH208 - names
        return {name: self._position(name) for name in names}

    def _position(self, name: str) -> bytes:
        with _opened(self._source, name) as file:
            content = os.pread(file, _POSITION_BYTES, 0)
            while (again := os.pread(file, _POSITION_BYTES, 0)) != content:
                content = again
        return content

    def _remove_others(self, names: set[str]) -> None:
        """Remove what an earlier run copied and the source has no more."""
        needed = {folder.parts for name in names for folder in PurePath(name).parents}
        for folders in reversed(self._folder.tree()):
            with self._folder.below(folders) as folder:
                for name in folder.files(""):
                    if name != NOTE and "/".join((*folders, name)) not in names:
                        folder.remove(name)
            if folders and folders not in needed:
                with self._folder.below(folders[:-1]) as around:
                    around.remove(folders[-1])

    def _copy(self, file: _File, folder: SafeFolder) -> None:
        """
        Copy a file up to its end, and leave its holes as holes.

        An index is copied from its first byte on: an entry that was pending in an earlier run may
        be complete now.
        """
        name = file.name.rsplit("/", maxsplit=1)[-1]
        known = 0 if _INDEX.fullmatch(name) else min(self._lengths.get(file.name, 0), file.used)
        with _opened(self._source, file.name) if known else nullcontext(-1) as source:
            start = self._begun(source, folder, name, known)
        self._done += start
        with folder.update(name) as target:
            if start < file.used:
                self._copy_data(file, start, target)
            target.truncate(file.length)
        self._lengths[file.name] = file.used

    def _copy_data(self, file: _File, start: int, target: BufferedWriter) -> None:
        end_done = self._done + file.used - start
        with _opened(self._source, file.name) as source:
            for first, end in data_ranges(source, start, file.used):
                self._copy_range(source, target, file.name, first, end)
        self._done = end_done

    def _patch(self, name: str, position: int, content: bytes) -> None:
        *folders, file = name.split("/")
        with self._folder.below(folders) as folder, folder.update(file) as target:
            target.seek(position)
            target.write(content)

    def _check(self, messages: int) -> None:
        report = verify(self._folder.path)
        wrong = next((it for it in report.findings if it.severity != "note"), None)
        if wrong is not None:
            raise self._damaged(wrong)
        if report.messages != messages:
            raise CorruptError(
                "the source changed other than by appends while it was copied:"
                f" path={self._source} messages={messages} copied={report.messages}"
            )


@contextmanager
def _opened(base: Path, name: str) -> Generator[int]:
    """
    Open a file below a directory to read. No link is followed.

    Raises:
        CorruptError: The file was removed.
        UnsafePathError: The entry is a link or not a regular file.

    """
    *folders, file = name.split("/")
    with ExitStack() as handles:
        try:
            handle = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            handles.callback(os.close, handle)
            for folder in folders:
                flags = os.O_RDONLY | os.O_DIRECTORY | _NOT_FOLLOWED
                handle = os.open(folder, flags, dir_fd=handle)
                handles.callback(os.close, handle)
            handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | _NOT_FOLLOWED, dir_fd=handle)
            handles.callback(os.close, handle)
        except FileNotFoundError:
            raise CorruptError(
                f"a file was removed while the queue was copied: file={base / name}"
            ) from None
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                raise
            raise _unsafe(base, name) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _unsafe(base, name)
        yield handle


def _unsafe(base: Path, name: str) -> UnsafePathError:
    return UnsafePathError(f"a link, or not a plain file: path={base / name} (remove it)")
