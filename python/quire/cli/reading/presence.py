"""Whether queues are still where they were opened."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from quire._common.file_identity import identity_at

_BETWEEN_S: Final = 1.0


class Presence:
    """
    Notices that a queue was removed or replaced, which no reader of its open files does.

    Args:
        paths: Queues, or files of them.

    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._known = {path: found for path in paths if (found := identity_at(path)) is not None}
        self._next = time.monotonic() + _BETWEEN_S

    def check(self) -> None:
        """
        Look, but once a second at most.

        Raises:
            click.ClickException: A queue was removed or replaced.

        """
        if time.monotonic() < self._next:
            return
        for path, known in self._known.items():
            if identity_at(path) != known:
                raise click.ClickException(f"the queue was removed or replaced: path={path}")
        self._next = time.monotonic() + _BETWEEN_S
