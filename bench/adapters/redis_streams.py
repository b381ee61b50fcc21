"""Redis Streams: XADD and its answer for each message, over TCP on the loopback, without AOF."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.task import DISTINCT, Missing, Outcome, Stopwatch, Task, messages

NAME = "Redis Streams, XADD each"
_START_S = 10.0


def version() -> str:
    """Return the versions of the client and of the server."""
    try:
        import redis
    except ImportError as error:
        raise Missing("redis (the client) is not installed") from error
    server = shutil.which("redis-server")
    if server is None:
        raise Missing("no redis-server on the PATH: apt install redis-server")
    version = subprocess.run(
        [server, "--version"], capture_output=True, text=True, check=True
    ).stdout
    return f"redis-py {redis.__version__}, {version.split(' sha=')[0]}"


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def server(directory: Path, **more: str) -> Generator[int]:
    """Run a server that keeps all in memory, and give its port on the loopback."""
    with running(directory, **more) as (port, _):
        yield port


@contextmanager
def running(directory: Path, **more: str) -> Generator[tuple[int, int]]:
    """Run a server with some options, and give its port and its process."""
    port = free_port()
    options = {"port": str(port), "bind": "127.0.0.1", "dir": str(directory), "save": ""}
    options |= {"appendonly": "no", **more}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    command = ["redis-server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield port, process.pid
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=_START_S).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            return
    raise TimeoutError(f"redis-server does not start: port={port}")


def run(task: Task) -> Outcome:
    """Append one message per request."""
    import redis

    with server(Path(task.directory)) as port, redis.Redis(port=port) as client:
        pool = [{b"payload": message} for message in messages(task.size)]

        def append(rounds: int) -> None:
            for _ in range(rounds):
                for fields in pool:
                    client.xadd("messages", fields)

        append(task.warm_up // DISTINCT)
        with Stopwatch() as watch:
            append(task.count // DISTINCT)
        found = [fields for _, fields in client.xrange("messages")]
    assert found == pool * (task.total // DISTINCT)
    measured = [fields[b"payload"] for fields in found[task.warm_up :]]
    checksum = sum(int.from_bytes(m[:8], "little") for m in measured)
    return Outcome(watch.nanos, None, len(measured), checksum)
