"""AES-256-GCM-SIV by the crate that Quire uses, and nothing else: what encryption has to cost."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bench.task import Missing, Task

NAME = "the crate aes-gcm-siv"
NAMES = {"seal": "the cipher alone, by its crate"}
_ROOT = Path(__file__).resolve().parents[2]
_TARGET = _ROOT / "target" / "bench"


def version() -> str:
    """Return the compiler's version, after compiling."""
    return _build()


def binary() -> Path:
    """Return the program."""
    return _TARGET / "release" / "examples" / "seal"


def command(task: Task) -> list[str]:
    """Return the command line that seals."""
    _build()
    return [str(binary()), str(task.size), str(task.warm_up), str(task.count)]


@cache
def _build() -> str:
    cargo = shutil.which("cargo")
    if cargo is None:
        raise Missing("a Rust compiler is needed: cargo")
    settings = {"CARGO_PROFILE_RELEASE_LTO": "off"}
    done = subprocess.run(
        [
            *(cargo, "build", "--release", "--locked", "--package", "quire-kernel"),
            *("--example", "seal", "--target-dir", str(_TARGET)),
        ],
        cwd=_ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Missing(f"the program does not compile: {done.stderr.strip()[-300:]}")
    answer = subprocess.run([cargo, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.strip()
