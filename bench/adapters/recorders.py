"""Quire's recorders: messages that another process sends over the loopback."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from functools import partial

import quire
from bench.adapters.quire import version
from bench.adapters.quire_life import Detailed
from bench.quire_queues import open_queue
from bench.task import Outcome, Stopwatch, Task
from quire.recording import TcpRecorder, UdpRecorder
from quire.recording.recorder import PortRecorder
from quire.recording.websocket import WebSocketRecorder

__all__ = ["NAME", "NAMES", "run", "version"]

NAME = "quire.recording"
NAMES = {
    "udp": "UDP, at 170,000/s",
    "tcp": "TCP, framed by lengths",
    "websocket": "WebSocket, binary",
}
_RECORDERS: dict[str, Callable[[quire.JournalAppender], PortRecorder]] = {
    "udp": UdpRecorder,
    "tcp": partial(TcpRecorder, framing="length"),
    "websocket": WebSocketRecorder,
}


def run(task: Task) -> Outcome:
    """Record until as many messages arrived, or were dropped, as were sent."""
    return asyncio.run(_record(task))


async def _record(task: Task) -> Outcome:
    with open_queue(task.queue) as queue, queue.appender() as appender:
        async with _RECORDERS[task.operation](appender) as recorder:
            port = str(recorder.address[1])
            command = "-m", "bench.sending", task.operation, port, str(task.size)
            sender = await asyncio.create_subprocess_exec(sys.executable, *command, stdin=PIPE)
            await _send(sender, recorder, task.warm_up)
            before = recorder.counts.dropped or 0
            with Stopwatch() as watch:
                await _send(sender, recorder, task.count)
            dropped = recorder.counts.dropped or 0
            await sender.communicate(b"")
        found, expected = queue.entry_count, task.total - dropped
        assert found == expected, f"other messages: found={found} expected={expected}"
    details = {"dropped": (dropped - before) / task.count}
    return Detailed(watch.nanos, watch.cpu_nanos, task.count, 0, details)


async def _send(sender: Process, recorder: PortRecorder, count: int) -> None:
    """Have messages sent, and wait until they are in the queue or lost."""
    counts = recorder.counts
    wanted = counts.written + (counts.dropped or 0) + count
    assert sender.stdin
    sender.stdin.write(b"%d\n" % count)
    while counts.written + (counts.dropped or 0) < wanted:  # noqa: ASYNC110 - the same for all
        await asyncio.sleep(0.001)
