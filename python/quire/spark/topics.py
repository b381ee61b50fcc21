"""Topics: the queue in a directory, or every queue below it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import quire
from quire.directories import TABLE, topics_of

if TYPE_CHECKING:
    from quire.spark.options import ReadOptions

__all__ = ["TABLE", "local_path", "open_queue", "topics_of"]


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
