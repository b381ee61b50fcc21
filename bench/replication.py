"""How many messages a second a Vanilla Chronicle replicates to several sinks at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import quire
from bench.harness import ROOT
from quire.vanilla.replication import Sink, Source

_CHUNK = 100_000


def rate(directory: Path, sinks: int, count: int, size: int) -> float:
    """
    Messages a second, from the first append until every sink has acknowledged the last message.

    The source runs in this process and each sink in one of its own, over the loopback.
    """
    return asyncio.run(_rate(directory, sinks, count, size))


async def _rate(directory: Path, sinks: int, count: int, size: int) -> float:
    payloads = [bytes(size)] * min(count, _CHUNK)
    with (
        quire.open(directory / "source", format="vanilla") as queue,
        queue.appender() as appender,
        ExitStack() as processes,
    ):
        async with Source(queue) as source:
            for number in range(sinks):
                processes.enter_context(_sink(directory / f"copy{number}", source.address[1]))
            await source.stored(appender.write_bytes(bytes(size)), sinks=sinks)
            start, last = time.perf_counter(), 0
            for first in range(0, count, len(payloads)):
                last = appender.write_many(payloads[: count - first]) or last
                await asyncio.sleep(0)
            await source.stored(last, sinks=sinks)
            return count / (time.perf_counter() - start)


def _sink(path: Path, port: int) -> subprocess.Popen[bytes]:
    """Start a sink, which ends when it has lost its source."""
    return subprocess.Popen([sys.executable, "-m", __spec__.name, str(path), str(port)], cwd=ROOT)


async def _keep(path: str, port: int) -> None:
    sink = Sink(path, port=port, acknowledge=True, attempts=1)
    try:
        async with sink:
            await sink.run_forever()
    except quire.errors.PeerLostError:
        pass


if __name__ == "__main__":
    asyncio.run(_keep(sys.argv[1], int(sys.argv[2])))
