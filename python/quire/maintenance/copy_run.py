"""What copies of all formats share: what they return, their progress, and how they are resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import BufferedWriter
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from quire._common.durable import SafeFolder
from quire.errors import CorruptError
from quire.maintenance.findings import Finding

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with what is being done, how many bytes are done, and how many there are."""

NOTE: Final = "copy.json"
_PIECE: Final = 1 << 20
_BETWEEN_NOTES: Final = 256 << 20


class Copied(NamedTuple):
    """
    The result of a copy.

    Attributes:
        messages: How many messages.
        files: How many files hold them: roll files, or those of index and data.
        bytes: How many bytes of them.
        last_index: The index of the last message; None if there is none.
        pending: How many messages waited in the ring of asynchronous appends when the copy began:
            the copy lacks those that were not appended meanwhile.

    Examples:
        >>> _ = appender.write_text("hello")
        >>> quire.copy_queue(queue.path, "backup").messages
        1

    """

    messages: int
    files: int
    bytes: int
    last_index: int | None
    pending: int = 0


class CopyRun:
    """One run: what an earlier one left is kept as far as it is durable."""

    def __init__(self, source: Path, folder: SafeFolder, progress: Progress | None) -> None:
        """Look for what an earlier run left in the folder."""
        self._source = source
        self._folder = folder
        self._progress = progress
        self._lengths = self._resumed()
        self._synced = set[tuple[int, int]]()
        self._total = 0
        self._done = 0
        self._noted = 0

    def _resumed(self) -> dict[str, int]:
        """Return how many bytes of each file are durable; begin again after a run of another."""
        name = str(self._source)
        if self._folder.has(NOTE):
            note: dict[str, Any] = json.loads(self._folder.read(NOTE))
            if note.get("source") == name:
                return dict(note["files"])
        for left in self._folder.names():
            self._folder.remove(left)
        return {}

    def _kept(self, source: int, folder: SafeFolder, name: str, length: int) -> int:
        """
        Return where to go on with a file, whose first bytes an earlier run noted as durable.

        The name alone says nothing: another file may have it now, or a repair may have changed the
        first bytes. So they are compared, and the file is copied from its start if they differ.
        """
        if not length or not folder.has(name):
            return 0
        with folder.open(name) as kept:
            for at in range(0, length, _PIECE):
                piece = min(_PIECE, length - at)
                if os.pread(source, piece, at) != kept.read(piece):
                    return 0
        return length

    def _begun(self, source: int, folder: SafeFolder, name: str, known: int) -> int:
        """Return where to go on with a file; it is made again unless its first bytes are kept."""
        start = self._kept(source, folder, name, known)
        if start == 0:
            folder.remove(name)
            folder.create(name).close()
        return start

    def _damaged(self, finding: Finding) -> CorruptError:
        """Return the error about what a check of the copy found, as it is in the source."""
        file = self._source / Path(finding.file).absolute().relative_to(self._folder.path)
        return CorruptError(
            "the source is damaged: see what quire.verify finds, and repair it:"
            f" kind={finding.kind} file={file} position={finding.position} found={finding.found}"
        )

    def _copy_range(
        self, source: int, target: BufferedWriter, name: str, start: int, end: int
    ) -> None:
        """
        Copy bytes of a file, whose name below the queue's directory is given.

        Raises:
            CorruptError: The file ends before *end*.

        """
        target.seek(start)
        for at in range(start, end, _PIECE):
            length = min(_PIECE, end - at)
            if target.write(os.pread(source, length, at)) < length:
                path = self._source / name
                raise CorruptError(f"the file became shorter while it was copied: file={path}")
            self._done += length
            self._lengths[name] = at + length
            self._report(f"copying {name}")
            if self._done - self._noted >= _BETWEEN_NOTES:
                target.flush()
                self._note()

    def _note(self) -> None:
        """Make what was copied durable, and note how much that is."""
        self._folder.sync_tree(self._synced)
        note = {"source": str(self._source), "files": self._lengths}
        self._folder.replace(NOTE, json.dumps(note).encode())
        self._noted = self._done

    def _report(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, self._done, max(self._done, self._total))
