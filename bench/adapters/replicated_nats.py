"""NATS JetStream, a stream with two replicas: published at one server, delivered by the other."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.adapters import tcp_echo
from bench.adapters.redis_streams import free_port
from bench.task import Missing, Task

NAME = "NATS JetStream, two replicas"
_START_S = 30.0
_PAUSE_S = 0.2
_BUFFERED = 10_000_000
_SUBJECT, _INBOX = b"m", b"inbox"


def version() -> str:
    """Return the server's."""
    server = shutil.which("nats-server")
    if server is None:
        hint = "go install github.com/nats-io/nats-server/v2@latest"
        raise Missing(f"no nats-server on the PATH: {hint}")
    return subprocess.run(
        [server, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


@contextmanager
def services(task: Task) -> Generator[None]:
    """Run a cluster of two servers, with a stream that both keep."""
    with running(task, servers=2):
        yield


@contextmanager
def running(task: Task, servers: int) -> Generator[None]:
    """Run servers, and make a stream that each of them keeps."""
    clients, routes = ([free_port() for _ in range(servers)] for _ in range(2))
    with ExitStack() as stack:
        for number in range(servers):
            path = Path(task.directory) / f"nats{number}"
            path.mkdir()
            config = path / "config"
            config.write_text(_config(number, path, clients, routes))
            process = subprocess.Popen(["nats-server", "-c", str(config)])  # noqa: S607
            stack.callback(process.wait)
            stack.callback(process.terminate)
        _create(clients[0], {"name": "m", "subjects": ["m"], "num_replicas": servers})
        tcp_echo.write_ports(task, clients)
        yield


def _config(number: int, path: Path, clients: list[int], routes: list[int]) -> str:
    alone = (
        f"server_name: s{number}\nlisten: 127.0.0.1:{clients[number]}\nlog_file: '{path / 'log'}'\n"
        # By default it drops what comes faster than it can take it.
        f"jetstream {{ store_dir: '{path}', max_buffered_msgs: {_BUFFERED}, "
        "max_buffered_size: 1GB }\n"
    )
    if len(clients) == 1:
        return alone
    return alone + (
        f"cluster {{ name: c\n"
        f"  listen: 127.0.0.1:{routes[number]}\n"
        f"  routes: [ nats://127.0.0.1:{routes[1 - number]} ] }}\n"
    )


def _create(port: int, stream: Mapping[str, Any]) -> None:
    """Create a stream, as soon as the cluster has a leader."""
    deadline, answer = time.monotonic() + _START_S, "none"
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), _START_S) as connection:
                connection.settimeout(1.0)
                _greet(connection)
                answer = _asked(connection, b"$JS.API.STREAM.CREATE.m", stream)
        except OSError as error:
            answer = str(error)
        if '"error"' not in answer and '"config"' in answer:
            return
        time.sleep(_PAUSE_S)
    raise TimeoutError(f"no stream is created: answer={answer}")


def _greet(connection: socket.socket) -> None:
    connection.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n')
    greeting = b""
    while b"PONG\r\n" not in greeting:
        data = connection.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed the connection")
        greeting += data


def _asked(connection: socket.socket, subject: bytes, body: Mapping[str, Any]) -> str:
    """Ask a question of the server's own subjects; return the answer."""
    text = json.dumps(body).encode()
    ask = b"SUB answer 1\r\nPUB %b answer %d\r\n%b\r\n" % (subject, len(text), text)
    connection.sendall(ask)
    answer = b""
    while not answer.endswith(b"}\r\n"):
        data = connection.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed the connection")
        answer += data
    return answer.decode()


def run(task: Task) -> None:
    """Run one end."""
    with tcp_echo.connected(task) as connection:
        _greet(connection)
        if task.operation == "produce":
            head = b"PUB %b %d\r\n" % (_SUBJECT, task.size)
            tcp_echo.produce(task, lambda it: connection.sendall(b"%b%b\r\n" % (head, it)))
            connection.sendall(b"PING\r\n")
            connection.recv(1 << 16)
        else:
            _tail(task, connection)


def _tail(task: Task, connection: socket.socket) -> None:
    consumer = {"deliver_subject": _INBOX.decode(), "ack_policy": "none", "deliver_policy": "all"}
    connection.sendall(b"SUB %b 2\r\n" % _INBOX)
    asked = {"stream_name": "m", "config": consumer}
    answer = _asked(connection, b"$JS.API.CONSUMER.CREATE.m", asked)
    assert '"error"' not in answer, answer
    pattern = re.compile(rb"(?s)MSG m 2 \S+ %d\r\n(.{%d})\r\n" % (task.size, task.size))
    received = tcp_echo.matches_of(connection, pattern)
    tcp_echo.tail(task, lambda: [it[1] for it in received()])
