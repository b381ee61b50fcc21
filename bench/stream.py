"""Messages from one process to another, one call each: how long until the receiver had them all."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from typing import Protocol

from bench.task import DISTINCT, Outcome, Task, messages

PATIENCE_S = 120.0


class Channel(Protocol):
    """A way from a sending process to a receiving one. It pickles, and is opened on both sides."""

    def sender(self) -> AbstractContextManager[Callable[[bytes], object]]:
        """Hand out the call that sends one message."""
        ...

    def receiver(self) -> AbstractContextManager[Callable[[], bytes]]:
        """Hand out the call that waits for one message."""
        ...


def measure(task: Task, channel: Channel) -> Outcome:
    """
    Send from this process to a new one.

    The clock runs from before the first call until the receiver had the last message; what it had
    is compared afterwards.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_receive, args=(channel, task, theirs))
    process.start()
    try:
        _expect(ours, "open")
        with channel.sender() as send:
            pool = messages(task.size)
            _send(send, pool, task.warm_up)
            _expect(ours, "warm")
            begin = time.monotonic_ns()
            _send(send, pool, task.count)
            end = _expect(ours, "end")
            checksum = _expect(ours, "checksum")
    finally:
        process.join(PATIENCE_S)
        process.kill()
    return Outcome(end - begin, None, task.count, checksum)


def _send(send: Callable[[bytes], object], pool: list[bytes], count: int) -> None:
    for _ in range(count // DISTINCT):
        for message in pool:
            send(message)


def _receive(channel: Channel, task: Task, parent: Connection) -> None:
    with channel.receiver() as receive:
        parent.send(("open", 0))
        for _ in range(task.warm_up):
            receive()
        parent.send(("warm", 0))
        found = [receive() for _ in range(task.count)]
        parent.send(("end", time.monotonic_ns()))
    expected = messages(task.size)
    for start in range(0, task.count, DISTINCT):
        assert found[start : start + DISTINCT] == expected, f"other messages: from={start}"
    numbers = (int.from_bytes(message[:8], "little") for message in found)
    parent.send(("checksum", sum(numbers)))


def _expect(connection: Connection, what: str) -> int:
    if not connection.poll(PATIENCE_S):
        raise TimeoutError(f"the receiver is silent: waited for={what}")
    said, value = connection.recv()
    assert said == what, f"said={said} expected={what}"
    return int(value)
