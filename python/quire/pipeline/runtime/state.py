"""
The state of a pipeline between batches, in one folder.

    <state>/<pipeline>/lock          held by a run, so that no two runs share the folder
                       identity      the name of this state, by which sinks identify its batches
                       sources.json  the sources whose offsets the checkpoint has
                       full          the run of mode full whose rows the outputs hold
                       checkpoint/   Spark's: the offsets of each batch, and which are done
                       kept/<what>/  frames by batch: <number>.full, or <number>.delta on top
                       runs/         the report of each run
                       quarantine/   rows in quarantine, unless the file names another place

What batch *n* saves depends only on what batch *n - 1* saved and on its own rows. So a batch that
is repeated after a kill saves the same, and replaces the files of the first attempt.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from quire._common.durable import PRIVATE, SafeFolder
from quire.errors import LockHeldError, PipelineError, StepError
from quire.pipeline.spec.parts import Source

COMPACT_EVERY: Final = 20
HELD: Final = "-held"
"""After the name of a step, what keeps its rows that wait for their window."""

_FULL: Final = ".full"
_DELTA: Final = ".delta"
_LOCK: Final = "lock"
_IDENTITY: Final = "identity"
_SOURCES: Final = "sources.json"
_FULL_RUN: Final = "full"
_CHECKPOINT: Final = "checkpoint"
_KEPT: Final = "kept"
_RUNS: Final = "runs"
_NAME: Final = re.compile(rb"[0-9a-f]{12}")
_BATCH: Final = re.compile(r"([0-9]{9,18})(\.full|\.delta)")
_HINT: Final = "remove the folder to read everything again"


class State:
    """The folder of one pipeline's state; see the module's docstring."""

    def __init__(self, folder: Path) -> None:
        """Keep the folder's path; :meth:`opened` creates the folder."""
        self.folder = folder
        self.checkpoint = folder / _CHECKPOINT
        self.identity = ""
        self._synced = set[tuple[int, int]]()
        self._checked = set[str]()

    @contextmanager
    def opened(self) -> Generator[None]:
        """
        Hold the folder's lock.

        Raises:
            PipelineError: Another run holds the lock, or the folder is damaged.

        """
        with SafeFolder.at(self.folder, PRIVATE) as root, ExitStack() as stack:
            try:
                stack.enter_context(root.locked(_LOCK))
            except LockHeldError as error:
                raise PipelineError(
                    f"the pipeline is running: state={self.folder} pid={error.holder}"
                ) from None
            root.sweep()
            self.identity = self._identity(root)
            yield

    def _identity(self, root: SafeFolder) -> str:
        """
        Return the name of this state; a new one if Spark has no checkpoint.

        Raises:
            PipelineError: Spark has a checkpoint, but the state's name is missing or damaged.

        """
        if self._has_checkpoint(root):
            with suppress(FileNotFoundError):
                found = root.read(_IDENTITY)
                if _NAME.fullmatch(found):
                    return found.decode()
            raise PipelineError(
                "the identity of the state, by which sinks recognise its batches, is missing or"
                f" damaged: file={self.folder / _IDENTITY} ({_HINT})"
            )
        for left in (_CHECKPOINT, _KEPT, _SOURCES):
            root.remove(left)
        identity = uuid.uuid4().hex[:12]
        root.replace(_IDENTITY, identity.encode())
        return identity

    def _has_checkpoint(self, root: SafeFolder) -> bool:
        try:
            with root.sub(_CHECKPOINT) as checkpoint:
                return checkpoint.has("metadata")
        except FileNotFoundError:
            return False

    def belongs_to(self, sources: Sequence[Source]) -> None:
        """
        Record the streamed sources, in the order of the stream.

        Raises:
            PipelineError: The stored offsets belong to other sources.

        """
        found = [[source.name, source.format, source.path] for source in sources]
        with SafeFolder.at(self.folder) as root:
            if not root.has(_SOURCES) and not self._has_checkpoint(root):
                root.replace(_SOURCES, json.dumps(found).encode())
                return
            expected = self._sources(root)
        if found != expected:
            raise PipelineError(
                f"the state belongs to other sources: state={self.folder}"
                f" expected={_listed(expected)} found={_listed(found)}"
                f" (choose another folder by the key state, or {_HINT})"
            )

    def _sources(self, root: SafeFolder) -> list[list[str]]:
        found: Any = None
        with suppress(FileNotFoundError, ValueError, RecursionError):
            found = json.loads(root.read(_SOURCES))
        if not _are_sources(found):
            raise PipelineError(
                "the list of sources is missing or damaged:"
                f" file={self.folder / _SOURCES} ({_HINT})"
            )
        sources: list[list[str]] = found
        return sources

    def note_full(self, run: str) -> None:
        """Record that a run of mode full begins to replace what the outputs hold."""
        with SafeFolder.at(self.folder) as root:
            root.replace(_FULL_RUN, run.encode())

    def check_not_full(self) -> None:
        """
        Check that the outputs were not written by a run of mode full.

        Raises:
            PipelineError: A run of mode full wrote the outputs; batches would add its rows again.

        """
        with SafeFolder.at(self.folder) as root:
            if root.has(_FULL_RUN):
                raise PipelineError(
                    "the outputs hold what a run of mode full wrote, which one of mode incremental"
                    f" would add again: state={self.folder} (remove the state and the outputs to"
                    " start over, or name others)"
                )

    def check_held(self, spark: SparkSession, steps: Collection[str]) -> None:
        """
        Check that rows that wait for their window are those of steps that still have one.

        Raises:
            PipelineError: No batch would ever pass some of the rows on.

        """
        with SafeFolder.at(self.folder) as root, suppress(FileNotFoundError):
            with root.sub(_KEPT) as kept:
                names = [it.removesuffix(HELD) for it in kept.folders() if it.endswith(HELD)]
            for name in sorted({*names} - {*steps}):
                saved = self._kept(name + HELD)
                count = spark.read.parquet(str(saved[-1][2])).count() if saved else 0
                if count:
                    raise PipelineError(
                        "rows wait for the window of a step that the file does not have:"
                        f" step={name} rows={count} (bring the step and its window back, or give"
                        f" them up: remove {self.folder / _KEPT / (name + HELD)})"
                    )

    def sync_offsets(self) -> None:
        """
        Make the offsets of the current batch durable, before any sink has the batch.

        If a power cut undid them, another batch could get the same number, and sinks that have the
        first one would skip its rows.
        """
        with SafeFolder.at(self.folder) as root, suppress(FileNotFoundError):
            with root.sub(_CHECKPOINT) as checkpoint:
                checkpoint.sync_tree(self._synced)
            root.sync()

    def keep_report(self, run: str, text: str) -> None:
        """Save the report of a run."""
        with SafeFolder.at(self.folder) as root, root.private(_RUNS) as runs:
            runs.replace(f"{run}.json", text.encode())

    def load(
        self, spark: SparkSession, what: str, batch: int, schema: StructType
    ) -> DataFrame | None:
        """
        Return the frame saved before *batch*, with later deltas appended; None if none was.

        Raises:
            StepError: The frame has other columns, which would be read as nulls.

        """
        kept = self._kept(what, batch)
        base = max((it for it in kept if it[1] == _FULL), default=None)
        paths = [str(path) for number, _, path in kept if base is None or number >= base[0]]
        if not paths:
            return None
        if what not in self._checked:
            self._check_columns(spark, what, paths, schema)
            self._checked.add(what)
        return spark.read.schema(schema).parquet(*paths)

    def _check_columns(
        self, spark: SparkSession, what: str, paths: list[str], schema: StructType
    ) -> None:
        saved = spark.read.parquet(paths[-1])
        before, now = _types(saved.schema), _types(schema)
        if before != now and not saved.isEmpty():
            raise StepError(
                f"the step has other columns than the rows it kept: kept={_unlike(before, now)}"
                f" found={_unlike(now, before)} (bring them back, or go on without these rows:"
                f" remove {self.folder / _KEPT / what})"
            )

    def save(self, frame: DataFrame, what: str, batch: int, *, full: bool = True) -> None:
        """Save a frame for the batches after *batch*: all rows, or only the new ones."""
        made = f"{batch:09}.tmp"
        with (
            SafeFolder.at(self.folder) as root,
            root.private(_KEPT) as kept,
            kept.made(what) as folder,
        ):
            for suffix in (_FULL, _DELTA, ".tmp"):
                folder.remove(f"{batch:09}{suffix}")
            frame.write.mode("overwrite").parquet(str(folder.path / made))
            with folder.sub(made) as written:
                written.sync_tree()
            folder.publish(made, f"{batch:09}{_FULL if full else _DELTA}")

    def prune(self, batch: int) -> None:
        """Remove frames that *batch* and later ones do not read."""
        with suppress(FileNotFoundError), SafeFolder.at(self.folder) as root, root.sub(_KEPT) as it:
            for what in it.folders():
                kept = self._kept(what, batch)
                base = max((number for number, kind, _ in kept if kind == _FULL), default=0)
                with it.sub(what) as folder:
                    for number, _, path in kept:
                        if number < base:
                            folder.remove(path.name)

    def _kept(self, what: str, batch: int | None = None) -> list[tuple[int, str, Path]]:
        """
        Return number, kind and path of the saved frames, oldest first.

        Args:
            what: What was saved.
            batch: Only what batches before this one saved; None: all.

        """
        try:
            with SafeFolder.at(self.folder) as root, root.below((_KEPT, what)) as folder:
                names = [it for it in folder.folders() if _BATCH.fullmatch(it)]
                for name in names:
                    folder.sub(name).close()  # no link
        except FileNotFoundError:
            return []
        found = sorted(Path(self.folder, _KEPT, what, name) for name in names)
        return [
            (int(it.stem), it.suffix, it) for it in found if batch is None or int(it.stem) < batch
        ]


def _types(schema: StructType) -> dict[str, str]:
    """Return the types of columns; whether they may be null does not matter."""
    return {it.name.lower(): it.dataType.simpleString() for it in schema}


def _unlike(types: dict[str, str], others: dict[str, str]) -> str:
    """Return the columns that others lack, or have with another type."""
    unlike = [f"{name} {kind}" for name, kind in types.items() if others.get(name) != kind]
    return ", ".join(unlike) or "none"


def _are_sources(found: Any) -> bool:  # noqa: ANN401 - from JSON
    """Whether this is a list of lists of strings."""
    if type(found) is not list:
        return False
    rows: list[Any] = [*found]
    return all(type(row) is list and all(type(it) is str for it in row) for row in rows)


def _listed(sources: list[list[str]]) -> str:
    return "; ".join(" ".join(source) for source in sources)
