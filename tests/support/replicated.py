"""A queue and its sinks, each in a process of its own that a test may stop or kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ports import free_port

VICTIM = Path(__file__).with_name("replication_victim.py")


class Peer:
    """A source or a sink that runs."""

    def __init__(self, kind: str, path: Path, port: int, *name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(VICTIM), kind, str(path), str(port), *name],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("READY")

    def stop(self) -> None:
        """Have it do nothing until it goes on."""
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Replicated:
    """A source's process, and its sinks' by their names."""

    def __init__(self, directory: Path, names: tuple[str, ...]) -> None:
        self.path, self.port = directory / "queue", free_port()
        self.copies = {name: directory / name for name in names}
        self.source = Peer("source", self.path, self.port)
        self.sinks = {name: self.start(name) for name in names}

    def start(self, name: str) -> Peer:
        return Peer("sink", self.copies[name], self.port, name)

    def start_source_again(self) -> None:
        self.source.close()
        self.source = Peer("source", self.path, self.port)

    def start_again(self, name: str) -> None:
        self.sinks[name].close()
        self.sinks[name] = self.start(name)

    def close(self) -> None:
        for peer in (self.source, *self.sinks.values()):
            peer.close()


@contextmanager
def replicated(directory: Path, *names: str) -> Generator[Replicated]:
    """Replicate a new queue to sinks of these names."""
    running = Replicated(directory, names)
    try:
        yield running
    finally:
        running.close()
