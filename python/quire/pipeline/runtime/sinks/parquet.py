"""
Batches in a folder of Parquet files, each once, whatever is killed when.

1. A batch is written to `<path>/_quire/<writer>-<batch>.tmp`, which Parquet readers ignore.
2. When its files are on the medium, renaming that to `.ready` decides: from here on the batch will
   be there.
3. Each file is moved to its place, under a name that starts with the writer and the batch.
4. When their names are on the medium, `<path>/_quire/<writer>` says that the batch is done; the
   staging folder is removed.

A kill, or a power cut, before step 2 leaves a folder that the next attempt removes. After step 2
the next write, whichever batch it is for, first moves what was not moved. A batch that is done is
not written again. The writer is the identity of the pipeline's state, so that batches of another
state with the same numbers are others. With `replace` step 3 begins with removing the former files:
those whose names say that the same pipeline and step wrote them, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from quire._durable import PRIVATE, SafeFolder
from quire.errors import PipelineError

STAGING: Final = "_quire"

_READY: Final = ".ready"
_REPLACE: Final = ".replace"
_SUFFIX: Final = ".parquet"
_BATCH: Final = re.compile(rb"[0-9]{1,18}")


class ParquetFolder:
    """One writer's view of a folder; see the head of the module."""

    def __init__(self, path: str, writer: str, former: str | None = None) -> None:
        """
        Take over what a writer that was killed left.

        Args:
            path: The folder.
            writer: Whose batches are written.
            former: The writers whose files a replacing one removes, as a regular expression.

        Raises:
            PipelineError: The path is an address that is no folder of this machine.

        """
        if ":/" in path and not path.startswith("file:"):
            raise PipelineError(f"a Parquet sink needs a folder that the driver sees: path={path}")
        self._path = Path(unquote(urlsplit(path).path) if path.startswith("file:") else path)
        self._writer = writer
        self._former = re.compile(rf"(?:{former or re.escape(writer)})-\d{{9}}(?=-|$)")

    @property
    def path(self) -> str:
        """The folder."""
        return str(self._path)

    def has(self, batch: int) -> bool:
        """
        Whether a batch is there; what was decided and not finished is finished first.

        Raises:
            PipelineError: The record of the batches is damaged.

        """
        if not (self._path / STAGING).exists():
            return False
        with self._opened() as (folder, staging):
            self._finish(folder, staging)
            return self._last(staging) >= batch

    def write(self, batch: int, write: Callable[[str], None], *, replace: bool = False) -> None:
        """Put the files there which *write* makes in the folder that it is given."""
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
        """Open the folder, and in it the one that batches are staged in."""
        with SafeFolder.at(self._path, PRIVATE) as folder, folder.private(STAGING) as staging:
            yield folder, staging

    def _last(self, staging: SafeFolder) -> int:
        """Return the last batch that is there; -1: none is."""
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
        """Move what was decided."""
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
        """Remove for good the files that the same pipeline and step wrote before."""
        for way in [it for it in folder.tree() if it[:1] != (STAGING,)]:
            with folder.below(way) as inside:
                for name in inside.files(_SUFFIX):
                    if self._former.match(name) and not name.startswith(f"{stem}-"):
                        inside.remove(name)
                inside.sync()

    def _publish(self, folder: SafeFolder, staging: SafeFolder, ready: str, stem: str) -> None:
        """
        Move the files of a batch to their places for good.

        All its folders are synced, also those whose files a run that was killed has moved.
        """
        with staging.sub(ready) as source:
            for way in source.tree():
                with source.below(way) as made, suppress(FileNotFoundError):
                    names = made.files(_SUFFIX)
                    with folder.below(way, make=bool(names)) as place:
                        for name in names:
                            made.move(name, place, f"{stem}-{name}")
                        place.sync()
