"""Java's replication of a Vanilla Chronicle, through the programs in interop/vanilla."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.adapters import tcp_echo, vanilla_java
from bench.adapters.redis_streams import free_port
from bench.task import Task

NAME = "Vanilla's replication (Java)"
version, binary = vanilla_java.version, vanilla_java.binary


@contextmanager
def services(task: Task) -> Generator[None]:
    """Choose a port: source and sink are the ends themselves."""
    tcp_echo.write_ports(task, [free_port()])
    yield


def command(task: Task) -> list[str]:
    """Return the command line of one end."""
    writes = task.operation == "produce"
    directory = Path(task.directory)
    return vanilla_java.peer().command(
        "replication-latency",
        role="produce" if writes else "tail",
        dir=directory / ("queue" if writes else "sink"),
        port=int((directory / "ports").read_text()),
        count=task.total,
        size=task.size if writes else None,
        rate=task.rate if writes else None,
        out=task.out,
        until=directory / "records" if writes else None,
    )
