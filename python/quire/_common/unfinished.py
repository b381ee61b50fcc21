"""The hidden folders in which ``quire copy``, ``split`` and ``merge`` make their results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"\..+\.(copying|merging|splitting)", re.DOTALL)


def working_place(dest: Path, making: str) -> Path:
    """
    Return the folder in which a result is made, beside its destination.

    Args:
        dest: The destination.
        making: What is done: ``copying``, ``merging`` or ``splitting``.

    """
    return dest.with_name(f".{dest.name}.{making}")


def without_unfinished(folders: list[str]) -> list[str]:
    """Return the names of folders that may be or hold queues: a result in the making is none."""
    return [name for name in folders if not _NAME.fullmatch(name)]
