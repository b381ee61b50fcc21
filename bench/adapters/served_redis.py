"""Redis Streams as one would keep messages in it: with an AOF that is synchronised each second."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench import served_clients
from bench.adapters import redis_streams, replicated_redis, tcp_echo
from bench.served_clients import Serving
from bench.task import Outcome, Task

NAME = "Redis Streams"
NAMES = {
    "latency": NAME,
    "xadd": f"{NAME}, redis-benchmark",
    "pipeline": f"{NAME}, redis-py, pipelines of 1,000",
    "xread": f"{NAME}, redis-py, `xread(count=1000)`",
    "call@redis_py": f"{NAME}, redis-py",
    "call@socket": f"{NAME}, a bare socket",
    "streams@1000": f"{NAME}, 1,000 in `XREAD BLOCK`",
}


def version() -> str:
    """Return the versions of the client and of the server."""
    served_clients.benchmark()
    return redis_streams.version()


@contextmanager
def _serving(task: Task) -> Generator[Serving]:
    served_clients.raise_limit_of_files()
    options = {"appendonly": "yes", "appendfsync": "everysec", "maxclients": "10000"}
    with redis_streams.running(Path(task.directory), **options) as found:
        yield Serving(*found)


@contextmanager
def services(task: Task) -> Generator[None]:
    """Run the server of a latency."""
    with _serving(task) as server:
        tcp_echo.write_ports(task, [server.port])
        yield


def run(task: Task) -> Outcome | None:
    """Run one operation."""
    if task.operation in ("produce", "tail"):
        replicated_redis.run(task)
        return None
    with _serving(task) as server:
        return served_clients.run(task, server)
