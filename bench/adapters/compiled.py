"""Programs in C that stand beside the adapters, compiled when they are needed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.task import Missing

_TARGET = Path(__file__).resolve().parents[2] / "target"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program of one source file."""

    name: str

    @property
    def path(self) -> Path:
        """Where the program lies once it is built."""
        return _TARGET / f"bench-{self.name}"

    def build(self) -> str:
        """Compile it once, and return the compiler's version."""
        return _build(self)


@cache
def _build(program: Compiled) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        raise Missing("a C compiler is needed: cc")
    program.path.parent.mkdir(exist_ok=True)
    source = Path(__file__).with_name(f"{program.name}.c")
    command = [
        compiler,
        "-std=c11",
        "-O2",
        "-Wall",
        "-Werror",
        "-o",
        str(program.path),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{source.name} does not compile: {done.stderr.strip()}")
    answer = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()[0]
