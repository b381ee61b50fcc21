"""multiprocessing.Pipe, with send_bytes: a socket pair, the receiver sleeps."""

from __future__ import annotations

import multiprocessing
import platform
from collections.abc import Callable, Generator
from contextlib import contextmanager

from bench.stream import measure
from bench.task import Outcome, Task

NAME = "multiprocessing.Pipe"


def version() -> str:
    """Return the version of Python."""
    return f"Python {platform.python_version()}"


class Channel:
    """One pipe of the standard library."""

    def __init__(self) -> None:
        """Make the pipe."""
        context = multiprocessing.get_context("spawn")
        self._reader, self._writer = context.Pipe(duplex=False)

    @contextmanager
    def sender(self) -> Generator[Callable[[bytes], object]]:
        """Hand out the call that sends one message."""
        yield self._writer.send_bytes

    @contextmanager
    def receiver(self) -> Generator[Callable[[], bytes]]:
        """Hand out the call that waits for one message."""
        yield self._reader.recv_bytes


def run(task: Task) -> Outcome:
    """Send to another process."""
    return measure(task, Channel())
