"""Runs of the command: within the test, and as a process with its own stdin and stdout."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from quire.cli import main

# Output is collected in a user's shell; where pytest runs that may be switched off. Tokens of who
# runs the tests are no server's.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "XDG_CONFIG_HOME": "/nonexistent"
}
COMMAND = [sys.executable, "-c", "import sys; from quire.cli import main; sys.exit(main())"]


@dataclass(frozen=True)
class Ran:
    """What a run left behind."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode("utf-8")

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Cli:
    """Runs verbs in this process."""

    def __init__(self, captured: pytest.CaptureFixture[bytes]) -> None:
        self._captured = captured

    def __call__(self, *arguments: str | Path | int) -> Ran:
        code = main([str(argument) for argument in arguments])
        captured = self._captured.readouterr()
        return Ran(code, captured.out, captured.err.decode())

    def ok(self, *arguments: str | Path | int) -> Ran:
        """As a call, and nothing may go wrong."""
        ran = self(*arguments)
        assert (ran.code, ran.err) == (0, "")
        return ran


def run_here(*arguments: str | Path) -> Ran:
    """Run the command within the test, for what its processes begin with."""
    kept = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(it, "utf-8", write_through=True) for it in kept)
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Ran(code, kept[0].getvalue(), kept[1].getvalue().decode())


def run(*arguments: str | Path, stdin: bytes = b"", timeout_s: float = 300) -> Ran:
    """Run the command as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=timeout_s,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


@contextmanager
def started(*arguments: str | Path) -> Generator[subprocess.Popen[bytes]]:
    """Start the command as a process of its own, with pipes; it is killed on leaving."""
    command, pipe = [*COMMAND, *map(str, arguments)], subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT
    ) as process:
        try:
            yield process
        finally:
            process.kill()
