"""
The mark of a node's directory, which a copy or an older state of the directory does not have.

A mark is the time at which the system last changed an empty file of the directory, its ``ctime``.
Nobody can set it, so a restored backup has another one. Nodes replace their mark from time to time:
an older snapshot of the file system does not have the present one. A directory without marks is
accepted if it was promoted by hand, which removes them.
"""

from __future__ import annotations

from collections.abc import Collection
from os import PathLike
from typing import Final

from quire._common.durable import SafeFolder

NAMES: Final = ("replication.mark.a", "replication.mark.b")
"""The files, used in turn: if a replacement is interrupted, the mark before it is still there."""


def marks_at(path: str | PathLike[str]) -> frozenset[str]:
    """Return the marks of a directory: the present one, and the one before or after it."""
    with SafeFolder.at(path) as folder:
        return frozenset(_marks_in(folder).values())


def replaced(
    path: str | PathLike[str], present: str | None, earlier: Collection[str] = ()
) -> str | None:
    """
    Give a directory a new mark, durably, and return it; the present one stays until the next call.

    Args:
        path: The directory.
        present: The mark that counts.
        earlier: Marks that the directory had before. Without any of them, another directory is at
            the path, and the result is None.

    """
    with SafeFolder.at(path) as folder:
        found = _marks_in(folder)
        if earlier and not set(earlier) & set(found.values()):
            return None
        name = NAMES[1 if found.get(NAMES[0]) == present else 0]
        folder.remove(name)
        folder.create(name).close()
        folder.sync()
        return _marks_in(folder)[name]


def remove(path: str | PathLike[str]) -> None:
    """Remove the marks of a directory, durably."""
    with SafeFolder.at(path) as folder:
        for name in NAMES:
            folder.remove(name)
        folder.sync()


def _marks_in(folder: SafeFolder) -> dict[str, str]:
    found = {name: folder.stat(name) for name in NAMES}
    return {name: str(it.st_ctime_ns) for name, it in found.items() if it is not None}
