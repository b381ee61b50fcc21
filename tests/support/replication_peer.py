"""A process that is a source or a sink: source PATH PORT, sink PATH PORT. Prints its port."""

from __future__ import annotations

import asyncio
import sys

import quire
from quire.vanilla.replication import Sink, Source
from replication_wire import FILES


async def serve(path: str, port: int) -> None:
    with quire.open(path, format="vanilla", read_only=True) as queue:
        async with Source(queue, port=port) as source:
            sys.stdout.write(f"{source.address[1]}\n")
            sys.stdout.flush()
            await source.run_forever()


async def keep(path: str, port: int) -> None:
    async with Sink(path, port=port, reconnect_s=0.01, acknowledge=True, files=FILES) as sink:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await sink.run_forever()


if __name__ == "__main__":
    asyncio.run({"source": serve, "sink": keep}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
