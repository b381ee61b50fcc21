"""Quire's server: by the handles of `quire.open`, by clients of Redis, and by Arrow Flight."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import quire
from bench import served_clients
from bench.adapters import tcp_echo
from bench.adapters.quire import version
from bench.quire_queues import STAMPS, append_paced, freeze_the_collector
from bench.served_clients import STREAM, Serving
from bench.task import BLOCK_BYTES, DISTINCT, ROLL_CYCLE, Outcome, Stopwatch, Task, messages

__all__ = ["NAME", "NAMES", "run", "services", "version"]

NAME = "Quire"
NAMES = {
    "latency": "Quire, `write_bytes` and `follow()`",
    "xadd": "Quire, redis-benchmark",
    "write_many": "Quire, `write_many`",
    "read_many": "Quire, `read_many(1000)`",
    "read_batch": "Quire, `read_batch(10_000)`",
    "call@write_bytes": "Quire, `write_bytes`",
    "call@redis_py": "Quire, redis-py",
    "call@socket": "Quire, a bare socket",
    "flight": "Quire, `DoGet`",
    "loopback": "TCP alone (limit)",
    "tailers@1000": "1,000 tasks in `afollow()`",
    "streams@1000": "Quire, 1,000 in `XREAD BLOCK`",
    "page@100": "the page, 100 queues",
}
_QUIRE: Final = (sys.executable, "-c", "import sys; from quire.cli import main; sys.exit(main())")
_LISTENING: Final = re.compile(r"listening (\S+):(\d+)")
_BATCH: Final = 10_000
_CHUNK: Final = 1 << 20
_PATIENCE_S: Final = 60.0
_END: Final = b"end"


@contextmanager
def _serving(task: Task, *more: str) -> Generator[tuple[Serving, list[int]]]:
    """Serve a queue, and yield the ports; *more* are options with a free port each."""
    served_clients.raise_limit_of_files()
    folder = Path(task.directory) / "served"
    _make(folder / STREAM)
    options = [part for it in ("--listen", *more) for part in (it, "127.0.0.1:0")]
    asked = ["serve", str(folder), *options, "--tokens", f"{task.directory}/no-tokens"]
    with subprocess.Popen([*_QUIRE, *asked], stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = [process.stdout.readline() if process.stdout else "" for _ in options[::2]]
            ports = [int(found[2]) for it in lines if (found := _LISTENING.match(it))]
            assert len(ports) == len(lines), f"the server does not start: printed={lines}"
            yield Serving(ports[0], process.pid), ports
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)


def _make(path: Path) -> None:
    quire.open(path, roll_cycle=ROLL_CYCLE, block_bytes=BLOCK_BYTES).close()


@contextmanager
def services(task: Task) -> Generator[None]:
    """Run the server of a latency."""
    with _serving(task) as (server, _):
        tcp_echo.write_ports(task, [server.port])
        yield


def run(task: Task) -> Outcome | None:
    """Run one operation."""
    if task.operation in _ENDS:
        port = int((Path(task.directory) / "ports").read_text())
        with _opened(port) as queue:
            _ENDS[task.operation](task, queue)
        return None
    if task.operation in _OWN:
        with _serving(task) as (server, _), _opened(server.port) as queue:
            return _OWN[task.operation](task, server, queue)
    if task.operation in _OTHERS:
        return _OTHERS[task.operation](task)
    with _serving(task) as (server, _):
        return served_clients.run(task, server)


def _opened(port: int) -> Any:  # noqa: ANN401 - a queue of a server
    return quire.open(f"quire://127.0.0.1:{port}/{STREAM}")


# Both ends of a latency.


def _produce(task: Task, queue: Any) -> None:  # noqa: ANN401
    """Append at the rate, and sleep in between."""
    appends = array("q", bytes(2 * 8 * task.total))
    with queue.appender() as appender:
        freeze_the_collector()
        append_paced(appender.write_bytes, task, range(task.total), appends, sleeps=True)
    Path(task.out).write_bytes(appends.tobytes())


def _tail(task: Task, queue: Any) -> None:  # noqa: ANN401
    """Follow the queue; number, due time and arrival of each message go to a file."""
    arrivals, clock = array("q"), time.monotonic_ns
    with queue.tailer() as tailer:
        freeze_the_collector()
        print("READY", flush=True)
        for message in islice(tailer.follow(), task.total):
            had = clock()
            arrivals.extend((*STAMPS.unpack_from(message.data), had))
    Path(task.out).write_bytes(arrivals.tobytes())


_ENDS: dict[str, Callable[[Task, Any], None]] = {"produce": _produce, "tail": _tail}


# By the handles.


def _write_many(task: Task, server: Serving, queue: Any) -> Outcome:  # noqa: ANN401
    """Append lists of ten thousand messages."""
    payloads = messages(task.size) * (_BATCH // DISTINCT)
    with queue.appender() as appender:

        def write(count: int) -> None:
            for _ in range(count // _BATCH):
                appender.write_many(payloads)

        found = served_clients.timed(task, server, write)
    assert queue.entry_count == task.total
    return found


def _write_bytes(task: Task, server: Serving, queue: Any) -> Outcome:  # noqa: ANN401
    """Append one message at a time, and wait for the answer."""
    payload = bytes(task.size)
    with queue.appender() as appender:
        write = appender.write_bytes
        return served_clients.timed(
            task, server, lambda count: [write(payload) for _ in range(count)]
        )


def _read_many(task: Task, server: Serving, queue: Any) -> Outcome:  # noqa: ANN401
    """Read lists of a thousand messages."""
    expected = messages(task.size)
    _fill(task, queue)
    with queue.tailer() as tailer:

        def read(count: int) -> None:
            for _ in range(count // DISTINCT):
                assert tailer.read_many(DISTINCT) == expected

        return served_clients.timed(task, server, read)


def _read_batch(task: Task, server: Serving, queue: Any) -> Outcome:  # noqa: ANN401
    """Read columns of ten thousand messages."""
    _fill(task, queue)
    with queue.tailer() as tailer:

        def read(count: int) -> None:
            left = count
            while left:
                found = tailer.read_batch(min(_BATCH, left)).num_rows
                assert found, "the queue ends early"
                left -= found

        return served_clients.timed(task, server, read)


def _fill(task: Task, queue: Any) -> None:  # noqa: ANN401
    payloads = messages(task.size)
    with queue.appender() as appender:
        for _ in range(task.total // DISTINCT):
            appender.write_many(payloads)


def _tailers(task: Task, server: Serving, queue: Any) -> Outcome:  # noqa: ANN401
    """Have tasks of one event loop wait for the same message, before it is appended."""

    async def follow(tailer: Any) -> None:  # noqa: ANN401
        async for message in tailer.afollow():
            assert message.data == _END
            return

    async def main() -> Outcome:
        with ExitStack() as stack:
            amount = served_clients.amount(task)
            tailers = [stack.enter_context(queue.tailer()) for _ in range(amount)]
            tasks = [asyncio.create_task(follow(it)) for it in tailers]
            used, took = await asyncio.to_thread(served_clients.at_rest, task, server)
            with queue.appender() as appender:
                begin = time.monotonic_ns()
                appender.write_bytes(_END)
                await asyncio.gather(*tasks)
            return served_clients.idle(task, used, took, time.monotonic_ns() - begin)

    return asyncio.run(main())


_OWN: dict[str, Callable[[Task, Serving, Any], Outcome]] = {
    "write_many": _write_many,
    "call@write_bytes": _write_bytes,
    "read_many": _read_many,
    "read_batch": _read_batch,
    "tailers@1000": _tailers,
}


# By Arrow Flight, and what can be had at most; and the page.


def _flight(task: Task) -> Outcome:
    """Get all messages as one stream of batches."""
    from pyarrow import flight

    with _serving(task, "--flight") as (server, ports):
        with _opened(server.port) as queue:
            _fill(task, queue)
        client = flight.connect(f"grpc://127.0.0.1:{ports[1]}")
        descriptor = flight.FlightDescriptor.for_path(STREAM)

        def get(count: int) -> int:
            size = rows = 0
            for endpoint in client.get_flight_info(descriptor).endpoints:
                for chunk in client.do_get(endpoint.ticket):
                    batch: Any = chunk.data
                    size += batch.nbytes
                    rows += batch.num_rows
            assert rows == count, f"rows={rows} expected={count}"
            return size

        used = server.cpu_ns()
        with Stopwatch() as watch, client:
            size = get(task.count)
        used = server.cpu_ns() - used
        return served_clients.outcome(task, watch.nanos, used, bytes_per_s=_rate(size, watch))


def _loopback(task: Task) -> Outcome:
    """Receive as many bytes from another process, which sends them as they are."""
    size = task.count * task.size
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = get_context("fork").Process(target=_send, args=(server, size), daemon=True)
        sender.start()
        buffer = bytearray(_CHUNK)
        with socket.create_connection(server.getsockname()) as connection, Stopwatch() as watch:
            left = size
            while left:
                left -= connection.recv_into(buffer)
        sender.join(_PATIENCE_S)
    return served_clients.outcome(
        task, watch.nanos, watch.cpu_nanos, bytes_per_s=_rate(size, watch)
    )


def _send(server: socket.socket, size: int) -> None:
    connection, _ = server.accept()
    chunk = memoryview(bytes(_CHUNK))
    with connection:
        for start in range(0, size, _CHUNK):
            connection.sendall(chunk[: size - start])


def _rate(size: int, watch: Stopwatch) -> float:
    return size * 1e9 / watch.nanos


def _page(task: Task) -> Outcome:
    """Have a browser's connection show a list of queues, in which nothing happens."""
    folder = Path(task.directory) / "served"
    for number in range(served_clients.amount(task) - 1):
        _make(folder / f"queue{number}")
    with (
        _serving(task, "--web") as (server, ports),
        socket.create_connection(("127.0.0.1", ports[1]), _PATIENCE_S) as browser,
    ):
        browser.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % ports[1])
        shown = b""
        while b"queue98" not in shown:
            data = browser.recv(_CHUNK)
            assert data, f"the page ended: received={shown[:1000]!r}"
            shown += data
        return served_clients.idle(task, *served_clients.at_rest(task, server))


_OTHERS: dict[str, Callable[[Task], Outcome]] = {
    "flight": _flight,
    "loopback": _loopback,
    "page@100": _page,
}
