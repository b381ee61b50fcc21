"""Servers of tests: `quire serve` as a process, a real Redis, and clients of both."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as NotConnectedError
from redis.retry import Retry

from cli_runs import started
from ports import free_port
from quire.server import Server
from quire.server.context import Limits

WAIT_S = 60.0
NO_REDIS = "needs redis-server, see .ci/needs"


@contextmanager
def serving(root: Path, *options: object) -> Generator[tuple[int, subprocess.Popen[bytes]]]:
    """Run `quire serve` on a free port; without *--tokens*, nobody needs one."""
    root.mkdir(exist_ok=True)
    given = [str(it) for it in options]
    with started("serve", root, "--listen", "127.0.0.1:0", *given) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("listening 127.0.0.1:"), line
        yield int(line.rpartition(":")[2]), process


@contextmanager
def serving_here(root: Path, limits: Limits | None = None) -> Generator[int]:
    """Run a server in a thread of this process; yield its port."""
    loop, is_done = asyncio.new_event_loop(), asyncio.Event()
    port = Future[int]()

    async def serve() -> None:
        async with Server(root, limits=limits) as server:
            port.set_result(server.address[1])
            await is_done.wait()

    thread = Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield port.result(WAIT_S)
    finally:
        loop.call_soon_threadsafe(is_done.set)
        thread.join()
        loop.close()


@contextmanager
def real_redis(folder: Path, *options: str) -> Generator[int]:
    """Run a Redis on a free port; skip where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip(NO_REDIS)
    folder.mkdir(exist_ok=True)
    port = free_port()
    command = [program, "--port", str(port), "--save", "", "--dir", str(folder)]
    command += ["--loglevel", "warning", "--bind", "127.0.0.1", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        with connected(port) as client:
            client.ping()
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)


@contextmanager
def real_cluster(folder: Path) -> Generator[int]:
    """Run a Redis on a free port that is a cluster by itself; skip where there is none."""
    # Redis' own choice is its port + 10,000, which may be the port of any connection.
    options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with real_redis(folder, *options) as port, connected(port) as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        while client.cluster("INFO")["cluster_state"] != "ok":
            pass
        yield port


@contextmanager
def connected(port: int, *, protocol: int = 2, **options: Any) -> Generator[Any]:  # noqa: ANN401
    """Connect redis-py, which tries again while a server starts."""
    client = redis.Redis(
        port=port,
        protocol=protocol,
        socket_timeout=WAIT_S,
        retry=Retry(ConstantBackoff(0.05), 60),
        retry_on_error=[NotConnectedError],
        **options,
    )
    with client:
        yield client


def talk(port: int, data: bytes, *, ends: bool = True) -> bytes:
    """Send bytes, and return all that is answered until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
        raw.sendall(data)
        if ends:
            raw.shutdown(socket.SHUT_WR)
        found = b""
        while more := raw.recv(1 << 16):
            found += more
        return found


def command(*words: str | bytes) -> bytes:
    """Return a command as RESP has it."""
    parts = [it.encode() if isinstance(it, str) else it for it in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(it), it) for it in parts)
