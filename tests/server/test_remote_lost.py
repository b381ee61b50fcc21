"""Servers that are gone, or break each connection: every call of a handle ends in its time."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import quire
from quire.errors import ServerLostError, ServerSilentError
from served import serving

pytestmark = pytest.mark.slow

TIMEOUT_S = 5.0


@contextmanager
def breaking(port: int) -> Generator[int]:
    """
    Stand between handles and a server.

    Of each connection the greetings are handed on; the first command after them ends it.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = Thread(target=_accept, args=(listening, port), daemon=True)
        accepting.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        accepting.join()


def _accept(listening: socket.socket, port: int) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        Thread(target=_greet, args=(client, port), daemon=True).start()


GREETINGS = (b"HELLO", b"QUIRE.OPEN", b"QUIRE.TAILER", b"JOIN")


def _greet(client: socket.socket, port: int) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        while is_greeting(asked := client.recv(1 << 16)):
            server.sendall(asked)
            client.sendall(server.recv(1 << 16))


def is_greeting(asked: bytes) -> bool:
    return any(it in asked for it in GREETINGS)


def calls(queue: Any) -> dict[str, Callable[[], object]]:  # noqa: ANN401 - a queue of any place
    appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("named")
    consumer = queue.group("group").consumer()
    return {
        "append": lambda: appender.write_bytes(b"more"),
        "append many": lambda: appender.write_many([b"more"] * 10_000),
        "sync": appender.sync,
        "read": tailer.read_bytes,
        "read many": lambda: tailer.read_many(10),
        "read named": named.read_bytes,
        "wait": lambda: tailer.wait(60),
        "group": consumer.read,
        "state": lambda: queue.last_index,
    }


def all_lost(made: dict[str, Callable[[], object]], address: str) -> None:
    """Make all calls at once: each of them ends, and says that the server is lost."""
    with ThreadPoolExecutor(len(made)) as threads:
        made_calls = {name: threads.submit(call) for name, call in made.items()}
        errors = {name: call.exception() for name, call in made_calls.items()}
    for name, error in errors.items():
        assert isinstance(error, ServerLostError | ServerSilentError), name
        assert f"{address}/orders" in str(error), name


def test_a_server_that_was_killed(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, process):
        address = f"quire://127.0.0.1:{port}"
        with quire.open(f"{address}/orders", timeout_s=TIMEOUT_S) as queue:
            made = calls(queue)
            queue.appender().write_bytes(b"one")
            process.kill()
            process.wait()
            all_lost(made, address)


def test_a_server_that_closes_each_connection(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), breaking(port) as between:
        address = f"quire://127.0.0.1:{between}"
        made = calls(quire.open(f"{address}/orders", timeout_s=TIMEOUT_S))
        del made["wait"]  # it asks again for as long as it was told to
        all_lost(made, address)
