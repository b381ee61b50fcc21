"""Which file or directory a path leads to."""

from __future__ import annotations

import os
from os import PathLike
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]
"""The device and the inode number: those of a file under any of its names."""


def identity_of(found: os.stat_result) -> Identity:
    """Return the identity of a file, from its status."""
    return found.st_dev, found.st_ino


def identity_at(path: str | PathLike[str], *, follow_links: bool = True) -> Identity | None:
    """Return the identity of the file at a path; None if there is none, or no access to it."""
    try:
        return identity_of(os.stat(path, follow_symlinks=follow_links))  # noqa: PTH116 - quicker
    except OSError:
        return None
