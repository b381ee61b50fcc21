"""A ring between two processes, in C: the limit that the machine itself sets to a latency."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from bench.task import Missing, Task

NAME = "C ring (limit)"
_SOURCE = Path(__file__).with_suffix(".c")
_BUILT = Path(__file__).resolve().parents[2] / "target" / "bench-ring"


def version() -> str:
    """Return the compiler's, after compiling."""
    return _built()


def binary() -> Path:
    """Return the program."""
    return _BUILT


def command(task: Task) -> list[str]:
    """Return the command line of one half of the measurement."""
    _built()
    role = "produce" if task.operation == "produce" else "tail"
    amounts = (task.total, task.size, task.rate)
    return [str(_BUILT), role, str(task.queue), *map(str, amounts), task.out]


@cache
def _built() -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        raise Missing("a C compiler is needed: cc")
    _BUILT.parent.mkdir(exist_ok=True)
    done = subprocess.run(
        [compiler, "-std=c11", "-O2", "-Wall", "-Werror", "-o", str(_BUILT), str(_SOURCE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Missing(f"the C ring does not compile: {done.stderr.strip()}")
    answer = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()[0]
