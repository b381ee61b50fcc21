"""multiprocessing.Queue: its feeder thread sends, the receiver sleeps."""

from __future__ import annotations

import multiprocessing
import platform
from collections.abc import Callable, Generator
from contextlib import contextmanager

from bench.stream import measure
from bench.task import Outcome, Task

NAME = "multiprocessing.Queue"


def version() -> str:
    """Return the version of Python."""
    return f"Python {platform.python_version()}"


class Channel:
    """One queue of the standard library."""

    def __init__(self) -> None:
        """Make the queue."""
        self._queue = multiprocessing.get_context("spawn").Queue()

    @contextmanager
    def sender(self) -> Generator[Callable[[bytes], object]]:
        """Hand out the call that sends one message."""
        yield self._queue.put

    @contextmanager
    def receiver(self) -> Generator[Callable[[], bytes]]:
        """Hand out the call that waits for one message."""
        yield self._queue.get


def run(task: Task) -> Outcome:
    """Send to another process."""
    return measure(task, Channel())
