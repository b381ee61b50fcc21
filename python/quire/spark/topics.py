"""Topics: the queue in a directory, or every queue below it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import quire
from quire.errors import NotAQueueError

if TYPE_CHECKING:
    from quire.spark.options import ReadOptions

TABLE: Final = "metadata.cq4t"
_ROLL_FILE: Final = ".cq4"


def topics_of(path: str) -> dict[str, str]:
    """
    Return the directory of each queue by its topic, in the order of the topics' names.

    A queue's own directory is the one topic, named as the directory. Else each queue below is one,
    named by its path below, with ``/``. Links to directories are not followed.

    Raises:
        NotAQueueError: There is no queue.

    """
    root = Path(path)
    if _is_queue([entry.name for entry in root.iterdir()]):
        return {root.name: str(root)}
    found: dict[str, str] = {}
    for folder, inside, files in os.walk(root):
        if _is_queue(files):
            inside.clear()  # a queue holds no queues
            found[Path(folder).relative_to(root).as_posix()] = folder
    if not found:
        raise NotAQueueError(
            f"no queue in this directory, nor below it: path={path}"
            f" expected={TABLE} or *{_ROLL_FILE}"
        )
    return dict(sorted(found.items()))


def open_queue(path: str, options: ReadOptions) -> quire.Queue:
    """
    Open a queue to read; a file system of another host's will do for that.

    Raises:
        NotAQueueError: There is none.
        UnsupportedError: It is of another kind.

    """
    return quire.open(path, read_only=True, create=False, wire_type=options.wire_type)


def local_path(path: str) -> str:
    """Return a path or ``file:`` address as an absolute path."""
    local = unquote(urlsplit(path).path) if path.startswith("file:") else path
    return str(Path(local).absolute()) if local else ""


def _is_queue(names: list[str]) -> bool:
    return any(name == TABLE or name.endswith(_ROLL_FILE) for name in names)
