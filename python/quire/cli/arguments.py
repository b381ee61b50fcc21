"""What the verbs have in common: paths, indexes, opening a queue to look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

import quire

PATH: Final = click.Path(path_type=Path, readable=False)  # the library says why it cannot
_PAST_INDEXES: Final = 2**63


def index_of(value: str) -> int:
    """
    Return an index as it is shown: hexadecimal with ``0x``, or decimal; a colon may stand behind.

    Raises:
        click.BadParameter: It is none.

    """
    try:
        index = int(value.rstrip(": "), 0)
    except ValueError:
        index = -1
    if not 0 <= index < _PAST_INDEXES:
        raise click.BadParameter(f"{value!r} is no index, such as 0x4d1900000000")
    return index


def open_to_look(path: Path) -> quire.Queue:
    """Open a queue, or one roll file, without changing a byte and without waiting for a lock."""
    return quire.open(path, read_only=True, create=False)
