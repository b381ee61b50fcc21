"""
The mark of a node's directory, which an older state of the directory does not have.

A mark is a random text in a file. A node replaces it from time to time, and once more when it ends:
a snapshot, or a copy that was made meanwhile, has an older one. A copy that was made after the node
has ended has the present mark, and is as good as the directory. A directory without marks is
accepted if it was promoted by hand, which removes them.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from os import PathLike
from typing import Final

from quire._common.durable import SafeFolder
from quire._common.file_identity import Identity
from quire.errors import UnsafePathError

NAMES: Final = ("replication.mark.a", "replication.mark.b")
"""The files, used in turn: if a replacement is interrupted, the mark before it is still there."""
_MARK: Final = re.compile(rb"([0-9a-f]{32})\n")
_LIMIT: Final = 64


def marks_at(path: str | PathLike[str]) -> frozenset[str]:
    """Return the marks of a directory: the present one, and the one before or after it."""
    with SafeFolder.at(path) as folder:
        return frozenset(_marks_in(folder).values())


def replaced(
    path: str | PathLike[str], present: str | None, expected: Identity | None = None
) -> str | None:
    """
    Give a directory a new mark, durably, and return it; the present one stays until the next call.

    Args:
        path: The directory.
        present: The mark that counts.
        expected: Device and inode number of the directory. If another one is at the path, the
            result is None.

    """
    with SafeFolder.at(path) as folder:
        if expected not in {None, folder.identity}:
            return None
        is_first_kept = present is not None and _marks_in(folder).get(NAMES[0]) == present
        name = NAMES[1 if is_first_kept else 0]
        mark = secrets.token_hex(16)
        folder.replace(name, f"{mark}\n".encode())
        return mark


def remove(path: str | PathLike[str]) -> None:
    """Remove the marks of a directory, durably."""
    with SafeFolder.at(path) as folder:
        for name in NAMES:
            folder.remove(name)
        folder.sync()


def _marks_in(folder: SafeFolder) -> dict[str, str]:
    marks = dict[str, str]()
    for name in NAMES:
        with suppress(OSError, UnsafePathError):
            found = _MARK.fullmatch(folder.read(name, _LIMIT))
            if found is not None:
                marks[name] = found[1].decode()
    return marks
