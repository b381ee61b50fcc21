"""Which format a directory's files have, by their names alone."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final, Literal, TypeAlias

Format: TypeAlias = Literal["chronicle", "quick-queue"]

CHRONICLE: Final = "chronicle"
QUICK_QUEUE: Final = "quick-queue"
FORMATS: Final = (CHRONICLE, QUICK_QUEUE)

_SUFFIXES: dict[str, Format] = {
    ".cq4": CHRONICLE,
    ".cq4t": CHRONICLE,
    ".qx": QUICK_QUEUE,
    ".qmx": QUICK_QUEUE,
    ".qm": QUICK_QUEUE,
    ".qd": QUICK_QUEUE,
}
_NAMES: dict[str, Format] = {"metadata.cq4t": CHRONICLE, "quick-queue.lock": QUICK_QUEUE}


def format_of(path: str) -> Format | None:
    """Return the format of the queue in a directory; None where there is none yet."""
    for name, found in _NAMES.items():  # a directory of many files is not looked through
        if os.path.lexists(os.path.join(path, name)):  # noqa: PTH118 - also of bytes
            return found
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            suffix = os.path.splitext(entry.name)[1]  # noqa: PTH122
            if suffix in _SUFFIXES:
                return _SUFFIXES[suffix]
    return None
