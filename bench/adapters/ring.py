"""A ring between two processes, in C: the limit that the machine itself sets to a latency."""

from __future__ import annotations

from pathlib import Path

from bench.adapters.compiled import Compiled
from bench.task import Task

NAME = "C ring (limit)"
_PROGRAM = Compiled("ring")


def version() -> str:
    """Return the compiler's, after compiling."""
    return _PROGRAM.build()


def binary() -> Path:
    """Return the program."""
    return _PROGRAM.path


def command(task: Task) -> list[str]:
    """Return the command line of one half of the measurement."""
    _PROGRAM.build()
    role = "produce" if task.operation == "produce" else "tail"
    amounts = (task.total, task.warm_up, task.size, task.rate)
    return [str(_PROGRAM.path), role, str(task.queue), *map(str, amounts), task.out]
