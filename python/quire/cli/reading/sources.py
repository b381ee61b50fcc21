"""What PATH names: a queue of any format, a file of one, or a directory of queues."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import click

import quire
from quire._common.unfinished import without_unfinished
from quire.cli.parameters import open_place
from quire.cli.remote_options import Place
from quire.errors import NotAQueueError
from quire.formats.adapters import adapter_at, numbering_of
from quire.formats.detection import format_of, is_producers
from quire.formats.protocols import AnyQueue

_PAGES: Final = {".qx", ".qmx", ".qd"}
_LEVELS: Final = 6  # directories of a Vanilla cycle, at most


class Source(NamedTuple):
    """
    A queue to read.

    Attributes:
        name: Its path below the directory that was given; empty where it was given itself.
        path: What to open: a path, or a place at a server.
        cycle: The only cycle that was asked for, if any; of a Quick-Queue, a page.

    """

    name: str
    path: Place
    cycle: int | None = None

    def open(self) -> AnyQueue:
        """Open it read-only and without waiting for a lock."""
        return open_place(self.path, read_only=True)

    def bounds(self, queue: AnyQueue) -> tuple[int | None, int | None]:
        """Return the first index that was asked for, and the one after the last."""
        if self.cycle is None:
            return None, None
        numbering = numbering_of(queue)
        return numbering.to_index(self.cycle, 0), numbering.to_index(self.cycle + 1, 0)


def sources_of(path: Place) -> list[Source]:
    """Return the queue that a path names, or each one below it, in the order of their names."""
    if not isinstance(path, Path):
        return [Source(name, place) for name, place in path.queues().items()]
    _refuse_data(path)
    if path.suffix in _PAGES and path.is_file():
        return [Source("", path.parent, int(path.stem) if path.stem.isdecimal() else None)]
    if (cycle := _vanilla_cycle(path)) is not None:
        return [cycle]
    if not path.is_dir() or format_of(str(path)) is not None:
        return [Source("", path)]
    found = [Source(folder.relative_to(path).as_posix(), folder) for folder in _queues(path)]
    return found or [Source("", path)]


def _refuse_data(path: Path) -> None:
    """
    Refuse files of a Quick-Queue's producer, and their directory.

    Raises:
        click.UsageError: The path is a file of a Quick-Queue's producer, or the directory of one.

    """
    if (path.suffix == ".qm" and path.is_file()) or is_producers(str(path.absolute())):
        queue = path.parent
    elif path.suffix == ".qd" and is_producers(str(path.parent.absolute())):
        queue = path.parent.parent
    else:
        return
    raise click.UsageError(
        f"messages are found by the index: path={path} queue={queue}"
        " (give the queue, or one of its *.qmx files)"
    )


def _queues(root: Path) -> Iterator[Path]:
    for folder, inside, _ in os.walk(root):
        inside[:] = sorted(without_unfinished(inside))
        with suppress(NotAQueueError):
            if format_of(folder) is not None:
                inside.clear()  # a queue holds no queues
                yield Path(folder)


def _vanilla_cycle(path: Path) -> Source | None:
    """Return the cycle of a Vanilla Chronicle whose directory, or one of its files, this is."""
    folder = path.parent if path.is_file() else path
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 - names alone
    if not any(name.startswith("index-") for name in names):
        return None
    for root in [*folder.absolute().parents][:_LEVELS]:
        with suppress(quire.QuireError, OSError):
            adapter = adapter_at(root)
            if adapter is None or not adapter.is_folder:
                continue
            with adapter.open(str(root)) as queue:
                for cycle in adapter.cycles(queue):
                    if adapter.place(queue, cycle).absolute() == folder.absolute():
                        return Source("", root, cycle)
    return None
