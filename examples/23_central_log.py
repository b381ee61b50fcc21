"""The logs of two nodes: copied to one machine, merged by their times, and queried."""

import asyncio
import logging
from pathlib import Path
from tempfile import TemporaryDirectory

import quire
import quire.logging
from quire.replication import Sink, Source


async def node(name: str, queue: quire.JournalQueue, centre: Path) -> Path:
    """Log on a node, where a source sends the queue; return its copy at the centre."""
    logger, handler = logging.getLogger(name), quire.logging.Handler(queue)
    logger.setLevel("INFO")
    logger.addHandler(handler)
    # Between machines, both get certificates; as processes, `quire replicate source` and `sink`.
    async with (
        Source(queue) as source,
        Sink(centre / name, port=source.address[1], name="centre") as sink,
    ):
        for order in range(3):
            logger.info("order %d filled", order, extra={"node": name})
            await asyncio.sleep(0.001)  # the other node's turn
        logger.error("order %d rejected: %s", 3, "no credit", extra={"node": name})
        await sink.stored(queue.last_index or 0)
    logger.removeHandler(handler)
    handler.close()
    return centre / name


async def collect(folder: Path) -> list[Path]:
    with quire.open(folder / "north") as north, quire.open(folder / "south") as south:
        centre = folder / "centre"
        nodes = [node("north", north, centre), node("south", south, centre)]
        return [*await asyncio.gather(*nodes)]


with TemporaryDirectory() as directory:
    copies = asyncio.run(collect(Path(directory)))
    merged = Path(directory) / "all"
    count = quire.maintenance.merge_queues(
        copies, merged, lambda it: it.to_message(quire.logging.Record).time
    )
    with quire.open(merged, read_only=True) as log:
        schema = quire.logging.schema(extra={"node": "utf8"})
        rows = log.tailer().read_batch(schema=schema).to_pylist()
    times = [row["time"] for row in rows]
    print(f"{count} records of two nodes, in the order of their times: {times == sorted(times)}")
    for row in rows:
        if row["severity"] >= logging.ERROR:
            print(row["level"], row["extra"]["node"], row["message"], row["args"])
