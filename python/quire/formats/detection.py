"""Which format a directory's files have, by their names alone."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final, Literal, TypeAlias

from quire._common.roll_file_names import COMPRESSED, is_compressed
from quire._native import first_entries
from quire.errors import NotAQueueError

Format: TypeAlias = Literal["chronicle", "vanilla", "quick-queue", "indexed"]

CHRONICLE: Final = "chronicle"
VANILLA: Final = "vanilla"
QUICK_QUEUE: Final = "quick-queue"
INDEXED: Final = "indexed"
FORMATS: Final = (CHRONICLE, VANILLA, QUICK_QUEUE)  # those that are also written

_SUFFIXES: dict[str, Format] = {
    ".cq4": CHRONICLE,
    ".cq4t": CHRONICLE,
    ".qx": QUICK_QUEUE,
    ".qmx": QUICK_QUEUE,
    ".qm": QUICK_QUEUE,
    ".qd": QUICK_QUEUE,
}
_NAMES: dict[str, Format] = {"metadata.cq4t": CHRONICLE, "quick-queue.lock": QUICK_QUEUE}


# A Vanilla Chronicle is recognised by the files of its cycles: directories named by digits.
_CYCLE = re.compile(r"[\d._-]*\d[\d._-]*")
_CYCLE_FILE = re.compile(r"(index|data-\d+)-\d+")
_LOOKED_AT: Final = 64
_LOOKED_THROUGH: Final = 4096
_DEEPEST: Final = 6
_SHOWN: Final = 5


def format_of(path: str) -> Format | None:
    """
    Return the format of the queue at a path; None where there is none yet.

    A queue is a directory, except Indexed Chronicles: two files, NAME.index and NAME.data. Either
    of them is their path, and NAME unless it is a directory.

    Raises:
        NotAQueueError: Among its first entries, the directory has files of two formats.

    """
    entries = _entries(path)
    # All names are known of a short directory: not so of one that is long, or cannot be listed.
    known = dict(entries) if 0 < len(entries) < _LOOKED_AT else None
    found: set[Format] = {
        it
        for name, it in _NAMES.items()
        if (_exists(path, name) if known is None else name in known)
    }
    for name, is_directory in entries:
        suffix = name[name.rfind(".") :]
        if suffix in _SUFFIXES:
            found.add(_SUFFIXES[suffix])
        elif suffix == COMPRESSED and is_compressed(name):
            found.add(CHRONICLE)
        elif is_directory and VANILLA not in found and _is_cycle(path, name, _DEEPEST):
            found.add(VANILLA)
    if len(found) > 1:
        names = ", ".join(sorted(found))
        raise NotAQueueError(f"files of more than one format: formats={names} path={path}")
    if not found and _is_indexed(path):
        return INDEXED
    return next(iter(found), None)


def _is_indexed(path: str) -> bool:
    if os.path.isdir(path):  # noqa: PTH112
        return False
    base, suffix = os.path.splitext(path)  # noqa: PTH122
    bases = [path, base] if suffix in {".index", ".data"} else [path]
    return any(_is_file(f"{it}.index") and _is_file(f"{it}.data") for it in bases)


def _is_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114


def _exists(path: str, name: str) -> bool:
    return os.path.lexists(os.path.join(path, name))  # noqa: PTH118 - also of bytes


def _entries(path: str) -> list[tuple[str, bool]]:
    """Return the first names in a directory, and which are directories; the cost is bounded."""
    with suppress(OSError):
        return first_entries(path, _LOOKED_AT)
    return []


def _is_cycle(parent: str, name: str, depth: int) -> bool:
    if not _CYCLE.fullmatch(name):
        return False
    path = os.path.join(parent, name)  # noqa: PTH118 - also of bytes
    below = _entries(path)
    if any(_CYCLE_FILE.fullmatch(it) for it, _ in below):
        return True
    return depth > 1 and any(
        is_directory and _is_cycle(path, it, depth - 1) for it, is_directory in below
    )


def refuse_others(path: str, done: str, *known: Format) -> None:
    """
    Refuse a queue of a format that something cannot be done with.

    Raises:
        NotAQueueError: There is a queue at the path, of none of the known formats.

    """
    found = format_of(path)
    if found is not None and found not in known:
        raise NotAQueueError(f"a queue of this format is not {done}: path={path} format={found}")


def refuse_part(path: str) -> None:
    """
    Refuse a part of a queue of an older format: a cycle's or producer's directory, or a file.

    Raises:
        NotAQueueError: The path is a part of a queue, not a queue.

    """
    queue = _queue_around(os.path.abspath(path))  # noqa: PTH100 - also of bytes
    if queue is not None:
        raise NotAQueueError(
            f"a part of a queue: path={path} queue={queue} (give the directory of the queue)"
        )


def _queue_around(path: str) -> str | None:
    folder, name = os.path.split(path)
    if os.path.isdir(path):  # noqa: PTH112
        if is_producers(path):
            return folder
        is_cycle = any(_CYCLE_FILE.fullmatch(it) for it, _ in _entries(path))
        return _vanilla_around(folder) if is_cycle else None
    if not _is_file(path):
        return None
    if _CYCLE_FILE.fullmatch(name):
        return _vanilla_around(os.path.dirname(folder))  # noqa: PTH120
    if _SUFFIXES.get(os.path.splitext(name)[1]) != QUICK_QUEUE:  # noqa: PTH122
        return None
    return os.path.dirname(folder) if is_producers(folder) else folder  # noqa: PTH120


def _vanilla_around(folder: str) -> str | None:
    for _ in range(_DEEPEST):
        with suppress(NotAQueueError):
            if format_of(folder) == VANILLA:
                return folder
        folder = os.path.dirname(folder)  # noqa: PTH120
    return None


def is_producers(folder: str) -> bool:
    """Return whether a directory holds the data of a Quick-Queue's producer."""
    return _is_file(f"{folder}.qm")


def refuse_queues(path: str) -> None:
    """
    Refuse a directory of queues where one queue is needed.

    Raises:
        NotAQueueError: The path is a directory of queues.

    """
    found: list[str] = []
    for name, is_directory in _entries(path):
        with suppress(NotAQueueError):
            if is_directory and format_of(os.path.join(path, name)) is not None:  # noqa: PTH118
                found.append(name)
    if found:
        shown = ", ".join(sorted(found)[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise NotAQueueError(
            f"a directory of queues, not a queue: path={path} queues={shown} (give one of them)"
        )


def may_hold_queues(folder: str) -> bool:
    """
    Return whether a directory is a queue or a part of one, or holds files or directories of queues.

    True also of a directory with more names than can be looked at.
    """
    try:
        refuse_part(folder)
        with os.scandir(folder) as entries:
            return any(
                number == _LOOKED_THROUGH or _is_of_queue(entry)
                for number, entry in enumerate(entries)
            )
    except (OSError, NotAQueueError):  # or files of two formats
        return True


def _is_of_queue(entry: os.DirEntry[str]) -> bool:
    suffix = entry.name[entry.name.rfind(".") :]
    if suffix in _SUFFIXES or is_compressed(entry.name):
        return True
    if entry.is_dir():
        return _is_cycle(os.path.dirname(entry.path), entry.name, _DEEPEST) or (  # noqa: PTH120
            format_of(entry.path) is not None
        )
    return suffix == ".index" and _is_indexed(entry.path)
