"""Commands, each a process of its own: a source, a sink, a promotion, and a server."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quire.errors import QuireError, WaitTimeoutError

_QUIRE: Final = (sys.executable, "-c", "import sys; from quire.cli import main; sys.exit(main())")
_LISTENING: Final = re.compile(r"listening (\S+)")
_PROMOTED: Final = re.compile(r"promoted .* epoch=(\d+)")
_REPLICATING: Final = "replicating: "
_POLL_S: Final = 0.01
_TIMEOUT_S: Final = 60.0


class Node:
    """
    A running ``quire replicate``.

    Args:
        process: It.
        address: Where it listens, of a source.

    """

    def __init__(self, process: subprocess.Popen[str], address: str = "") -> None:
        self._process = process
        self.address = address

    def kill(self) -> None:
        """End it as ``kill -9`` does: it gets no chance to finish anything."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> None:
        """Return when it has ended by itself."""
        self._process.wait(_TIMEOUT_S)


@contextmanager
def source(queue: Path, log: Path, *options: str) -> Generator[Node]:
    """Replicate a queue, on a free port of this machine."""
    verb = ["replicate", "source", str(queue), "--listen", "127.0.0.1:0", *options]
    with _started(verb, log) as process:
        line = process.stdout.readline() if process.stdout else ""
        yield Node(process, _found(_LISTENING, line, log))


@contextmanager
def sink(copy: Path, origin: str, log: Path, *options: str) -> Generator[Node]:
    """Keep a copy of a source's queue; it replicates when this returns."""
    begin = log.stat().st_size
    with _started(["replicate", "sink", str(copy), "--from", origin, *options], log) as process:
        deadline = time.monotonic() + _TIMEOUT_S
        while _REPLICATING not in log.read_text("utf-8")[begin:]:
            if process.poll() is not None:
                raise QuireError(f"the sink ended: log={log}")
            if time.monotonic() > deadline:
                raise WaitTimeoutError(f"the sink does not replicate: log={log}")
            time.sleep(_POLL_S)
        yield Node(process)


@contextmanager
def server(folder: Path, tokens: Path, log: Path) -> Generator[tuple[Node, str]]:
    """Serve the queues below a directory, with Flight; yield a token that may use them, too."""
    rights = ("--read", "*", "--append", "*", "--create", "*")
    with log.open("a", encoding="utf-8") as errors:
        made = subprocess.run(  # noqa: S603 - the command of this checkout
            [*_QUIRE, "token", "add", "demo", "--tokens", str(tokens), *rights],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
    ports = ("--listen", "127.0.0.1:0", "--flight", "127.0.0.1:0")
    with _started(["serve", str(folder), *ports, "--tokens", str(tokens)], log) as process:
        lines = [process.stdout.readline() if process.stdout else "" for _ in range(2)]
        yield Node(process, _found(_LISTENING, lines[0], log)), made.stdout.strip()


def promote(copy: Path, log: Path) -> int:
    """Make a source of a copy; return the epoch that begins."""
    with log.open("a", encoding="utf-8") as errors:
        ran = subprocess.run(  # noqa: S603 - the command of this checkout
            [*_QUIRE, "promote", str(copy)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    return int(_found(_PROMOTED, ran.stdout, log))


def _found(pattern: re.Pattern[str], line: str, log: Path) -> str:
    found = pattern.search(line)
    if found is None:
        raise QuireError(f"a command did not do what it should: printed={line!r} log={log}")
    return found[1]


@contextmanager
def _started(arguments: Sequence[str], log: Path) -> Generator[subprocess.Popen[str]]:
    """Start the command ``quire``, its errors in a log; it is killed on leaving."""
    with (
        log.open("a", encoding="utf-8") as errors,
        subprocess.Popen(  # noqa: S603
            [*_QUIRE, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()
