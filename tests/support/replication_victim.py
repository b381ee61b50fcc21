"""A process to be killed, a source or a sink: `source PATH PORT`, `sink PATH PORT [NAME]`."""

from __future__ import annotations

import asyncio
import sys

import quire
from quire.replication import Sink, Source


async def serve(path: str, port: int) -> None:
    """Print the last index that a sink acknowledged, each time there is a later one."""
    with quire.open(path) as queue:
        async with Source(queue, port=port) as source:
            say(f"READY {source.address[1]}")
            running = asyncio.ensure_future(source.run_forever())
            last = -1
            while not running.done():
                found = [it.acknowledged_index for it in source.sinks]
                latest = max((it for it in found if it is not None), default=-1)
                if latest > last:
                    last = latest
                    say(f"{last:x}")
                await asyncio.sleep(0.002)
            running.result()


async def keep(path: str, port: int, name: str | None = None) -> None:
    async with Sink(path, port=port, name=name, reconnect_s=0.01) as sink:
        say(f"READY {port}")
        await sink.run_forever()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    kind, path, port, *name = sys.argv[1:]
    asyncio.run({"source": serve, "sink": keep}[kind](path, int(port), *name))
