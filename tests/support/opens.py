"""Counts how often a directory is listed and its files are opened, by anybody, with inotify."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from inotify_simple import INotify, flags  # pyright: ignore[reportMissingTypeStubs]


class Opens:
    """Watches a directory: `listed` is how often it was opened, `files` of each file how often."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.listed = 0
        self.files: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._watch: Any = INotify()
        self._watch.add_watch(self._path, flags.ACCESS | flags.OPEN)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._watch:
            for event in self._watch.read(timeout=0):
                assert not event.mask & flags.Q_OVERFLOW
                if event.mask & flags.OPEN and event.name:
                    self.files[event.name] += 1
                elif event.mask & flags.OPEN and event.mask & flags.ISDIR:
                    self.listed += 1
