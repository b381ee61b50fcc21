"""A full disk at a source: its appends fail, and nothing that a sink acknowledged is lost."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

import quire
from event_loops import until
from quire.replication import Sink, Source
from replicas import messages
from small_disk import KIB, fill, make_room, on_small_disk

pytestmark = pytest.mark.slow
WAIT_S = 60.0
DISK = 2048 * KIB
PAYLOAD = b"order" * 2000


def append_until_full(queue: quire.JournalQueue) -> int:
    """Append as long as there is room; return the index of the last message."""
    appender = queue.appender()
    with pytest.raises(OSError, match="make room") as caught:  # noqa: PT012 - one of them
        for _ in range(10_000):
            appender.write_bytes(PAYLOAD)
    assert caught.value.errno == errno.ENOSPC
    return queue.last_index or 0


def test_a_full_disk_of_a_source(tmp_path: Path) -> None:
    """It goes on sending, also to a sink that comes meanwhile, and appends once there is room."""

    def work(disk: Path) -> int:
        orders, copies = disk / "orders", [tmp_path / "a", tmp_path / "b"]

        async def meet() -> None:
            with quire.open(orders, roll_cycle="TEST8_DAILY", block_bytes=64 * KIB) as queue:
                queue.appender().write_bytes(b"first")
                async with Source(queue) as source:
                    port = source.address[1]
                    async with Sink(copies[0], port=port, name="a") as first:
                        fill(disk, leave=40)
                        last = append_until_full(queue)
                        fill(disk)
                        await asyncio.wait_for(first.stored(last), WAIT_S)
                        async with Sink(copies[1], port=port, name="b") as second:
                            await asyncio.wait_for(second.stored(last), WAIT_S)
                            await until(lambda: [it.in_sync for it in queue.replicas] == [True] * 2)
                            make_room(disk)
                            index = queue.appender().write_bytes(b"after it")
                            await asyncio.wait_for(second.stored(index), WAIT_S)
                            await asyncio.wait_for(first.stored(index), WAIT_S)

        asyncio.run(meet())
        for copy in copies:
            assert messages(copy) == messages(orders)
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)


def test_a_source_that_begins_on_a_full_disk(tmp_path: Path) -> None:
    """It says so, and begins once there is room."""

    def work(disk: Path) -> int:
        orders = disk / "orders"
        with quire.open(orders, roll_cycle="TEST8_DAILY", block_bytes=64 * KIB) as queue:
            index = queue.appender().write_bytes(b"first")
            fill(disk)

            async def begin() -> None:
                async with (
                    Source(queue) as source,
                    Sink(tmp_path / "copy", port=source.address[1]) as sink,
                ):
                    await asyncio.wait_for(sink.stored(index), WAIT_S)

            with pytest.raises(OSError, match="No space left") as caught:
                asyncio.run(begin())
            assert caught.value.errno == errno.ENOSPC
            make_room(disk)
            asyncio.run(begin())
        assert messages(tmp_path / "copy") == messages(orders)
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)


@pytest.mark.parametrize("level", ["stored", "synced"])
def test_what_a_sink_acknowledged_before_its_disk_was_full(level: str, tmp_path: Path) -> None:
    """The sink ends by name, its source goes on, and it has all that it acknowledged."""

    def work(disk: Path) -> int:
        orders, copy = tmp_path / "orders", disk / "copy"
        acknowledged = list[int | None]()

        async def meet(queue: quire.JournalQueue) -> None:
            async with Source(queue) as source:
                sink = Sink(copy, port=source.address[1], name="a", acknowledge=level)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
                with pytest.raises(OSError, match="make room") as caught:  # noqa: PT012
                    async with sink:
                        await sink.stored(queue.last_index or 0)
                        fill(disk, leave=20)
                        queue.appender().write_many([PAYLOAD] * 100)
                        await asyncio.wait_for(sink.run_forever(), WAIT_S)
                assert caught.value.errno == errno.ENOSPC
                acknowledged.extend(it.acknowledged_index for it in queue.replicas)
                queue.appender().write_bytes(b"the source goes on")

        async def again(queue: quire.JournalQueue) -> None:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await asyncio.wait_for(sink.stored(queue.last_index or 0), WAIT_S)

        with quire.open(orders, roll_cycle="TEST8_DAILY", block_bytes=64 * KIB) as queue:
            queue.appender().write_bytes(b"first")
            asyncio.run(meet(queue))
            kept = messages(copy)
            assert kept == messages(orders)[: len(kept)]
            [index] = acknowledged
            assert index is not None
            assert index in [it for it, _ in kept]
            make_room(disk)
            asyncio.run(again(queue))
        assert messages(copy) == messages(orders)
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)
