"""Replication of Vanilla Chronicles and full disks, renamed and replaced directories."""

from __future__ import annotations

import asyncio
import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

import quire
from any_format import open_vanilla
from quire.errors import TableLostError
from quire.vanilla.replication import Sink, Source
from replicas import messages
from replication_wire import FILES, SMALL, WAIT_S
from small_disk import KIB, fill, make_room, on_small_disk

DISK = 2048 * KIB
PAYLOAD = b"order" * 200


@pytest.mark.slow
def test_a_full_disk_of_a_source(tmp_path: Path) -> None:
    """Its appends fail, it sends on, also to a sink that comes meanwhile, and appends again."""

    def work(disk: Path) -> int:
        copies = [tmp_path / "a", tmp_path / "b"]

        async def meet(queue: quire.vanilla.VanillaQueue) -> None:
            async with Source(queue) as source:
                port = source.address[1]
                async with Sink(copies[0], port=port, files=FILES) as first:
                    with pytest.raises(OSError, match="make room") as caught:  # noqa: PT012
                        fill(disk, leave=40)
                        for _ in range(10_000):
                            queue.appender().write_bytes(PAYLOAD)
                    assert caught.value.errno == errno.ENOSPC
                    fill(disk)
                    last = queue.last_index
                    assert last is not None
                    async with Sink(copies[1], port=port, files=FILES) as second:
                        for sink in (first, second):
                            await asyncio.wait_for(sink.stored(last), WAIT_S)
                        make_room(disk)
                        index = queue.appender().write_bytes(b"after it")
                        for sink in (first, second):
                            await asyncio.wait_for(sink.stored(index), WAIT_S)

        with open_vanilla(disk / "orders", **SMALL) as queue:
            queue.appender().write_bytes(b"first")
            asyncio.run(meet(queue))
            assert messages(copies[0]) == messages(copies[1]) == messages(disk / "orders")
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", [False, True], ids=["stored", "synced"])
def test_a_full_disk_of_a_sink(synchronous: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """It ends by name with what it acknowledged, the source goes on, and with room it has all."""

    def work(disk: Path) -> int:
        orders, copy = tmp_path / "orders", disk / "copy"

        async def meet(queue: quire.vanilla.VanillaQueue) -> None:
            options: dict[str, Any] = {"files": FILES, "synchronous": synchronous}
            async with Source(queue) as source:
                sink = Sink(copy, port=source.address[1], acknowledge=True, **options)
                with pytest.raises(OSError, match="make room") as caught:  # noqa: PT012
                    async with sink:
                        await source.stored(queue.last_index or 0)
                        fill(disk, leave=20)
                        for _ in range(200):
                            queue.appender().write_bytes(PAYLOAD)
                        await asyncio.wait_for(sink.run_forever(), WAIT_S)
                assert caught.value.errno == errno.ENOSPC
                queue.appender().write_bytes(b"the source goes on")

        async def again(queue: quire.vanilla.VanillaQueue) -> None:
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await asyncio.wait_for(sink.stored(queue.last_index or 0), WAIT_S)

        with open_vanilla(orders, **SMALL) as queue:
            queue.appender().write_bytes(b"first")
            asyncio.run(meet(queue))
            kept = messages(copy)
            assert kept == messages(orders)[: len(kept)]
            assert kept
            make_room(disk)
            asyncio.run(again(queue))
        assert messages(copy) == messages(orders)
        return 1

    on_small_disk(tmp_path / "disk", DISK, work)


def replace(path: Path, moved: Path, by: str) -> None:
    """Have a path lead to another directory, or to none."""
    if by == "a copy":
        shutil.copytree(moved, path)
    elif by == "another queue":
        with open_vanilla(path, **SMALL) as queue:
            queue.appender().write_many([b"of another queue"] * 2)


@pytest.mark.parametrize("replaced_by", ["nothing", "a copy", "another queue"])
def test_the_directory_of_a_sink_that_is_renamed_or_replaced(
    replaced_by: str, tmp_path: Path
) -> None:
    """It ends by name, acknowledges nothing more, and the other directory stays as it is."""
    copy, moved = tmp_path / "copy", tmp_path / "moved"

    async def meet(
        queue: quire.vanilla.VanillaQueue, appender: quire.vanilla.VanillaAppender
    ) -> None:
        async with Source(queue) as source:
            sink = Sink(copy, port=source.address[1], acknowledge=True, files=FILES)
            await sink.__aenter__()
            await source.stored(appender.write_bytes(b"kept"))
            copy.rename(moved)
            replace(copy, moved, replaced_by)
            before = files_of(copy)
            waiting = asyncio.ensure_future(source.stored(appender.write_bytes(b"by nobody")))
            with pytest.raises(TableLostError, match="renamed, removed or replaced"):
                await asyncio.wait_for(sink.run_forever(), WAIT_S)
            await sink.close()
            assert files_of(copy) == before
            assert not waiting.done()
            waiting.cancel()

    with open_vanilla(tmp_path / "orders", **SMALL) as queue, queue.appender() as appender:
        asyncio.run(meet(queue, appender))
    assert [it for _, it in messages(moved)] == [b"kept"]


@pytest.mark.parametrize("is_idle", [False, True])
@pytest.mark.parametrize("replaced_by", ["nothing", "a copy", "another queue"])
def test_the_directory_of_a_source_that_is_renamed_or_replaced(
    replaced_by: str, tmp_path: Path, *, is_idle: bool
) -> None:
    """It ends by name, at its next message or heartbeat, and sends nothing of the other one."""
    orders, moved, copy = tmp_path / "orders", tmp_path / "moved", tmp_path / "copy"

    async def meet(
        queue: quire.vanilla.VanillaQueue, appender: quire.vanilla.VanillaAppender
    ) -> None:
        async with Source(queue, heartbeat_s=0.1) as source:
            sink = Sink(copy, port=source.address[1], files=FILES)
            await sink.__aenter__()
            await sink.stored(appender.write_bytes(b"kept"))
            orders.rename(moved)
            replace(orders, moved, replaced_by)
            if not is_idle:
                appender.write_bytes(b"sent to nobody")
            with pytest.raises(TableLostError, match="renamed, removed or replaced"):
                await asyncio.wait_for(source.run_forever(), WAIT_S)
            await sink.close()

    with open_vanilla(orders, **SMALL) as queue, queue.appender() as appender:
        asyncio.run(meet(queue, appender))
    assert [it for _, it in messages(copy)] == [b"kept"]


def files_of(path: Path) -> dict[Path, bytes]:
    return {it: it.read_bytes() for it in path.rglob("*") if it.is_file()}
