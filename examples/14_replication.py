"""Replicate a Vanilla Chronicle over TCP, and read only what the copy has stored."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import quire
from quire.vanilla.replication import Sink, Source

ORDERS = 1_000


async def read_acknowledged(source: Source, queue: quire.vanilla.VanillaQueue, copy: Sink) -> None:
    count = 0
    async for excerpt in source.acknowledged(queue.tailer()):
        count += excerpt.index <= (copy.last_index or 0)
        if count == ORDERS:
            print(f"{count:,} messages are in the queue and in its copy")
            return


async def main(folder: Path) -> None:
    with quire.open(folder / "orders", format="vanilla") as queue, queue.appender() as appender:
        async with Source(queue) as source:
            sink = Sink(folder / "copy", port=source.address[1], acknowledge=True)
            async with sink, asyncio.TaskGroup() as tasks:
                tasks.create_task(read_acknowledged(source, queue, sink))
                for number in range(ORDERS):
                    appender.write_text(f"order {number}")
        with quire.open(folder / "copy", read_only=True) as copy:
            same = [*copy.tailer()] == [*queue.tailer()]
            print("the same messages with the same indexes:", same)


with TemporaryDirectory() as name:
    asyncio.run(main(Path(name)))
