"""
Pause points: a thread stands before or after one step, while the test does the rest.

Only the build with fault points has them (`build/faults`). The party that stops is a process of its
own, so that a thread that stands with the interpreter attached stops nobody else:

    with Party(SCRIPT, path, point="lock.take.cas", side="before") as party:
        party.wait_until_stopped()
        ...  # what the others do meanwhile
        party.go_on()
        assert party.result() == [...]

A step in Python is named by the audit event of the call that comes next and by a part of its
arguments: `point="audit:os.remove:.cq4"` (open, os.remove, os.rename, os.link, os.scandir, ...).

*SCRIPT* is the text of a Python program; it gets its arguments in `sys.argv[1:]`, calls `arm()`
where the count of steps begins, and reports by `say(object)`, a line of JSON for each call.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from paths import ROOT, SUPPORT

BUILD = ROOT / "build" / "faults"
HANG_S = 300.0  # more than any step takes: a limit is a hang's

PRELUDE = """\
import json, os, sys
sys.path.insert(0, {support!r})
import quire
from pause_points import arm
def say(what):
    print(json.dumps(what), flush=True)
"""


def arm() -> None:
    """In a party: count the steps from here on, and stop at the one asked for."""
    asked = os.environ["PAUSE_AT"]
    if not asked.startswith("audit:"):
        vars(importlib.import_module("quire._native"))["set_fault"](asked)
        return
    _, event, part, nth, _, directory = asked.split(":", 5)
    left = int(nth)

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if name == event and left and any(part in str(it) for it in arguments):
            left -= 1
            if not left:
                (Path(directory) / "stopped").write_bytes(b"1")
                (Path(directory) / "go").read_bytes()

    sys.addaudithook(hook)


class NotStoppedError(AssertionError):
    """The party ended, or went on for too long, without coming to its pause point."""


class Stop:
    """Where one thread stops: a directory with the two named pipes of `probe/fault.rs`."""

    def __init__(
        self, point: str, *, nth: int = 1, side: Literal["before", "after"] = "before"
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="quire-pause-")
        self.path = Path(self._directory.name)
        os.mkfifo(self.path / "stopped", 0o600)
        os.mkfifo(self.path / "go", 0o600)
        # Open for both: whoever comes first to a named pipe would wait for the other end.
        self._stopped = os.open(self.path / "stopped", os.O_RDWR | os.O_NONBLOCK)
        self.fault = f"{point}:{nth}:{side}:{self.path}"

    def has_stopped(self, timeout_s: float) -> bool:
        """Whether the thread stands at its point within *timeout_s*."""
        return bool(select.select([self._stopped], [], [], timeout_s)[0])

    @property
    def stopped(self) -> int:
        """A descriptor that can be read once the thread stands."""
        return self._stopped

    def go_on(self) -> None:
        """Let the thread go on from its point."""

        def write() -> None:
            with (self.path / "go").open("wb") as pipe:
                pipe.write(b"1")

        threading.Thread(target=write, daemon=True).start()

    def close(self) -> None:
        os.close(self._stopped)
        self._directory.cleanup()


class Party:
    """A process that runs a program and stops once, at a pause point; or nowhere, without one."""

    def __init__(
        self,
        script: str,
        *arguments: object,
        point: str | None = None,
        nth: int = 1,
        side: Literal["before", "after"] = "before",
        environment: dict[str, str] | None = None,
    ) -> None:
        if not BUILD.is_dir():
            raise RuntimeError("the build with fault points is missing: run `make check` once")
        self.stop = Stop(point, nth=nth, side=side) if point else None
        program = PRELUDE.format(support=str(SUPPORT)) + script
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)],
            env=os.environ
            | {"PYTHONPATH": str(BUILD), "PAUSE_AT": self.stop.fault if self.stop else ""}
            | (environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_stopped(self) -> None:
        """Return when the party stands at its point; it must come there."""
        assert self.stop is not None
        waited = 0.0
        while not self.stop.has_stopped(0.05):
            waited += 0.05
            if self.process.poll() is not None or waited > HANG_S:
                if self.stop.has_stopped(0):
                    return
                raise NotStoppedError(self._ended_with())

    def go_on(self) -> None:
        """Let the party go on from its point."""
        assert self.stop is not None
        self.stop.go_on()

    def kill(self) -> None:
        """Kill the party where it stands, and wait for its end."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def result(self) -> list[Any]:
        """Wait for the party's end, which must be a good one, and return what it said."""
        try:
            said, errors = self.process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"a party hangs: {self._ended_with()}") from None
        assert self.process.returncode == 0, errors
        return [json.loads(line) for line in said.splitlines()]

    def _ended_with(self) -> str:
        self.process.kill()
        said, errors = self.process.communicate()
        return f"exit={self.process.returncode} said={said!r}\n{errors}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        if self.process.stdout and not self.process.stdout.closed:
            self.process.communicate()
        if self.stop is not None:
            self.stop.close()
