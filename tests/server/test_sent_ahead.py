"""Appends to a remote queue that do not wait for each other's answers, and what may break them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import quire
from ports import free_port
from quire.errors import ClosedError, MessageTooLargeError, ServerLostError
from replicas import wait_until
from replicated import Replicated, replicated
from served import WAIT_S, connected, serving

APPEND = b"QUIRE.APPEND"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Replicated]:
    """A queue with one sink, which is in sync."""
    with replicated(tmp_path / "served", "b") as running:
        with quire.open(running.path) as queue:
            wait_until(lambda: [it.in_sync for it in queue.replicas] == [True])
        yield running


@pytest.fixture
def port(running: Replicated) -> Iterator[int]:
    with serving(running.path.parent) as (port, _):
        yield port


def far(port: int, **options: Any) -> Any:  # noqa: ANN401 - any handle
    open_any: Any = quire.open
    return open_any(f"quire://127.0.0.1:{port}/queue", **options)


def results(futures: list[Future[int]]) -> list[int]:
    return [it.result(WAIT_S) for it in futures]


class Between:
    """What stands before a server: a connection that appends gets answers after *count* appends."""

    def __init__(self, port: int, count: int) -> None:
        self._server_port, self._count = port, count
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._clients: list[socket.socket] = []
        self._servers: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def break_off(self) -> None:
        """End all connections without the answers that were held back; hold back no more."""
        self._count = 0
        for client in self._clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(WAIT_S)
        self.break_off()
        for thread in self._threads:
            thread.join(WAIT_S)
        for it in (self._listening, *self._clients, *self._servers):
            it.close()

    def _start(self, call: Callable[..., None], *more: object) -> None:
        self._threads.append(threading.Thread(target=call, args=more, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._clients.append(client)
                try:
                    server = socket.create_connection(("127.0.0.1", self._server_port))
                except OSError:
                    client.shutdown(socket.SHUT_RDWR)
                    continue
                self._servers.append(server)
                is_free = threading.Event()
                is_free.set()
                self._start(self._ask, client, server, is_free)
                self._start(self._answer, client, server, is_free)

    def _ask(self, client: socket.socket, server: socket.socket, is_free: threading.Event) -> None:
        seen = 0
        with suppress(OSError):
            while asked := client.recv(1 << 16):
                seen += asked.count(APPEND)
                if 0 < seen < self._count:
                    is_free.clear()
                server.sendall(asked)
                if seen >= self._count:
                    is_free.set()
        is_free.set()
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def _answer(
        self, client: socket.socket, server: socket.socket, is_free: threading.Event
    ) -> None:
        with suppress(OSError):
            while answered := server.recv(1 << 16):
                is_free.wait()
                client.sendall(answered)
            client.shutdown(socket.SHUT_RDWR)


def test_appends_are_sent_without_waiting_for_answers(port: int) -> None:
    with (
        closing(Between(port, 8)) as between,
        far(between.port) as queue,
        queue.appender() as appender,
    ):
        with appender.in_flight(16) as flight:
            futures = [flight.write_bytes(b"%d" % number) for number in range(16)]
        found = [(it.index, it.data) for it in queue.tailer()]
        assert found == [*zip(results(futures), (b"%d" % it for it in range(16)), strict=True)]


@pytest.mark.check
def test_no_more_than_the_limit_is_sent(running: Replicated, port: int) -> None:
    running.sinks["b"].stop()
    with far(port) as queue, queue.appender() as appender, connected(port) as other:
        flight = appender.in_flight(4, timeout_s=WAIT_S)
        futures = [flight.write_bytes(b"x") for _ in range(4)]
        blocked = threading.Thread(target=lambda: futures.append(flight.write_bytes(b"y")))
        blocked.start()
        wait_until(lambda: other.xlen("queue") == 4)
        assert not any(it.done() for it in futures)
        assert blocked.is_alive()
        running.sinks["b"].go_on()
        blocked.join(WAIT_S)
        assert results(futures) == [it.index for it in queue.tailer()]
        assert len(futures) == 5


def test_futures_resolve_in_order_and_without_leaving_the_block(port: int) -> None:
    resolved: list[int] = []
    with far(port) as queue, queue.appender() as appender:
        flight = appender.in_flight()
        first = flight.write_text("hello")
        assert first.result(WAIT_S) == queue.last_index == appender.last_index_appended
        assert not first.cancel()
        futures = [first, *(flight.write_map({"n": number}) for number in range(500))]

        def note(done: Future[int]) -> None:
            resolved.append(done.result())

        for it in futures:
            it.add_done_callback(note)
        wait(futures, WAIT_S)
        wait_until(lambda: len(resolved) == len(futures))
        assert resolved == sorted(resolved) == [it.index for it in queue.tailer()]


@pytest.mark.check
def test_what_is_written_afterwards_comes_afterwards(port: int) -> None:
    with far(port) as queue:
        appender = queue.appender()
        flight = appender.in_flight(64)
        for number in range(10):
            flight.write_bytes(b"%d" % (2 * number))
            appender.write_bytes(b"%d" % (2 * number + 1))
        last = flight.write_bytes(b"20")
        appender.close()  # which sends what was written
        assert last.result(WAIT_S) == queue.last_index
        with pytest.raises(ClosedError):
            flight.write_bytes(b"x")
        assert queue.tailer().read_many(99) == [b"%d" % it for it in range(21)]


@pytest.mark.check
def test_a_message_that_cannot_be_appended_is_refused_at_once(port: int) -> None:
    with far(port) as queue, queue.appender() as appender:
        with appender.in_flight(4) as flight:
            futures = [flight.write_bytes(b"before")]
            with pytest.raises(MessageTooLargeError, match="limit="):
                flight.write_bytes(bytes(appender.longest + 1))
            with pytest.raises(ValueError, match="at least one byte"):
                flight.write_bytes(b"")
            futures.append(flight.write_bytes(b"after"))
        results(futures)
        assert queue.tailer().read_many(9) == [b"before", b"after"]


@pytest.mark.check
def test_a_server_that_is_gone(running: Replicated) -> None:
    with (
        serving(running.path.parent) as (port, process),
        far(port, timeout_s=0.5) as queue,
        queue.appender() as appender,
    ):
        futures: list[Future[int]] = []
        with pytest.raises(ServerLostError), appender.in_flight(64) as flight:  # noqa: PT012
            flight.write_bytes(b"there").result(WAIT_S)
            process.kill()
            process.wait()
            futures += [flight.write_bytes(b"x") for _ in range(10)]
        assert all(isinstance(it.exception(WAIT_S), ServerLostError) for it in futures)
    with quire.open(running.path, read_only=True) as home:
        assert home.tailer().read_many(9) == [b"there"]


@pytest.mark.check
@pytest.mark.parametrize("after", [1, 300, 700])
def test_a_server_that_is_killed_in_the_middle(running: Replicated, after: int) -> None:
    """Each message is there once, in order, and each future has its index."""
    at = free_port()
    listen = ("--listen", f"127.0.0.1:{at}")
    messages = [b"%d" % number for number in range(1000)]
    with far_after_a_kill(running, at, listen) as (queue, kill), queue.appender() as appender:
        with appender.in_flight(256, timeout_s=WAIT_S) as flight:
            futures: list[Future[int]] = []
            for number, message in enumerate(messages):
                futures.append(flight.write_bytes(message))
                if number == after:
                    kill()
        found = [(it.index, it.data) for it in queue.tailer()]
        assert found == [*zip(results(futures), messages, strict=True)]


@contextmanager
def far_after_a_kill(
    running: Replicated, at: int, listen: tuple[str, ...]
) -> Generator[tuple[Any, Any]]:
    """An open queue, and what kills its server; another one starts then, on the same port."""
    root = running.path.parent
    again: list[Any] = []
    with serving(root, *listen) as (_, process), far(at, timeout_s=WAIT_S) as queue:

        def kill() -> None:
            process.kill()
            process.wait()
            again.append(serving(root, *listen))
            again[0].__enter__()

        try:
            yield queue, kill
        finally:
            for it in again:
                it.__exit__(None, None, None)


@pytest.mark.check
def test_a_server_that_has_forgotten_where_messages_are(running: Replicated) -> None:
    """It was killed after it appended messages, and before it answered."""
    at = free_port()
    listen = ("--listen", f"127.0.0.1:{at}")
    with (
        far_after_a_kill(running, at, listen) as (_, kill),
        closing(Between(at, 1000)) as between,
        far(between.port, timeout_s=WAIT_S) as queue,
        queue.appender() as appender,
    ):
        with appender.in_flight(64, timeout_s=WAIT_S) as flight:
            futures = [flight.write_bytes(b"%d" % (number % 3)) for number in range(20)]
            with quire.open(running.path) as home, home.appender() as other:
                wait_until(lambda: home.entry_count == 20)
                kill()
                other.write_bytes(b"another's")
            between.break_off()
        found = [it.index for it in queue.tailer()]
        assert results(futures) == found[:20]
        assert len(found) == 21


@pytest.mark.check
def test_a_program_that_ends_sends_what_it_has_written(running: Replicated, port: int) -> None:
    program = (
        f"import quire; queue = quire.open('quire://127.0.0.1:{port}/queue');"
        " flight = queue.appender().in_flight(1000); [flight.write_bytes(b'x') for _ in range(999)]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=WAIT_S)
    with quire.open(running.path, read_only=True) as home:
        assert home.entry_count == 999


@pytest.mark.check
def test_a_callback_may_write(running: Replicated) -> None:
    found: list[Future[int]] = []

    def writing(message: bytes) -> Callable[[Future[int]], None]:
        def write(_: Future[int]) -> None:
            found.append(flight.write_bytes(message))

        return write

    with (
        serving(running.path.parent) as (port, process),
        far(port, timeout_s=0.5) as queue,
        queue.appender() as appender,
    ):
        flight = appender.in_flight(2)
        first = flight.write_bytes(b"first")
        first.add_done_callback(writing(b"second"))
        wait_until(lambda: bool(found) and found[0].done())
        assert found[0].result() == queue.last_index
        process.kill()
        process.wait()
        lost = [flight.write_bytes(b"x"), flight.write_bytes(b"y")]
        lost[0].add_done_callback(writing(b"z"))
        wait_until(lambda: len(found) == 2)
        assert isinstance(found[1].exception(WAIT_S), ServerLostError)


@pytest.mark.check
def test_a_forked_process_numbers_its_own_messages(port: int) -> None:
    with far(port) as queue:
        appender = queue.appender()
        flight = appender.in_flight(8)
        flight.write_bytes(b"parent 0").result(WAIT_S)
        appender.write_bytes(b"parent 1")
        if (child := os.fork()) == 0:
            code = 1
            try:
                appender.write_bytes(b"child 1")
                flight.write_bytes(b"child 2")
                appender.write_bytes(b"child 3")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        appender.write_bytes(b"parent 2")
        flight.write_bytes(b"parent 3").result(WAIT_S)
        found = queue.tailer().read_many(99)
    whose = {it: [one for one in found if one.startswith(it)] for it in (b"parent", b"child")}
    assert whose[b"parent"] == [b"parent %d" % it for it in range(4)]
    assert whose[b"child"] == [b"child %d" % it for it in range(1, 4)]
