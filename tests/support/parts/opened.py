"""Which files a piece of code opens, by inotify: those of the kernel crate are no audit events."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inotify_simple import INotify, flags  # pyright: ignore[reportMissingTypeStubs]


@contextmanager
def opened_below(root: Path) -> Generator[list[str]]:
    """Collect the names of the files and directories below *root* that are opened meanwhile."""
    names: list[str] = []
    watch: Any = INotify()
    with watch:
        for folder in [root, *(it for it in root.rglob("*") if it.is_dir())]:
            watch.add_watch(folder, flags.OPEN)
        yield names
        names += [event.name or "." for event in watch.read(timeout=0)]
