"""Converting a queue into another format: compare, append the missing messages, verify."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from quire._common import arguments
from quire._common.durable import PRIVATE, SafeFolder, locked_directory, named_error
from quire._common.optional_arrow import need_arrow
from quire._native import RollCycle
from quire.converting.mapping import FILE, MapWriter, Settings
from quire.converting.message_runs import Source
from quire.converting.target import (
    PARQUET,
    QueueTarget,
    Target,
    has_cycles,
    roll_cycle_for,
    step_of,
)
from quire.errors import ConvertError
from quire.formats.columns import Columns
from quire.formats.detection import FORMATS
from quire.handles.base import Queue
from quire.maintenance.left_out import warn_left_out
from quire.opening.discovery import result_path
from quire.opening.opener import opened_whole
from quire.ranges.damage import ON_DAMAGE, Lost

Progress: TypeAlias = Callable[[str, int, int], object]
"""Called with the name of the step, the number of messages done, and their total number."""

INTO: Final = (*FORMATS, PARQUET)
_TEMPORARY: Final = re.compile(rf"\.{re.escape(FILE)}\.[0-9a-f]+\.tmp")


@dataclass(frozen=True, slots=True)
class Converted:
    """
    The result of a conversion.

    Attributes:
        messages: The number of messages in the result.
        written: How many of them this run wrote; the result already had the others.
        skipped: The number of messages left out because the format cannot hold them.
        last: The index of the last message in the result; None if there is none.
        lost: The ranges of the source that could not be read and were skipped, in order.

    Examples:
        >>> _ = appender.write_many([b"one", b"two"])
        >>> done = quire.convert(queue, "moved", into="quick-queue")
        >>> done.messages, done.written, done.skipped, done.last
        (2, 2, 0, 16)

    """

    messages: int
    written: int
    skipped: int
    last: int | None
    lost: tuple[Lost, ...] = ()


def convert(  # noqa: PLR0913 - by keywords
    source: Queue | str | PathLike[str],
    dest: str | PathLike[str],
    *,
    into: Literal["chronicle", "vanilla", "quick-queue", "parquet"],
    roll_cycle: str | RollCycle | None = None,
    block_bytes: int | None = None,
    skip: bool = False,
    on_damage: Literal["stop", "skip"] = "stop",
    progress: Progress | None = None,
) -> Converted:
    """
    Write the messages of a queue to a new queue of another format, or to Parquet files.

    Messages keep their order and their bytes. Once the result is complete, it is compared with the
    source, and only then is the map of indexes published: see :class:`IndexMap`. Repeat a
    conversion that was interrupted or killed to resume it, or to add new messages of the source.

    A message goes into the cycle of the result in which its cycle in the source starts. Messages of
    a Quick-Queue or an Indexed Chronicle, which have no cycles, go into the cycle in which the
    conversion began.

    Args:
        source: The queue, or its directory. It is only read; metadata is left out.
        dest: The directory of the result: a new or an empty one.
        into: The format of the result. ``parquet`` has the columns ``_index`` and ``payload``.
        roll_cycle: The roll cycle of the result; None: one of the same period as the source's, or
            a day.
        block_bytes: ``block_bytes`` of a Chronicle Queue, which holds messages up to a quarter of
            it (default: as large as the messages need); ``data_block_bytes`` of a Vanilla
            Chronicle; ``page_bytes`` of a Quick-Queue.
        skip: Leave out messages that the format cannot hold: too long ones, and empty ones except
            in a Vanilla Chronicle and Parquet. Otherwise the first of them is an error.
        on_damage: ``skip`` continues after messages of a Chronicle Queue that cannot be read, and
            lists them in ``lost``; ``stop`` raises.
        progress: Called from time to time.

    Raises:
        ConvertError: *dest* does not hold this conversion; the format cannot hold a message; or
            another process writes to either side.
        CorruptError: A message cannot be read, and damage is not skipped.
        ValueError: An option does not go with *into*.

    Examples:
        >>> index = appender.write_text("hello")
        >>> result = quire.convert(queue, "moved", into="vanilla")
        >>> result.messages, result.written, result.skipped
        (1, 1, 0)
        >>> with quire.open("moved") as moved, moved.tailer() as tailer:
        ...     tailer.move_to_index(quire.converting.IndexMap("moved")[index])
        True

    """
    arguments.one_of(*INTO)("into", into)
    asked = _Asked(into, _roll_cycle(into, roll_cycle), _block_bytes(into, block_bytes))
    arguments.flag("skip", skip)
    arguments.one_of(*ON_DAMAGE)("on_damage", on_damage)
    arguments.optional(arguments.function())("progress", progress)
    path = result_path("dest", dest)
    if into == PARQUET:
        need_arrow()
    with opened_whole(source) as queue:
        _check_apart(Path(queue.path), path)
        warn_left_out(queue.path, "conversion")
        plan = Source(queue, skips=on_damage == "skip")
        with SafeFolder.at(path, create=PRIVATE) as folder, _locked(path):
            settings = _settings(folder, plan, asked)
            with closing(_target(folder, settings, plan)) as target:
                return Conversion(plan, folder, settings, target, progress, skip=skip).run()


class _Asked(NamedTuple):
    into: str
    roll_cycle: str | None
    block_bytes: int | None


@dataclass(frozen=True, slots=True)
class _Skipped:
    index: int
    length: int


class Conversion:
    """
    One run of a conversion.

    Args:
        source: The source.
        folder: The directory of the result, locked.
        settings: The settings with which the conversion began.
        target: The result.
        progress: Called from time to time.
        skip: Leave out messages that the target cannot hold.

    """

    def __init__(  # noqa: PLR0913 - what it works on
        self,
        source: Source,
        folder: SafeFolder,
        settings: Settings,
        target: Target,
        progress: Progress | None,
        *,
        skip: bool,
    ) -> None:
        """Read and write nothing yet."""
        self._source = source
        self._folder = folder
        self._settings = settings
        self._target = target
        self._progress = progress
        self._skip = skip
        self._done = 0

    def run(self) -> Converted:
        """
        Write the messages that the result lacks, and verify the result.

        Raises:
            ConvertError: *dest* does not hold this conversion, or a message cannot be converted.

        """
        steps = self._steps()
        with MapWriter(self._folder, self._settings) as found:
            rest = self._compared(steps, found, "comparing")
            if rest is None:
                return self._verified(found, written=0)
        written = self._append(rest, steps)
        with MapWriter(self._folder, self._settings) as found:
            if self._compared(self._steps(), found, "verifying") is not None:
                raise ConvertError(
                    f"messages of the result are gone: found={found.messages}"
                    f" path={self._folder.path}"
                )
            return self._verified(found, written=written)

    def _verified(self, found: MapWriter, *, written: int) -> Converted:
        if len(more := self._target.read(1)):
            raise self._mismatch(more.indexes[0], "more messages than the source")
        self._folder.sync_tree()
        found.publish()
        lost = self._source.lost
        return Converted(found.messages, written, found.skipped, found.last, lost)

    def _steps(self) -> Iterator[Columns | _Skipped]:
        """Yield the messages for the target, in runs, and those that are left out."""
        self._done = 0
        for run in self._source.runs():
            if self._holds(run):
                yield run
            else:
                yield from self._split(run)

    def _holds(self, run: Columns) -> bool:
        """Whether the target can hold all messages of a run."""
        has_empty = len(set(run.offsets)) <= len(run)
        return len(run.data) <= self._target.longest and not (has_empty and self._target.shortest)

    def _split(self, run: Columns) -> Iterator[Columns | _Skipped]:
        first = 0
        for place in range(len(run)):
            length = run.offsets[place + 1] - run.offsets[place]
            if self._target.shortest <= length <= self._target.longest:
                continue
            if first < place:
                yield run.part(first, place)
            first = place + 1
            skipped = _Skipped(run.indexes[place], length)
            if not self._skip:
                raise self._unfit(skipped)
            yield skipped
        if first < len(run):
            yield run.part(first, len(run))

    def _compared(
        self, steps: Iterator[Columns | _Skipped], found: MapWriter, what: str
    ) -> Columns | None:
        """Compare with the target; return the rest of the run in which the target ends."""
        self._target.rewind()
        for step in steps:
            if isinstance(step, _Skipped):
                found.skip(step.index, step.length)
                continue
            rest = step
            while len(rest):
                there = self._target.read(len(rest))
                if not len(there):
                    return rest
                self._check_same(rest.part(0, len(there)), there)
                found.add_run(rest.indexes[0], there.indexes)
                rest = rest.part(len(there), len(rest))
            self._report(what, len(step))
        return None

    def _check_same(self, expected: Columns, there: Columns) -> None:
        if self._target.keeps_indexes and expected.indexes.tolist() != there.indexes.tolist():
            raise self._mismatch(there.indexes[0], "other indexes")
        if bytes(expected.data) == bytes(there.data) and bytes(expected.offsets) == bytes(
            there.offsets
        ):
            return
        numbers = range(len(there))
        number = next(it for it in numbers if expected.payload(it) != there.payload(it))
        raise self._mismatch(there.indexes[number], "another message")

    def _append(self, rest: Columns, steps: Iterator[Columns | _Skipped]) -> int:
        written = self._write(rest)
        for step in steps:
            if isinstance(step, Columns):
                written += self._write(step)
        self._target.finish()
        return written

    def _write(self, chunk: Columns) -> int:
        time_ms = self._source.time_ms(chunk.indexes[0])
        self._target.append(chunk, self._settings.time_ms if time_ms is None else time_ms)
        self._report("converting", len(chunk))
        return len(chunk)

    def _report(self, what: str, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(what, self._done, max(self._done, self._source.messages))

    def _unfit(self, message: _Skipped) -> ConvertError:
        target = self._target
        return ConvertError(
            f"the format cannot hold a message: index={message.index:#x} length={message.length}"
            f" limits={target.shortest}..{target.longest} into={self._settings.into}"
            " (larger blocks hold longer messages; skip leaves such messages out)"
        )

    def _mismatch(self, index: int, what: str) -> ConvertError:
        return ConvertError(
            f"the result does not hold the beginning of the source, but {what}:"
            f" index={index:#x} path={self._folder.path} (use a directory that does not exist)"
        )


def _roll_cycle(into: str, given: str | RollCycle | None) -> str | None:
    if given is not None and not has_cycles(into):
        raise ValueError(f"the format has no cycles: into={into} roll_cycle={given}")
    name = given.name if isinstance(given, RollCycle) else given
    return cast("str | None", arguments.optional(arguments.text)("roll_cycle", name))


def _block_bytes(into: str, given: int | None) -> int | None:
    if given is not None and into == PARQUET:
        raise ValueError(f"the format has no blocks: into={into} block_bytes={given}")
    check = arguments.optional(arguments.whole(1, 2**40))
    return cast("int | None", check("block_bytes", given))


def _check_apart(source: Path, dest: Path) -> None:
    source, dest = source.resolve(), dest.resolve()
    if dest.is_relative_to(source):
        raise ValueError(f"cannot convert a queue into its own directory: dest={dest}")


@contextmanager
def _locked(path: Path) -> Generator[None]:
    try:
        with locked_directory(path):
            yield
    except BlockingIOError:
        raise ConvertError(
            "another process converts into this directory, or runs a service with it as output:"
            f" path={path}"
        ) from None
    except OSError as error:
        if error.filename or error.errno is None:
            raise
        raise named_error(error, path) from error


def _settings(folder: SafeFolder, source: Source, asked: _Asked) -> Settings:
    """
    Return the settings of the conversion in a directory, or begin one there.

    Raises:
        ConvertError: The directory holds other files, or another conversion.

    """
    names = [name for name in folder.names() if not _TEMPORARY.fullmatch(name)]
    if names and FILE not in names:
        raise ConvertError(
            "the directory is not empty, and not the result of a conversion:"
            f" path={folder.path} found={names[0]}"
        )
    folder.sweep()
    if len(names) > 1:
        return _resumed(folder, source, asked)
    settings = Settings(
        source=source.queue.path,
        source_format=source.adapter.name,
        into=asked.into,
        source_step=source.step,
        step=step_of(asked.into, source),
        time_ms=time.time_ns() // 1_000_000,
        roll_cycle=asked.roll_cycle or roll_cycle_for(asked.into, source),
        block_bytes=asked.block_bytes,
    )
    folder.replace(FILE, settings.line())
    return settings


def _resumed(folder: SafeFolder, source: Source, asked: _Asked) -> Settings:
    """
    Return the settings with which a conversion began.

    Raises:
        ConvertError: The conversion began with other options.

    """
    known = Settings.read(folder)
    wanted = {"into": asked.into, "source_format": source.adapter.name}
    for name in ("roll_cycle", "block_bytes"):
        if (value := getattr(asked, name)) is not None:
            wanted[name] = value
    for name, value in wanted.items():
        if getattr(known, name) != value:
            raise ConvertError(
                f"the conversion began with other options: {name}={getattr(known, name)}"
                f" asked={value} path={folder.path} (use a directory that does not exist)"
            )
    return known


def _target(folder: SafeFolder, settings: Settings, source: Source) -> Target:
    if settings.into == PARQUET:
        from quire.converting.parquet_target import ParquetTarget

        return ParquetTarget(folder)
    return QueueTarget(str(folder.path), settings, source)
