"""The logs of two nodes: copied to one machine, merged by their times, and searched."""

import asyncio
import logging
from pathlib import Path
from tempfile import TemporaryDirectory

import quire
import quire.logging
from quire.replication import Sink, Source


async def node(name: str, folder: Path) -> Path:
    """Log on a node, where a source sends the queue; return its copy at the centre."""
    copy, logger = folder / "centre" / name, logging.getLogger(name)
    with quire.open(folder / name) as queue:
        logger.addHandler(quire.logging.Handler(queue))
        # Between machines, both get certificates; `quire replicate source` and `sink` do the same.
        async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
            for order in range(3):
                logger.warning("order %d is late", order)
                await asyncio.sleep(0.001)  # the other node's turn
            logger.error("order %d was rejected: %s", 3, "no credit")
            await sink.stored(queue.last_index or 0)
    return copy


async def nodes(folder: Path) -> list[Path]:
    return [*await asyncio.gather(node("north", folder), node("south", folder))]


with TemporaryDirectory() as directory:
    copies, merged = asyncio.run(nodes(Path(directory))), Path(directory) / "all"
    count = quire.maintenance.merge_queues(
        copies, merged, lambda it: it.to_message(quire.logging.Record).time
    )
    with quire.open(merged, read_only=True) as log, log.tailer() as tailer:
        records = [it.to_message(quire.logging.Record) for it in tailer]
    print(f"{count} records; errors of {[it.logger for it in records if it.level == 'ERROR']}")
