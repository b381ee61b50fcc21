"""
Copying the records of Spark's writes to a queue: which batches are done, and which unfinished.

The records are copied before the files, so that each batch that they call done is in the copy as a
whole, and once more after them for the batches that were begun meanwhile. How far a batch came is
found by its marks in the files of the copy, not by its manifest. What the records say is checked by
who finishes the write in the copy, as it is in the queue; here nothing is believed, no link is
followed, and what cannot be copied is left out with a warning.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from quire._common.durable import SafeFolder
from quire._common.sparse_files import copy_sparse
from quire.errors import UnsafePathError
from quire.maintenance.sink_writes import DONE, FOLDER, MANIFEST, WRONG, done_in

_LOG: Final = logging.getLogger("quire")
_ATTEMPTS: Final = 8
_NOT_TO_READ: Final = (UnsafePathError, PermissionError)
_LONGEST_RECORD: Final = 4096


class WritesCopy:
    """
    Copies the records.

    Args:
        source: The queue's directory.
        dest: That of the copy.
        check: Called now and then; what it raises ends the copy.

    """

    def __init__(self, source: SafeFolder, dest: SafeFolder, check: Callable[[], object]) -> None:
        """Copy nothing yet."""
        self._source, self._dest, self._check = source, dest, check
        self._left = set[str]()

    def before_files(self) -> None:
        """Copy the records, in place of those of an earlier run."""
        self._dest.remove(FOLDER)
        self._each_writer(self._all_of)

    def after_files(self) -> None:
        """Copy what was begun while the files were copied, and log what is left out."""
        self._each_writer(self._begun_since)
        if self._left:
            _LOG.warning(
                "the copy lacks records of Spark's writes: an unfinished write cannot be completed"
                " there, and a batch that is repeated there is appended again: writes=%s path=%s"
                " (see quire.spark.finish)",
                ",".join(sorted(self._left)),
                self._source.path,
            )

    def _each_writer(self, copy: Callable[[SafeFolder, str], None]) -> None:
        try:
            with self._source.sub(FOLDER) as root:
                for writer in root.folders():
                    self._one_writer(root, writer, copy)
        except FileNotFoundError:
            return
        except _NOT_TO_READ:
            self._left.add(FOLDER)

    def _one_writer(
        self, root: SafeFolder, writer: str, copy: Callable[[SafeFolder, str], None]
    ) -> None:
        try:
            with root.sub(writer) as own:
                copy(own, writer)
        except FileNotFoundError:
            return  # it is forgotten
        except _NOT_TO_READ:
            self._left.add(writer)

    def _all_of(self, own: SafeFolder, writer: str) -> None:
        """Copy unfinished batches, and the record of the last finished one; again if one ends."""
        copied, ended, done = set[str](), list[str](), None
        for _ in range(_ATTEMPTS):
            done = _record_of(own)
            begun = [it for it in _begun(own) if it not in copied]
            ended = [it for it in begun if not self._is_copied(own, writer, it)]
            copied.update(it for it in begun if it not in ended)
            if not ended and _record_of(own) == done:
                break
        else:
            self._left.update(f"{writer}/{it}" for it in ended)
        if done is not None:
            with self._there(writer) as there:
                there.replace(DONE, done)

    def _begun_since(self, own: SafeFolder, writer: str) -> None:
        """Copy batches begun meanwhile; one that has also ended may be in the copy in part."""
        if writer in self._left:
            return
        last = done_in(own)
        with self._there(writer) as there:
            before, known = done_in(there), there.folders()
        begun = [it for it in _begun(own) if it not in known]
        ended = [it for it in begun if not self._is_copied(own, writer, it)]
        if last is not None and before is not None and last > before and str(last) not in known:
            ended.append(str(last))
        self._left.update(f"{writer}/{it}" for it in ended)

    def _is_copied(self, own: SafeFolder, writer: str, batch: str) -> bool:
        """Copy a batch, or leave it out if it cannot be; False if it ended, or lacks parts."""
        is_there, is_safe = False, True
        with self._there(writer) as there:
            there.remove(batch)
            try:
                with own.sub(batch) as folder:
                    is_safe = self._copy_batch(folder, there, batch)
                    is_there = folder.has(MANIFEST)  # which goes before the parts
            except FileNotFoundError:
                is_there = False
            except _NOT_TO_READ:
                is_safe = False
            if not is_there or not is_safe:
                there.remove(batch)
        if not is_safe:
            self._left.add(f"{writer}/{batch}")
        return is_there or not is_safe

    def _copy_batch(self, folder: SafeFolder, around: SafeFolder, batch: str) -> bool:
        """
        Copy a manifest with the parts that it names; False if they are elsewhere.

        Raises:
            FileNotFoundError: The batch has ended, or a part of it was removed.
            UnsafePathError: The manifest or a part is a link, or not a regular file.

        """
        manifest = folder.read(MANIFEST)
        parts = _parts_in(manifest)
        if parts is None:
            return False
        if missing := parts - {*folder.names()}:
            raise FileNotFoundError(next(iter(missing)))
        with around.made(batch) as there:
            for name in sorted(parts):
                with folder.open(name) as part, there.create(name) as copy:
                    copy_sparse(part, copy, self._check)
            there.replace(MANIFEST, manifest)
        return True

    @contextmanager
    def _there(self, writer: str) -> Generator[SafeFolder]:
        """Open the folder of a writer in the copy."""
        with self._dest.made(FOLDER) as root, root.made(writer) as own:
            yield own


def _record_of(own: SafeFolder) -> bytes | None:
    """Return what a writer's record holds; None if it has none."""
    return own.read(DONE, _LONGEST_RECORD) if own.has(DONE) else None


def _begun(own: SafeFolder) -> list[str]:
    """Return the batches of a writer that have a manifest, or are not folders."""
    found = list[str]()
    for batch in filter(str.isdecimal, own.folders()):
        try:
            with own.sub(batch) as folder:
                if folder.has(MANIFEST):
                    found.append(batch)
        except FileNotFoundError:
            continue
        except UnsafePathError:
            found.append(batch)
    return found


def _parts_in(manifest: bytes) -> set[str] | None:
    """Return the files that a manifest names; None if they are elsewhere, or it is invalid."""
    try:
        found: Any = json.loads(manifest)
        return None if found["elsewhere"] is not False else {str(it[0]) for it in found["parts"]}
    except WRONG:
        return None
