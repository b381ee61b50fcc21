"""Where the queues are: one in a directory, or those below it, by topic."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from quire.errors import NotAQueueError

_TABLE: Final = "metadata.cq4t"
_ROLL_FILE: Final = ".cq4"


def queues_at(path: Path) -> dict[str, Path]:
    """
    Return the directory of each queue at a path, by topic.

    Of the queue at *path* itself that is the directory's name, of those below it their way there.

    Raises:
        NotAQueueError: There is none.

    """
    path = path.absolute()
    if not path.is_dir():
        raise NotAQueueError(f"no such directory: path={path}")
    if _is_queue(each.name for each in path.iterdir()):
        return {path.name: path}
    found: dict[str, Path] = {}
    for folder, inside, files in os.walk(path):
        if _is_queue(files):
            inside.clear()  # a queue holds no queues
            found[Path(folder).relative_to(path).as_posix()] = Path(folder)
    if not found:
        raise NotAQueueError(f"no queue in this directory, nor below it: path={path}")
    return dict(sorted(found.items()))


def _is_queue(names: Iterable[str]) -> bool:
    return any(name == _TABLE or name.endswith(_ROLL_FILE) for name in names)
