"""A server that is restarted: every handle goes on, and each message comes once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from select import select
from subprocess import Popen
from threading import Event, Thread
from typing import Any

import pytest

import quire
from event_loops import until
from parameters import some
from ports import free_port
from quire.errors import ClosedError, WaitTimeoutError
from served import WAIT_S, command, connected, serving

END = b"end"


class Restarted:
    """A server that can be restarted at its port."""

    def __init__(self, stack: ExitStack, root: Path) -> None:
        self._stack, self._root = stack, root
        self.port = free_port()
        self.process = self._start()

    def _start(self) -> Popen[bytes]:
        listen = ("--listen", f"127.0.0.1:{self.port}")
        return self._stack.enter_context(serving(self._root, *listen))[1]

    def restart(self, end: str) -> None:
        self.end(end)
        self.begin()

    def begin(self) -> None:
        self.process = self._start()

    def end(self, end: str) -> None:
        getattr(self.process, end)()
        self.process.wait()


@contextmanager
def restartable(stack: ExitStack, root: Path) -> Generator[tuple[Restarted, Any]]:
    """Yield a server and a queue of it, which is closed before the server ends."""
    server = Restarted(stack, root)
    with quire.open(f"quire://127.0.0.1:{server.port}/q", timeout_s=WAIT_S) as queue:
        yield server, queue


class Working:
    """A thread that notes what its work yields, up to the last message."""

    def __init__(self, work: Callable[[], Iterator[bytes]]) -> None:
        self._work = work
        self.found: list[bytes] = []
        self.error: Exception | None = None
        self.has_begun = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for data in self._work():
                self.found.append(data)
                self.has_begun.set()
                if data == END:
                    return
        except Exception as error:  # noqa: BLE001 - raised by result
            self.error = error
            self.has_begun.set()

    def result(self) -> list[bytes]:
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.found


def written(appender: Any, is_last: Event) -> Iterator[bytes]:  # noqa: ANN401
    number = 0
    while not is_last.is_set():
        appender.write_bytes(b"%d" % number)
        yield b"%d" % number
        number += 1
    appender.write_bytes(END)
    yield END


def followed(tailer: Any) -> Iterator[bytes]:  # noqa: ANN401
    with tailer:
        for message in tailer.follow(timeout_s=WAIT_S):
            yield message.data


def consumed(consumer: Any) -> Iterator[bytes]:  # noqa: ANN401
    with consumer:
        for message in consumer.follow(timeout_s=WAIT_S):
            if message.ack():
                yield message.data


@pytest.mark.parametrize("end", some(["terminate", "kill"], keep=[0]))
def test_those_that_write_and_those_that_follow_go_on(tmp_path: Path, end: str) -> None:
    with ExitStack() as stack, restartable(stack, tmp_path / "queues") as (server, queue):
        is_last = Event()
        works = [
            Working(lambda: written(queue.appender(), is_last)),
            Working(lambda: followed(queue.tailer())),
            Working(lambda: followed(queue.tailer("named"))),
            Working(lambda: consumed(queue.group("group").consumer())),
        ]
        for it in works:
            it.has_begun.wait()
        server.restart(end)
        count = queue.entry_count
        while queue.entry_count == count and works[0].error is None:
            pass  # the writer has gone on
        is_last.set()
        sent, *found = [it.result() for it in works]
        assert queue.tailer().read_many(len(sent) + 1) == sent
        assert found[:2] == [sent, sent]
        if end == "terminate":  # all that was acknowledged was answered
            assert found[2] == sent


@pytest.mark.parametrize("end", some(["terminate", "kill"], keep=[0]))
def test_those_that_are_idle_go_on(tmp_path: Path, end: str) -> None:
    with ExitStack() as stack, restartable(stack, tmp_path / "queues") as (server, queue):
        appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("named")
        waiting, consumer = queue.tailer(), queue.group("group").consumer()
        appender.write_bytes(b"0")
        assert [it.read_bytes() for it in (tailer, named, waiting)] == [b"0"] * 3
        assert consumer.read().ack()
        with pytest.raises(WaitTimeoutError):
            waiting.wait(0)  # it has asked the server for the next message
        server.restart(end)
        assert queue.entry_count == 1
        appender.write_bytes(b"1")
        assert [it.read_bytes() for it in (tailer, named, waiting)] == [b"1"] * 3
        message = consumer.read()
        assert message.data == b"1"
        assert message.ack()
        with pytest.raises(WaitTimeoutError):
            waiting.wait(0)
        server.restart(end)
        waiting.to_end()
        named.commit()
        assert appender.write_bytes(b"2") == appender.last_index_appended
        assert [it.read_bytes() for it in (named, waiting)] == [b"2"] * 2


class Market:
    def halt(self, symbol: str) -> None: ...


async def taken(queue: Any, how: str, connections: list[Any]) -> None:  # noqa: ANN401
    """Wait for a message in an event loop, and note the connection that is waited with."""
    if how == "group":
        consumer = queue.group("group").consumer()
        connections.append(consumer._membership._connection)
        message = await consumer.aread()
        assert message.ack()
        return
    tailer = queue.tailer("named" if how == "named" else None)
    connections.append(tailer._connection)
    if how == "calls":
        halted = list[str]()

        class Handler:
            def halt(self, symbol: str) -> None:
                halted.append(symbol)

        reader = tailer.method_reader(Handler(), interface=Market)
        await reader.arun(until=lambda: halted)
    else:
        await tailer.aread()


@pytest.mark.parametrize("how", ["tailer", "named", "group", "calls"])
def test_an_event_loop_goes_on_while_the_server_is_away(tmp_path: Path, how: str) -> None:
    """What brings the server back here is another task of the same loop."""

    async def main(server: Restarted, queue: Any) -> None:  # noqa: ANN401
        connections = list[Any]()
        taking = asyncio.create_task(taken(queue, how, connections))
        await asyncio.sleep(0.1)  # it waits, most often
        server.end("kill")
        await until(lambda: not connections[0].is_connected)
        server.begin()
        queue.appender().method_writer(Market).halt("EURUSD")
        await taking

    with ExitStack() as stack:
        server = Restarted(stack, tmp_path / "queues")
        with quire.open(f"quire://127.0.0.1:{server.port}/q", timeout_s=20) as queue:
            asyncio.run(main(server, queue))


def test_tasks_acknowledge_while_the_server_is_away(tmp_path: Path) -> None:
    """The loop that brings the server back also has a task that reads from the same consumer."""

    async def main(server: Restarted, queue: Any) -> None:  # noqa: ANN401
        consumer = queue.group("group").consumer()
        queue.appender().write_many([b"%d" % number for number in range(5)])
        batch = await consumer.aread_many(3)
        assert batch.payloads() == [b"0", b"1", b"2"]
        assert await batch[0].aextend(60)
        assert await batch[0].aack()
        assert await consumer.aack_many(batch) == 2
        assert await (await consumer.aread()).anack()
        found = {it.data: it for it in (await consumer.aread(), await consumer.aread())}
        refused, fifth = found[b"3"], found[b"4"]  # in either order
        assert refused.redelivered
        assert await refused.aack()
        tailer = queue.tailer("named")
        assert await tailer.aread_bytes() == b"0"
        server.end("kill")
        waiting = asyncio.create_task(consumer.aread())
        acknowledging = [asyncio.create_task(call) for call in (fifth.aack(), tailer.acommit())]
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in (waiting, *acknowledging))
        server.begin()
        await asyncio.gather(*acknowledging)
        again = await waiting
        assert again.data == fifth.data
        assert await again.aack()
        consumer.close()
        with pytest.raises(ClosedError):
            await again.aack()

    with ExitStack() as stack:
        server = Restarted(stack, tmp_path / "queues")
        with quire.open(f"quire://127.0.0.1:{server.port}/q", timeout_s=20) as queue:
            asyncio.run(main(server, queue))


def test_what_was_received_is_answered_and_nobody_else_learns_anything(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with ExitStack() as stack:
        port, process = stack.enter_context(serving(root))
        idle, waiting, adding = (
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=WAIT_S))
            for _ in range(3)
        )
        with connected(port) as other, quire.open(root / "q") as home:
            other.xadd("q", {"n": 0})
            waiting.sendall(command("XREAD", "BLOCK", "0", "STREAMS", "none", "$"))
            with home.appender() as appender, appender.writing_document() as document:
                document.write("n", 1)  # holds the write lock
                adding.sendall(command("XADD", "q", "*", "n", "2") + command("PING"))
                while other.info("clients")["blocked_clients"] == 0:
                    pass
                process.terminate()
            assert adding.makefile("rb").read().endswith(b"-0\r\n+PONG\r\n")
        assert (idle.recv(1), waiting.recv(1)) == (b"", b"")
        assert process.wait() == 0


class Between:
    """Hands on what clients and a server say, until it ends as servers before this one did."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._clients: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._clients.append(client)
                Thread(target=self._hand_on, args=(client,), daemon=True).start()

    def _hand_on(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(("127.0.0.1", self._port)) as server,
            suppress(OSError),
        ):
            pair = {client: server, server: client}
            while True:
                for one in select([*pair], [], [])[0]:
                    if not (data := one.recv(1 << 16)):
                        return
                    pair[one].sendall(data)

    def end(self) -> None:
        clients, self._clients = self._clients, []
        for it in clients:
            with suppress(OSError):  # the client has gone
                it.sendall(b"-ERR the server ends\r\n")
                it.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def test_an_older_server_says_that_it_ends(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "queues") as (port, _),
        closing(Between(port)) as between,
        quire.open(f"quire://127.0.0.1:{between.port}/q", timeout_s=WAIT_S) as queue,
    ):
        appender, tailer, named = queue.appender(), queue.tailer(), queue.tailer("named")
        consumer = queue.group("group").consumer()
        for number in range(3):
            appender.write_bytes(b"%d" % number)
            assert [it.read_bytes() for it in (tailer, named)] == [b"%d" % number] * 2
            message = consumer.read()
            assert message is not None
            assert message.ack()
            assert queue.entry_count == number + 1
            with pytest.raises(WaitTimeoutError):
                tailer.wait(0)  # it has asked for the next message
            between.end()
