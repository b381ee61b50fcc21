"""Redis Streams: XADD and its answer for each message, over a Unix socket, without AOF."""

from __future__ import annotations

import shutil
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
        raise Missing("no redis-server on the PATH")
    told = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
    return f"redis-py {redis.__version__}, {told.split(' sha=')[0]}"


@contextmanager
def _server(directory: Path) -> Generator[Path]:
    socket = directory / "socket"
    options = {"port": "0", "unixsocket": str(socket), "dir": str(directory), "save": ""}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    command = ["redis-server", *arguments, "--appendonly", "no"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + _START_S
            while not socket.exists():
                assert time.monotonic() < deadline, "redis-server does not start"
                time.sleep(0.01)
            yield socket
        finally:
            process.terminate()


def run(task: Task) -> Outcome:
    """Append one message per request."""
    import redis

    with (
        _server(Path(task.directory)) as socket,
        redis.Redis(unix_socket_path=str(socket)) as client,
    ):
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
