"""TCP alone: a process in between forwards each message to the reader, and keeps nothing."""

from __future__ import annotations

import re
import socket
import sys
import time
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from bench.quire_queues import STAMPS, append_paced, freeze_the_collector
from bench.task import Outcome, Task

NAME = "TCP alone (limit)"
_CHUNK = 1 << 16
_BACKLOG = 2
_PATIENCE_S = 60.0


def version() -> str:
    """Return that of the interpreter, whose sockets these are."""
    return f"sockets of Python {sys.version.split()[0]}"


@contextmanager
def services(task: Task) -> Generator[None]:
    """Run the process in between."""
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as server:
        write_ports(task, [server.getsockname()[1]])
        process = get_context("fork").Process(target=_echo, args=(server,), daemon=True)
        process.start()
        try:
            yield
        finally:
            process.join(_PATIENCE_S)
            process.kill()
            process.join()


def write_ports(task: Task, ports: Sequence[int]) -> None:
    """Keep the ports of a task's services: the writer's, and the reader's if that is another."""
    (Path(task.directory) / "ports").write_text(" ".join(map(str, ports)))


def connected(task: Task) -> socket.socket:
    """Connect to where a task writes, or reads."""
    ports = (Path(task.directory) / "ports").read_text().split()
    port = ports[0 if task.operation == "produce" else -1]
    connection = socket.create_connection(("127.0.0.1", int(port)), _PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _echo(server: socket.socket) -> None:
    """Hand what the second connection sends to the first, until it ends."""
    reader, _ = server.accept()
    writer, _ = server.accept()
    reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := writer.recv(_CHUNK):
        reader.sendall(data)
    reader.close()


def run(task: Task) -> Outcome | None:
    """Run one end."""
    with connected(task) as connection:
        if task.operation == "produce":
            produce(task, connection.sendall)
        else:
            received = matches_of(connection, re.compile(b"(?s).{%d}" % task.size))
            tail(task, lambda: [it[0] for it in received()])
    return None


def produce(task: Task, send: Callable[[bytes], object]) -> None:
    """Send messages at the task's rate, and sleep in between."""
    appends = array("q", bytes(2 * 8 * task.total))
    freeze_the_collector()
    append_paced(send, task, range(task.total), appends, sleeps=True)
    Path(task.out).write_bytes(appends.tobytes())


def tail(task: Task, receive: Callable[[], Iterable[bytes]]) -> None:
    """Record number, due time and arrival of each message; *receive* waits for the next ones."""
    arrivals = array("q")
    freeze_the_collector()
    print("READY", flush=True)
    while len(arrivals) < 3 * task.total:
        found = receive()
        had = time.monotonic_ns()
        for message in found:
            arrivals.extend((*STAMPS.unpack_from(message), had))
    Path(task.out).write_bytes(arrivals.tobytes())


def matches_of(
    connection: socket.socket, pattern: re.Pattern[bytes]
) -> Callable[[], list[re.Match[bytes]]]:
    """Return what receives more bytes, and returns the complete matches that follow one another."""
    rest = b""

    def receive() -> list[re.Match[bytes]]:
        nonlocal rest
        data = connection.recv(_CHUNK)
        assert data, "the connection ended early"
        rest += data
        found = list(pattern.finditer(rest))
        rest = rest[found[-1].end() :] if found else rest
        return found

    return receive
