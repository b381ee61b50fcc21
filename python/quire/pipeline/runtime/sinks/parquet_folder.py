"""
A folder of Parquet files to which each batch is added exactly once, despite kills.

1. A batch is written to `<path>/_quire/<writer>-<batch>.tmp`, which Parquet readers ignore.
2. When its files are durable, renaming that to `.ready` commits the batch.
3. Each file is moved to its place, under a name that starts with the writer and the batch.
4. When their names are durable, `<path>/_quire/<writer>` records the batch as done; the staging
   folder is removed.

A kill or power cut before step 2 leaves a folder that the next attempt removes. After step 2 the
next write, of any batch, first moves the files that are left. A batch that is done is not written
again. The writer is the identity of the pipeline's state, so batches of another state with the same
numbers are distinct. With `replace`, step 3 begins by removing the former files: only those whose
names say that the same pipeline and step wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from quire._common.durable import PRIVATE, SafeFolder
from quire.errors import PipelineError

STAGING: Final = "_quire"

_READY: Final = ".ready"
_REPLACE: Final = ".replace"
_SUFFIX: Final = ".parquet"
_BATCH: Final = re.compile(rb"[0-9]{1,18}")


class ParquetFolder:
    """One writer's view of a folder; see the module's docstring."""

    def __init__(self, path: str, writer: str, former: str | None = None) -> None:
        """
        Take the folder, which :meth:`write` creates.

        Args:
            path: The folder.
            writer: The writer of the batches.
            former: A regular expression of the writers whose files `replace` removes.

        Raises:
            PipelineError: The path is a URL.

        """
        if ":/" in path and not path.startswith("file:"):
            raise PipelineError(
                f"a Parquet sink needs a folder in a mounted file system: path={path}"
            )
        self._path = Path(unquote(urlsplit(path).path) if path.startswith("file:") else path)
        self._writer = writer
        self._former = re.compile(rf"(?:{former or re.escape(writer)})-\d{{9}}(?=-|$)")

    @property
    def path(self) -> str:
        """The folder."""
        return str(self._path)

    def has(self, batch: int) -> bool:
        """
        Whether a batch has been written; completes a committed batch first.

        Raises:
            PipelineError: The record of the batches is damaged.

        """
        if not (self._path / STAGING).exists():
            return False
        with self._opened() as (folder, staging):
            self._finish(folder, staging)
            return self._last(staging) >= batch

    def write(self, batch: int, write: Callable[[str], None], *, replace: bool = False) -> None:
        """Add the files that *write* creates in the folder passed to it."""
        with self._opened() as (folder, staging):
            self._finish(folder, staging)
            made = f"{self._writer}-{batch:09}"
            staging.remove(f"{made}.tmp")
            write(str(staging.path / f"{made}.tmp"))
            with staging.sub(f"{made}.tmp") as written:
                written.sync_tree()
            staging.publish(f"{made}.tmp", f"{made}{_REPLACE if replace else _READY}")
            self._finish(folder, staging)

    @contextmanager
    def _opened(self) -> Generator[tuple[SafeFolder, SafeFolder]]:
        """Open the folder and its staging folder."""
        with SafeFolder.at(self._path, PRIVATE) as folder, folder.private(STAGING) as staging:
            yield folder, staging

    def _last(self, staging: SafeFolder) -> int:
        """Return the last batch that is done; -1 if none is."""
        try:
            found = staging.read(self._writer)
        except FileNotFoundError:
            return -1
        if not _BATCH.fullmatch(found):
            raise PipelineError(
                f"the record of batches is damaged: file={staging.path / self._writer}"
                f" found={found[:20]!r} (without it, a batch that comes again is written again)"
            )
        return int(found)

    def _finish(self, folder: SafeFolder, staging: SafeFolder) -> None:
        """Complete the committed batches."""
        staging.sweep()
        names = staging.folders()
        for ready in [it for it in names if self._is_mine(it)]:
            stem = ready.removesuffix(_READY)
            self._publish(folder, staging, ready, stem)
            number = int(stem.rpartition("-")[2])
            staging.replace(self._writer, b"%d" % max(number, self._last(staging)))
            staging.remove(ready)
            staging.sync()
        for ready in [it for it in names if it.endswith(_REPLACE)]:
            stem = ready.removesuffix(_REPLACE)
            if self._former.fullmatch(stem):
                self._remove_former(folder, stem)
                self._publish(folder, staging, ready, stem)
                staging.remove(ready)
                staging.sync()

    def _is_mine(self, name: str) -> bool:
        return re.fullmatch(rf"{re.escape(self._writer)}-\d{{9,18}}{_READY}", name) is not None

    def _remove_former(self, folder: SafeFolder, stem: str) -> None:
        """Durably remove the files that the same pipeline and step wrote before."""
        for way in [it for it in folder.tree() if it[:1] != (STAGING,)]:
            with folder.below(way) as inside:
                for name in inside.files(_SUFFIX):
                    if self._former.match(name) and not name.startswith(f"{stem}-"):
                        inside.remove(name)
                inside.sync()

    def _publish(self, folder: SafeFolder, staging: SafeFolder, ready: str, stem: str) -> None:
        """
        Durably move the files of a batch to their places.

        All its folders are synced, including those whose files a killed run has moved.
        """
        with staging.sub(ready) as source:
            for way in source.tree():
                with source.below(way) as made, suppress(FileNotFoundError):
                    names = made.files(_SUFFIX)
                    with folder.below(way, make=bool(names)) as place:
                        for name in names:
                            made.move(name, place, f"{stem}-{name}")
                        place.sync()
