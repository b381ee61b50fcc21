"""What clients do with a server of Redis Streams, whether it is Redis or Quire."""

from __future__ import annotations

import csv
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.adapters.quire_life import Detailed
from bench.task import DISTINCT, Missing, Outcome, Stopwatch, Task

STREAM = "m"
"""The name of the queue, or stream."""
_BENCHMARK = "redis-benchmark"
_CLIENTS, _AT_ONCE = 4, 64
_PATIENCE_S = 60.0
_REPLY = 1 << 16


class Serving(NamedTuple):
    """
    A running server.

    Attributes:
        port: Where it serves Redis Streams, on the loopback.
        pid: Its process.

    """

    port: int
    pid: int

    def cpu_ns(self) -> int:
        """Return the CPU time that its threads have used."""
        stats = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(it.read_text().split()[0]) for it in stats)

    @contextmanager
    def connected(self) -> Generator[Any]:
        """Connect redis-py."""
        import redis

        with redis.Redis(port=self.port) as client:
            yield client

    def socket(self) -> socket.socket:
        """Connect a socket."""
        found = socket.create_connection(("127.0.0.1", self.port), _PATIENCE_S)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found


def benchmark() -> str:
    """
    Return Redis's own program that measures.

    Raises:
        Missing: It is not installed.

    """
    found = shutil.which(_BENCHMARK)
    if found is None:
        raise Missing(f"no {_BENCHMARK} on the PATH: apt install redis-tools")
    return found


def outcome(task: Task, nanos: int, cpu_nanos: int, **details: float) -> Outcome:
    """Return what a task has measured; the CPU time is the server's."""
    used = max(1, cpu_nanos)  # what takes less than a turn of the scheduler may be counted late
    return Detailed(nanos, used, task.count, 0, details)


def timed(task: Task, server: Serving, work: Callable[[int], object]) -> Outcome:
    """Measure *work* on a number of messages, after that of the warm-up."""
    if task.warm_up:
        work(task.warm_up)
    used = server.cpu_ns()
    with Stopwatch() as watch:
        work(task.count)
    return outcome(task, watch.nanos, server.cpu_ns() - used)


def command(*words: bytes) -> bytes:
    """Return a command as RESP has it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(it), it) for it in words)


def _xadd(task: Task) -> bytes:
    return command(b"XADD", STREAM.encode(), b"*", b"payload", bytes(task.size))


def add(task: Task, server: Serving) -> Outcome:
    """Have redis-benchmark append in pipelines; the time is what it prints."""
    if task.warm_up:
        _benchmark(task, server, task.warm_up)
    used = server.cpu_ns()
    per_second = _benchmark(task, server, task.count)
    used = server.cpu_ns() - used
    with server.connected() as client:
        found = client.xlen(STREAM)
    assert found >= task.total, f"messages are missing: found={found} expected={task.total}"
    return outcome(task, round(task.count * 1e9 / per_second), used)


def _benchmark(task: Task, server: Serving, count: int) -> float:
    options = ("-p", server.port, "-c", _CLIENTS, "-P", _AT_ONCE, "-n", count, "--csv")
    asked = ("XADD", STREAM, "*", "payload", "x" * task.size)
    line = [benchmark(), *map(str, options), *asked]
    ran = subprocess.run(line, capture_output=True, text=True, check=True)
    [*_, row] = csv.reader(ran.stdout.splitlines())
    return float(row[1])


def call_by_redis_py(task: Task, server: Serving) -> Outcome:
    """Append one message at a time by redis-py, and wait for the answer."""
    with server.connected() as client:
        fields = {b"payload": bytes(task.size)}
        return timed(
            task, server, lambda count: [client.xadd(STREAM, fields) for _ in range(count)]
        )


def call_by_socket(task: Task, server: Serving) -> Outcome:
    """Append one message at a time by a bare socket, and wait for the answer."""
    request = _xadd(task)
    with server.socket() as connection:

        def call(count: int) -> None:
            for _ in range(count):
                connection.sendall(request)
                answer = connection.recv(_REPLY)
                assert answer.startswith(b"$"), answer

        return timed(task, server, call)


def append_by_redis_py(task: Task, server: Serving) -> Outcome:
    """Append in pipelines of a thousand by redis-py."""
    fields = {b"payload": bytes(task.size)}
    with server.connected() as client:

        def append(count: int) -> None:
            for _ in range(count // DISTINCT):
                with client.pipeline(transaction=False) as pipeline:
                    for _ in range(DISTINCT):
                        pipeline.xadd(STREAM, fields)
                    pipeline.execute()

        return timed(task, server, append)


def read_by_redis_py(task: Task, server: Serving) -> Outcome:
    """Read what was appended before, a thousand at a time, by redis-py."""
    _benchmark(task, server, task.total)
    last: Any = "0-0"
    with server.connected() as client:

        def read(count: int) -> None:
            nonlocal last
            for _ in range(count // DISTINCT):
                [[_, found]] = client.xread({STREAM: last}, count=DISTINCT)
                assert len(found) == DISTINCT
                last = found[-1][0]

        return timed(task, server, read)


def wait(task: Task, server: Serving) -> Outcome:
    """Have connections wait for the same message, before it is appended."""
    request = command(b"XREAD", b"BLOCK", b"0", b"STREAMS", STREAM.encode(), b"$")
    with ExitStack() as stack:
        clients = [stack.enter_context(server.socket()) for _ in range(amount(task))]
        for client in clients:
            client.sendall(request)
        writer = stack.enter_context(server.socket())
        used, took = at_rest(task, server)
        begin = time.monotonic_ns()
        writer.sendall(_xadd(task))
        for client in clients:
            assert client.recv(_REPLY).startswith(b"*")
        return idle(task, used, took, time.monotonic_ns() - begin)


def amount(task: Task) -> int:
    """Return how many clients an operation has."""
    return int(task.operation.split("@")[1])


def at_rest(task: Task, server: Serving) -> tuple[int, int]:
    """Return the CPU time and the time, in nanoseconds, of a while in which nothing happens."""
    time.sleep(task.warm_up / 1000)
    used = server.cpu_ns()
    with Stopwatch() as watch:
        time.sleep(task.count / 1000)
    return server.cpu_ns() - used, watch.nanos


def idle(task: Task, used: int, took: int, woken_ns: int = 0) -> Outcome:
    """Return what a server used at rest, and how long it took to wake all clients."""
    return outcome(task, took, used, cpu=used / took, woken_ns=woken_ns)


def raise_limit_of_files() -> None:
    """Let this process and those it starts have as many files open as they may."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


OPERATIONS: dict[str, Callable[[Task, Serving], Outcome]] = {
    "xadd": add,
    "call@redis_py": call_by_redis_py,
    "call@socket": call_by_socket,
    "pipeline": append_by_redis_py,
    "xread": read_by_redis_py,
    "streams": wait,
}
"""What is measured of both servers by the same client."""


def run(task: Task, server: Serving) -> Outcome:
    """Run one operation."""
    known = OPERATIONS.get(task.operation) or OPERATIONS[task.operation.partition("@")[0]]
    return known(task, server)
