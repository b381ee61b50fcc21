"""Handlers of `logging`: Quire's, two of the standard library, and one that drops the record."""

from __future__ import annotations

import logging
import logging.handlers
import platform
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import quire
import quire.logging
from bench.task import Outcome, Stopwatch, Task

NAME = "logging"
NAMES = {
    "none": "none: what the standard library itself takes",
    "quire": "quire.logging.Handler",
    "file": "logging.FileHandler",
    "queue": "logging.handlers.QueueHandler, without its listener",
}
_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class _Nothing(logging.Handler):
    """Drops every record."""

    def emit(self, record: logging.LogRecord) -> None:
        pass


_KINDS: dict[str, Callable[[Path, SimpleQueue[object]], logging.Handler]] = {
    "none": lambda *_: _Nothing(),
    "quire": lambda path, _: quire.logging.Handler(path),
    "file": lambda path, _: logging.FileHandler(path),
    "queue": lambda _, records: logging.handlers.QueueHandler(records),
}


def version() -> str:
    """Return Python's, whose standard library this is."""
    return f"Python {platform.python_version()}"


def run(task: Task) -> Outcome:
    """Log records with two arguments each."""
    logger = logging.Logger("bench.orders")  # noqa: LOG001 - one that nobody else has
    records: SimpleQueue[object] = SimpleQueue()
    handler = _KINDS[task.operation](task.queue, records)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)

    def log(count: int) -> None:
        for number in range(count):
            logger.info("order %s filled at %s", number, 1.0825)

    log(task.warm_up)
    with Stopwatch() as watch:
        log(task.count)
    handler.close()
    found = _logged(task, records)
    assert found == task.total, f"records: found={found} expected={task.total}"
    return Outcome(watch.nanos, watch.cpu_nanos, task.count, 0)


def _logged(task: Task, records: SimpleQueue[object]) -> int:
    match task.operation:
        case "quire":
            with quire.open(task.queue, read_only=True) as queue:
                return queue.entry_count
        case "file":
            return task.queue.read_bytes().count(b"\n")
        case "queue":
            return records.qsize()
    return task.total
