"""A loop in C over the pages of a Quick-Queue: what the format itself costs."""

from __future__ import annotations

from pathlib import Path

from bench.adapters.compiled import Compiled
from bench.adapters.quire_older import PAGE_BYTES
from bench.task import DISTINCT, Task

NAME = "Quick-Queue in C (limit)"
_PROGRAM = Compiled("quick_queue")


def version() -> str:
    """Return the compiler's, after compiling."""
    return _PROGRAM.build()


def binary() -> Path:
    """Return the program."""
    return _PROGRAM.path


def command(task: Task) -> list[str]:
    """Return the command line that appends or reads."""
    _PROGRAM.build()
    task.queue.mkdir(exist_ok=True)
    amounts = (PAGE_BYTES, task.size, DISTINCT, task.warm_up, task.count)
    return [str(_PROGRAM.path), task.operation, str(task.queue), *map(str, amounts)]
