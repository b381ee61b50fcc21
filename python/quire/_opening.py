"""A queue given open or by its path, for what :class:`quire.Queue` is built on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike

from quire import _arguments as arguments
from quire._native import Queue


@contextmanager
def opened(queue: Queue | str | PathLike[str], name: str) -> Generator[Queue]:
    """Open a queue read-only; an open one is used, and left open. *name* is the argument's."""
    if isinstance(queue, Queue):
        yield queue
        return
    with Queue(arguments.queue_path(name, queue), read_only=True, create=False) as found:
        yield found
