"""A source or a sink that kills itself at a step of a handover: source|sink PATH PORT STEP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable

import quire
from quire.replication import Sink, Source, replica, standing, succession
from quire.replication.sink_session import SinkSession
from quire.replication.source_session import SourceSession

Step = tuple[object, str, bool]
STEPS: dict[str, Step] = {  # where, what, and whether it dies before that or after
    "closed": (succession.ClosedQueue, "end", True),
    "drained": (succession.ClosedQueue, "give_away", True),
    "given": (succession.ClosedQueue, "give_away", False),
    "sent": (SourceSession, "outgoing", False),
    "confirmed": (succession, "Successor", True),
    "asked": (replica.Replica, "promote", True),
    "kept": (standing, "write_of", False),
    "promoted": (replica.Replica, "promote", False),
    "answered": (SinkSession, "outgoing", False),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(step: str) -> None:
    """Have the process die at a step."""
    where, name, is_before = STEPS[step]
    original: Callable[..., object] = getattr(where, name)

    def deadly(*given: object, **named: object) -> object:
        if is_before:
            die()
        result = original(*given, **named)
        if step == "kept" and getattr(given[1], "role", "") != "source":
            return result
        if step in {"sent", "answered"}:
            deliver_last(result)
            return result
        die()
        return result

    setattr(where, name, deadly)


def deliver_last(result: object) -> None:
    """Die once the frame of the handover is on its way."""
    kinds = {11, 12}
    if isinstance(result, bytes) and len(result) > 4 and result[4] in kinds:
        threading.Timer(0.2, die).start()  # a thread may have sent it


async def work(kind: str, path: str, port: int) -> None:
    if kind == "sink":
        async with Sink(path, port=port, name="b", reconnect_s=0.01) as sink:
            await sink.run_forever()
            await asyncio.sleep(1)
            return
    with quire.open(path) as queue:
        async with Source(queue, port=port) as source:
            sys.stdout.write("READY\n")
            sys.stdout.flush()
            await source.run_forever()


if __name__ == "__main__":
    if sys.argv[4]:
        arm(sys.argv[4])
    asyncio.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
