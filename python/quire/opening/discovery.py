"""Finding queues: the one in a directory, or every one below it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from quire._common import arguments, roll_file_names
from quire._common.file_identity import Identity, identity_at, identity_of
from quire._common.unfinished import without_unfinished
from quire.errors import NotAQueueError, TableLostError, UnsupportedError
from quire.formats import detection

TABLE: Final = "metadata.cq4t"
_ROLL_FILE: Final = ".cq4"
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:)//?")


def check_local(path: str | os.PathLike[str]) -> None:
    """
    Refuse a URL: as a path it would name a directory ``scheme:``.

    Raises:
        UnsupportedError: The path is a URL, or a path object made of one, which lost a slash, and
            no such directory exists.

    """
    text = os.fspath(path)
    url = _URL.match(text)
    if url is None or (not url[0].endswith("//") and Path(url[1]).exists()):
        return
    raise UnsupportedError(
        f"not supported: a URL where a path belongs: path={text} (give the path of a directory on"
        " this machine: only quire.open reaches a server, with quire://HOST:PORT/QUEUE)"
    )


def result_path(name: str, given: object) -> Path:
    """
    Return the absolute path of a result.

    Args:
        name: The argument, for errors.
        given: What was given for it.

    Raises:
        UnsupportedError: The path is a URL.

    """
    path = arguments.path(name, given)
    check_local(path)
    return Path(path).absolute()


def check_at_path(path: str, table: Identity | None) -> None:
    """
    Check that a queue is still where it was opened.

    Args:
        path: Its directory.
        table: Device and inode number of its table; None: it was opened without one.

    Raises:
        TableLostError: Another directory is at the path, or none.

    """
    try:
        found = identity_of(os.lstat(Path(path, TABLE)))
    except (FileNotFoundError, NotADirectoryError):
        found = None
    if table not in {None, found}:
        raise lost(path)


def check_directory(path: str, place: Identity | None) -> None:
    """
    Check that a queue without a table is still where it was opened.

    Args:
        path: Its directory.
        place: Device and inode number of the directory then; None: not known.

    Raises:
        TableLostError: Another directory is at the path, or none.

    """
    if place not in {None, identity_at(path)}:
        raise lost(path)


def lost(path: str) -> TableLostError:
    """Return the error about an open queue whose path leads elsewhere, or nowhere."""
    text = "the directory of the queue was renamed, removed or replaced while it was open"
    return TableLostError(f"{text}: path={path} (open it where it is now)")


def topics_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """
    Return the directory of each queue by its topic, in the order of the topics' names.

    A queue's own directory is the one topic, named as the directory. Else each queue below is one,
    named by its path below, with ``/``. Links to directories are not followed, and the unfinished
    results of ``quire copy`` and its kind are left out.

    Raises:
        NotAQueueError: There is no queue at *path* or below it.
        UnsupportedError: *path* looks like a URL.

    """
    path = arguments.path("path", path)
    check_local(path)
    root = Path(path)
    if not root.is_dir():
        detection.refuse_part(str(root))
        raise NotAQueueError(f"no such directory: path={path}")
    if _is_queue(str(root), (entry.name for entry in root.iterdir())):
        return {_own_name(root): str(root)}
    found: dict[str, str] = {}
    for folder, inside, files in os.walk(root, onerror=_refuse):
        inside[:] = without_unfinished(inside)
        if _is_queue(folder, files):
            inside.clear()  # a queue holds no queues
            found[Path(folder).relative_to(root).as_posix()] = folder
    if not found:
        detection.refuse_part(str(root))
        raise NotAQueueError(
            f"no queue in this directory, nor below it: path={path}"
            f" expected={TABLE} or *{_ROLL_FILE}, or a Vanilla Chronicle or Quick-Queue"
        )
    return dict(sorted(found.items()))


def _own_name(root: Path) -> str:
    """Return the name of a directory, also where its path ends in ``..``."""
    return (root.resolve() if root.name == ".." else root.absolute()).name


def _refuse(error: OSError) -> None:
    """Raise, rather than silently leave out queues."""
    raise error


def _is_queue(folder: str, names: Iterable[str]) -> bool:
    is_journal = any(
        name == TABLE or roll_file_names.uncompressed(name).endswith(_ROLL_FILE) for name in names
    )
    return is_journal or detection.format_of(folder) is not None
