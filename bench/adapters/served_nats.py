"""NATS JetStream, one server, a stream in files: published and delivered."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from bench.adapters import replicated_nats
from bench.task import Task

NAME = "NATS JetStream"
version, run = replicated_nats.version, replicated_nats.run


@contextmanager
def services(task: Task) -> Generator[None]:
    """Run one server."""
    with replicated_nats.running(task, servers=1):
        yield
