"""Redis Streams with a replica: XADD at the one server, XREAD at the other, nothing on disk."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.adapters import redis_streams, tcp_echo
from bench.task import Task

NAME = "Redis Streams, a replica"
version = redis_streams.version
_START_S = 20.0
_BETWEEN_READS = 256
_REPLIES = 1 << 18
_AT_ONCE = 1000


@contextmanager
def services(task: Task) -> Generator[None]:
    """Run both servers, the second a replica of the first."""
    first, second = (Path(task.directory) / name for name in ("first", "second"))
    first.mkdir()
    second.mkdir()
    with (
        redis_streams.server(first, **{"repl-diskless-sync-delay": "0"}) as port,
        redis_streams.server(second, replicaof=f"127.0.0.1 {port}") as replica,
    ):
        _wait_for_link(replica)
        tcp_echo.write_ports(task, [port, replica])
        yield


def _wait_for_link(port: int) -> None:
    import redis

    deadline = time.monotonic() + _START_S
    with redis.Redis(port=port) as client:
        while client.info("replication")["master_link_status"] != "up":
            if time.monotonic() > deadline:
                raise TimeoutError(f"the replica does not follow: port={port}")
            time.sleep(0.01)


def run(task: Task) -> None:
    """Run one end."""
    with tcp_echo.connected(task) as connection:
        if task.operation == "produce":
            _produce(task, connection)
        else:
            _tail(task, connection)


def _produce(task: Task, connection: socket.socket) -> None:
    """Send each message as a request of its own, without waiting for its answer."""
    head = b"*5\r\n$4\r\nXADD\r\n$1\r\nm\r\n$1\r\n*\r\n$1\r\nd\r\n$%d\r\n" % task.size
    sent = answered = 0

    def send(message: bytes) -> None:
        nonlocal sent, answered
        connection.sendall(b"%b%b\r\n" % (head, message))
        sent += 1
        if sent % _BETWEEN_READS == 0:
            with suppress(BlockingIOError):
                answered += connection.recv(_REPLIES, socket.MSG_DONTWAIT).count(b"$")

    tcp_echo.produce(task, send)
    while answered < task.total:  # closed before that, the connection would be reset
        answered += connection.recv(_REPLIES).count(b"$")


def _tail(task: Task, connection: socket.socket) -> None:
    entry = rb"(?s)\$\d+\r\n(\d+-\d+)\r\n\*2\r\n\$1\r\nd\r\n\$%d\r\n(.{%d})\r\n"
    pattern = re.compile(entry % (task.size, task.size))
    head = re.compile(rb"\*1\r\n\*2\r\n\$1\r\nm\r\n\*(\d+)\r\n")
    last = b"0-0"

    def receive() -> list[bytes]:
        """Ask for what follows, and return it once the answer is complete."""
        nonlocal last
        ask = b"*8\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n$4\r\n%d\r\n$5\r\nBLOCK\r\n$1\r\n0\r\n"
        name = b"$7\r\nSTREAMS\r\n$1\r\nm\r\n$%d\r\n%b\r\n" % (len(last), last)
        connection.sendall(ask % _AT_ONCE + name)
        answer, found = b"", list[re.Match[bytes]]()
        while not (begin := head.match(answer)) or len(found) < int(begin[1]):
            answer += connection.recv(_REPLIES)
            found = list(pattern.finditer(answer))
        last = found[-1][1]
        return [it[2] for it in found]

    tcp_echo.tail(task, receive)
