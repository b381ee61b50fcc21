"""
Batches in a folder of Parquet files, each once, whatever is killed when.

1. A batch is written to `<path>/_quire/<writer>-<batch>.tmp`, which readers of Parquet pass over.
2. Renaming that to `.ready` decides: from here on the batch will be there.
3. Each file is moved to its place, under a name that starts with the writer and the batch.
4. `<path>/_quire/<writer>` says that the batch is done; the staging folder is removed.

A kill before step 2 leaves a folder that the next attempt removes. After step 2 the next write,
whichever batch it is for, first moves what was not moved. A batch that is done is not written
again. The writer is the identity of the pipeline's state, so that batches of another state with
the same numbers are others. With `replace` step 3 begins with removing the former files: those
whose names say that the same pipeline and step wrote them, and no others.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from quire.pipeline.errors import PipelineError

STAGING: Final = "_quire"

_READY: Final = ".ready"
_REPLACE: Final = ".replace"


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
        self._staging = self._path / STAGING
        self._writer = writer
        self._former = re.compile(rf"(?:{former or re.escape(writer)})-\d{{9}}(?=-|$)")

    @property
    def path(self) -> str:
        """The folder."""
        return str(self._path)

    def has(self, batch: int) -> bool:
        """Whether a batch is there; what was decided and not finished is finished first."""
        self._finish()
        done = self._staging / self._writer
        return done.exists() and int(done.read_text("ascii")) >= batch

    def write(self, batch: int, write: Callable[[str], None], *, replace: bool = False) -> None:
        """Put the files there which *write* makes in the folder that it is given."""
        self._staging.mkdir(parents=True, exist_ok=True)
        self._finish()
        made = self._staging / f"{self._writer}-{batch:09}.tmp"
        shutil.rmtree(made, ignore_errors=True)
        write(str(made))
        made.rename(made.with_suffix(_REPLACE if replace else _READY))
        self._finish()

    def _finish(self) -> None:
        """Move what was decided."""
        for ready in sorted(self._staging.glob(f"{self._writer}-*{_READY}")):
            self._publish(ready)
            written = self._staging / f"{self._writer}.new"
            written.write_text(ready.stem.rpartition("-")[2], "ascii")
            written.replace(self._staging / self._writer)
            shutil.rmtree(ready)
        for ready in sorted(self._staging.glob(f"*{_REPLACE}")):
            if not self._former.fullmatch(ready.stem):
                continue
            for file in self._files(self._path):
                is_new = file.name.startswith(f"{ready.stem}-")
                if self._former.match(file.name) and not is_new:
                    file.unlink()
            self._publish(ready)
            shutil.rmtree(ready)

    def _publish(self, ready: Path) -> None:
        """Move the files of a batch to their places."""
        for file in self._files(ready):
            place = self._path / file.relative_to(ready).parent / f"{ready.stem}-{file.name}"
            place.parent.mkdir(parents=True, exist_ok=True)
            file.rename(place)

    def _files(self, folder: Path) -> list[Path]:
        """Return the data files below a folder, without those that are staged."""
        inside = (
            (file, file.relative_to(folder).parts) for file in sorted(folder.rglob("*.parquet"))
        )
        return [file for file, parts in inside if parts[0] != STAGING and file.is_file()]
