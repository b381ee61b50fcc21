"""Which file or directory a path leads to."""

from __future__ import annotations

import os
from os import PathLike
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]
"""The device and the inode number: those of a file under any of its names."""


def identity_of(found: os.stat_result) -> Identity:
    """Return the identity of what was looked at."""
    return found.st_dev, found.st_ino


def identity_at(path: str | PathLike[str], *, follow_links: bool = True) -> Identity | None:
    """Return the identity of what a path leads to; None if it leads nowhere or may not be used."""
    try:
        return identity_of(os.stat(path, follow_symlinks=follow_links))  # noqa: PTH116 - quicker
    except OSError:
        return None
