"""
The map of a conversion: JSON lines in the directory of the result.

The first line has the settings of the conversion, and marks the directory as its result. Each
further line is a run of messages, or a message that was left out. The last line has the counts, and
is written only once the result is verified.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from quire._common import arguments
from quire._common.durable import SafeFolder, flush_and_sync
from quire.converting.message_runs import runs_of
from quire.errors import ConvertError

FILE: Final = "_indexes.jsonl"  # Spark and Arrow skip names that start with an underscore
_VERSION: Final = 1
_HEADER_LIMIT: Final = 65_536


@dataclass(frozen=True, slots=True)
class Settings:
    """
    The settings of a conversion: the first line of its map.

    Attributes:
        source: The path of the source.
        source_format: The format of the source.
        into: The format of the result, or ``parquet``.
        source_step: The distance from one index of the source to the next.
        step: The distance from one index of the result to the next.
        time_ms: When the conversion began, which selects the cycle of messages without one.
        roll_cycle: The roll cycle of the result; None if it has no cycles.
        block_bytes: The block size of the result; None: the default.

    """

    source: str
    source_format: str
    into: str
    source_step: int
    step: int
    time_ms: int
    roll_cycle: str | None
    block_bytes: int | None

    def line(self) -> bytes:
        """Return the first line of the map."""
        return _line({"convert": _VERSION, **asdict(self)})

    @classmethod
    def read(cls, folder: SafeFolder) -> Settings:
        """
        Return the settings of the conversion in a folder.

        Raises:
            ConvertError: The file is not a map of indexes.

        """
        with folder.open(FILE) as file:
            known = _parsed(file.readline(_HEADER_LIMIT), folder.path / FILE)
        types = {int: {"source_step", "step", "time_ms"}, str: {"source", "source_format", "into"}}
        is_known = known.get("convert") == _VERSION
        is_whole = all(type(known.get(name)) is it for it, names in types.items() for name in names)
        if not is_known or not is_whole:
            raise _malformed(folder.path / FILE)
        return cls(**{it.name: known.get(it.name) for it in fields(cls)})  # type: ignore[arg-type]


class MapWriter:
    """
    Writes the map of a conversion under a temporary name, until the result is verified.

    Args:
        folder: The directory of the result.
        settings: The settings of the conversion.

    """

    def __init__(self, folder: SafeFolder, settings: Settings) -> None:
        """Write the first line."""
        self._folder = folder
        self._settings = settings
        self._temporary = folder.temporary(FILE)
        self._file = folder.create(self._temporary)
        self._file.write(settings.line())
        self._run = (0, 0, 0)
        self.messages = 0
        self.skipped = 0
        self.last: int | None = None

    def add_run(self, source: int, dests: memoryview) -> None:
        """Add messages with consecutive indexes in the source, and their indexes in the result."""
        for first, past in runs_of(dests, self._settings.step):
            self._add(source + first * self._settings.source_step, dests[first], past - first)

    def _add(self, source: int, dest: int, count: int) -> None:
        first, dest_first, length = self._run
        is_next = source == first + length * self._settings.source_step
        if length and is_next and dest == dest_first + length * self._settings.step:
            self._run = first, dest_first, length + count
        else:
            self._end_run()
            self._run = source, dest, count
        self.messages += count
        self.last = dest + (count - 1) * self._settings.step

    def skip(self, source: int, length: int) -> None:
        """Add a message that was left out."""
        self._end_run()
        self._file.write(_line({"skipped": f"{source:#x}", "length": length}))
        self.skipped += 1

    def publish(self) -> None:
        """Atomically replace the map of the folder by this one."""
        self._end_run()
        self._file.write(_line({"messages": self.messages, "skipped": self.skipped}))
        flush_and_sync(self._file)
        self._folder.publish(self._temporary, FILE)

    def _end_run(self) -> None:
        source, dest, count = self._run
        if count:
            self._file.write(
                _line({"source": f"{source:#x}", "dest": f"{dest:#x}", "count": count})
            )
        self._run = (0, 0, 0)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the file unless it was published."""
        self._file.close()
        self._folder.remove(self._temporary)


class IndexMap:
    """
    Maps the index of a message in the source of a conversion to its index in the result.

    Args:
        dest: The directory that :func:`quire.convert` wrote to.

    Raises:
        ConvertError: There is no map, or the conversion is not complete.

    Examples:
        >>> index = appender.write_text("hello")
        >>> _ = quire.convert(queue, "moved", into="quick-queue")
        >>> indexes = quire.converting.IndexMap("moved")
        >>> indexes[index], len(indexes)
        (0, 1)

    """

    def __init__(self, dest: str | PathLike[str]) -> None:
        """Read the map."""
        path = Path(arguments.path("dest", dest), FILE)
        self._runs: list[tuple[int, int, int]] = []
        self._count: int | None = None
        try:
            with SafeFolder.at(path.parent) as folder, folder.open(FILE) as file:
                settings = Settings.read(folder)
                file.readline()
                for line in file:
                    self._add(_parsed(line, path))
        except FileNotFoundError:
            raise ConvertError(f"the directory has no map of a conversion: path={path}") from None
        except (KeyError, TypeError, ValueError):
            raise _malformed(path) from None
        if self._count is None:
            raise ConvertError(
                f"the conversion is not complete: path={path} (repeat it to complete it)"
            )
        self._source_step: int = settings.source_step
        self._step: int = settings.step

    def _add(self, line: Mapping[str, Any]) -> None:
        if "source" in line:
            self._runs.append((int(line["source"], 16), int(line["dest"], 16), int(line["count"])))
        elif "messages" in line:
            self._count = int(line["messages"])

    def __len__(self) -> int:
        """Return the number of converted messages."""
        return self._count or 0

    def __getitem__(self, index: int) -> int:
        """
        Return the index in the result of the message that has *index* in the source.

        Raises:
            KeyError: The source has no message at the index, or the message was left out.

        """
        place = bisect_right(self._runs, index, key=lambda run: run[0]) - 1
        if place >= 0:
            source, dest, count = self._runs[place]
            number, rest = divmod(index - source, self._source_step)
            if not rest and number < count:
                return dest + number * self._step
        raise KeyError(index)


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _parsed(line: bytes, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise _malformed(path) from None
    if not isinstance(found, dict):
        raise _malformed(path)
    return found  # pyright: ignore[reportUnknownVariableType]


def _malformed(path: Path) -> ConvertError:
    return ConvertError(f"not the map of a conversion: path={path}")
