"""
Java's Quick-Queue: a loop on the original, compiled with its source.

It has no release and no licence, so none of it is here: ``QUICK_QUEUE_JAVA`` names a copy of its
repository, whose address is in ``docs/quick-queue.md``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bench.adapters.quire_older import PAGE_BYTES
from bench.task import DISTINCT, Missing, Task

NAME = "Quick-Queue (Java)"
_VARIABLE = "QUICK_QUEUE_JAVA"
_LOOPS = "QuickQueueLoops"
_CLASSES = Path(__file__).resolve().parents[2] / "target" / "bench-quick-queue-java"
_EXPORTS = [
    f"--add-exports=java.base/{package}=ALL-UNNAMED"
    for package in ("sun.nio.ch", "jdk.internal.ref")
]


def version() -> str:
    """Return the compiler's, after compiling: the original has none."""
    return _build()


def binary() -> Path:
    """Return the class of the loops."""
    return _CLASSES / f"{_LOOPS}.class"


def command(task: Task) -> list[str]:
    """Return the command line that appends or reads."""
    _build()
    task.queue.mkdir(exist_ok=True)
    amounts = (task.size, DISTINCT, task.warm_up, task.count)
    loop = [_LOOPS, task.operation, str(task.queue), *map(str, amounts)]
    options = (f"-DQKQPsz={PAGE_BYTES}", "-XX:+UseSerialGC", "-Xmx256m")
    return ["java", *_EXPORTS, *options, "-cp", str(_CLASSES), *loop]


@cache
def _build() -> str:
    source = os.environ.get(_VARIABLE)
    if not source:
        raise Missing(f"no copy of its source: {_VARIABLE} names one")
    compiler = shutil.which("javac")
    if compiler is None:
        raise Missing("a JDK is needed: javac")
    sources = Path(source, "src", "main", "java")
    loops = Path(__file__).with_name(f"{_LOOPS}.java")
    options = ("-nowarn", "-sourcepath", str(sources), "-d", str(_CLASSES))
    done = subprocess.run(
        [compiler, *_EXPORTS, *options, str(loops)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Missing(f"{loops.name} does not compile: {done.stderr.strip()}")
    answer = subprocess.run([compiler, "-version"], capture_output=True, text=True, check=True)
    return answer.stdout.strip()
