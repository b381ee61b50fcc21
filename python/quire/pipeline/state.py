"""
What a pipeline keeps between its batches, in one folder.

    <state>/<pipeline>/lock          held while it runs, so that no two runs share the folder
                       identity      names this state: sinks know its batches by it
                       sources.json  the sources whose offsets the checkpoint has
                       checkpoint/   Spark's: which offsets each batch reads, which are done
                       kept/<what>/  frames by batch: <number>.full, or <number>.delta on top
                       runs/         the report of each run
                       quarantine/   rows in quarantine, if the file names no other place

What batch *n* keeps is made of what batch *n - 1* kept and of the batch's rows. A batch that is run
again after a kill therefore keeps the same, and replaces what the first attempt left.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from quire.pipeline.errors import PipelineError
from quire.pipeline.spec import Source

COMPACT_EVERY: Final = 20

_FULL: Final = ".full"
_DELTA: Final = ".delta"


class State:
    """The folder of one pipeline's state; see the head of the module."""

    def __init__(self, folder: Path) -> None:
        """Remember the folder; nothing is made before :meth:`opened`."""
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.identity = ""

    @contextmanager
    def opened(self) -> Generator[None]:
        """
        Hold the folder's lock.

        Raises:
            PipelineError: Another run holds it.

        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a+") as lock:
            _take(lock, self.folder)
            self.identity = self._identity()
            yield

    def _identity(self) -> str:
        """Return the name of this state: a new one where Spark's checkpoint is not there."""
        place = self.folder / "identity"
        if place.exists() and (self.checkpoint / "metadata").exists():
            return place.read_text("ascii")
        for left in (self.checkpoint, self.folder / "kept"):
            shutil.rmtree(left, ignore_errors=True)
        self._sources.unlink(missing_ok=True)
        identity = uuid.uuid4().hex[:12]
        written = place.with_suffix(".tmp")
        written.write_text(identity, "ascii")
        written.replace(place)
        return identity

    @property
    def _sources(self) -> Path:
        return self.folder / "sources.json"

    def belongs_to(self, sources: Sequence[Source]) -> None:
        """
        Remember the sources that are followed, in the order of the stream.

        Raises:
            PipelineError: The state is that of others: its offsets would be taken for theirs.

        """
        found = [[source.name, source.format, source.path] for source in sources]
        if not self._sources.exists():
            written = self._sources.with_suffix(".tmp")
            written.write_text(json.dumps(found), "utf-8")
            written.replace(self._sources)
            return
        expected = json.loads(self._sources.read_text("utf-8"))
        if found != expected:
            raise PipelineError(
                f"the state is that of other sources: state={self.folder}"
                f" expected={_told(expected)} found={_told(found)}"
                " (name another state:, or remove the folder to read everything again)"
            )

    def before(
        self, spark: SparkSession, what: str, batch: int, schema: StructType
    ) -> DataFrame | None:
        """Return the frame kept before *batch*, with rows of later ones behind; None at first."""
        kept = self._kept(what, batch)
        base = max((it for it in kept if it[1] == _FULL), default=None)
        paths = [str(path) for number, _, path in kept if base is None or number >= base[0]]
        return spark.read.schema(schema).parquet(*paths) if paths else None

    def keep(self, frame: DataFrame, what: str, batch: int, *, full: bool = True) -> None:
        """Keep a frame for the batches behind *batch*: all there is, or what is new."""
        folder = self.folder / "kept" / what
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in (_FULL, _DELTA):
            shutil.rmtree(folder / f"{batch:09}{suffix}", ignore_errors=True)
        made = folder / f"{batch:09}.tmp"
        frame.write.mode("overwrite").parquet(str(made))
        made.rename(folder / f"{batch:09}{_FULL if full else _DELTA}")

    def forget(self, batch: int) -> None:
        """Remove what no batch from *batch* on reads."""
        for folder in (self.folder / "kept").glob("*"):
            kept = self._kept(folder.name, batch)
            base = max((number for number, kind, _ in kept if kind == _FULL), default=0)
            for number, _, path in kept:
                if number < base:
                    shutil.rmtree(path, ignore_errors=True)

    def _kept(self, what: str, batch: int) -> list[tuple[int, str, Path]]:
        """Return number, kind and place of what batches before *batch* kept, oldest first."""
        found = sorted((self.folder / "kept" / what).glob("[0-9]*"))
        whole = [path for path in found if path.suffix in (_FULL, _DELTA)]
        return [(int(it.stem), it.suffix, it) for it in whole if int(it.stem) < batch]


def _told(sources: list[list[str]]) -> str:
    return "; ".join(" ".join(source) for source in sources)


def _take(lock: IO[str], folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        raise PipelineError(
            f"the pipeline is running: state={folder} pid={lock.read().strip() or 'unknown'}"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
