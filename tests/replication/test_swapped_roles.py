"""The source connects and the sink listens, in both protocols."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

import quire
from event_loops import until
from quire.replication import Sink, Source, promote
from quire.vanilla import replication as vanilla
from replication_wire import FILES, run, subscribe

FORMATS = ["chronicle", "vanilla"]


def open_at(path: Path, style: str) -> quire.Queue:
    return quire.vanilla.open(path, files=FILES) if style == "vanilla" else quire.open(path)


def sink_at(path: Path, style: str) -> Sink | vanilla.Sink:
    if style == "vanilla":
        return vanilla.Sink(path, port=0, listens=True, files=FILES, acknowledge=True)
    return Sink(path, port=0, listens=True)


def source_of(
    queue: Any,  # noqa: ANN401 - of either format
    sink: Sink | vanilla.Sink,
    style: str,
) -> AbstractAsyncContextManager[Source | vanilla.Source]:
    kind = vanilla.Source if style == "vanilla" else Source
    return kind(queue, port=sink.address[1], connects=True)


def payloads(path: Path) -> list[bytes]:
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        return [bytes(it) for it in tailer.payloads()]


@pytest.mark.parametrize("style", FORMATS)
def test_a_sink_that_listens_outlives_its_sources(style: str, tmp_path: Path) -> None:
    async def work(queue: quire.Queue) -> None:
        appender = queue.appender()
        async with sink_at(tmp_path / "copy", style) as sink:
            for number in range(3):
                index = appender.write_bytes(b"%d" % number)
                async with source_of(queue, sink, style):
                    await sink.stored(index)

    with open_at(tmp_path / "source", style) as queue:
        run(work(queue))
    assert payloads(tmp_path / "copy") == [b"0", b"1", b"2"]


@pytest.mark.parametrize("style", FORMATS)
def test_a_source_connects_again_when_its_sink_comes_back(style: str, tmp_path: Path) -> None:
    async def work(queue: quire.Queue) -> None:
        appender = queue.appender()
        async with sink_at(tmp_path / "copy", style) as first:
            port = first.address[1]
            async with source_of(queue, first, style):
                await first.stored(appender.write_bytes(b"one"))
                await first.close()
                second = (
                    vanilla.Sink(tmp_path / "copy", port=port, listens=True, files=FILES)
                    if style == "vanilla"
                    else Sink(tmp_path / "copy", port=port, listens=True)
                )
                async with second:
                    await second.stored(appender.write_bytes(b"two"))

    with open_at(tmp_path / "source", style) as queue:
        run(work(queue))
    assert payloads(tmp_path / "copy") == [b"one", b"two"]


@pytest.mark.parametrize("style", FORMATS)
@pytest.mark.parametrize("nonsense", [b"GET / HTTP/1.1\r\n\r\n", subscribe(-1), b"\xff" * 64])
def test_a_stranger_does_not_end_a_sink_that_listens(
    nonsense: bytes, style: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(queue: quire.Queue) -> None:
        async with sink_at(tmp_path / "copy", style) as sink:
            reader, writer = await asyncio.open_connection(*sink.address)
            writer.write(nonsense)
            await until(lambda: any("waiting for a source" in it for it in caplog.messages))
            writer.close()
            del reader
            async with source_of(queue, sink, style):
                await sink.stored(queue.appender().write_bytes(b"one"))

    with caplog.at_level(logging.INFO, "quire"), open_at(tmp_path / "source", style) as queue:
        run(work(queue))
    assert payloads(tmp_path / "copy") == [b"one"]


@pytest.mark.parametrize("style", FORMATS)
def test_a_sink_that_listens_takes_one_source_at_a_time(
    style: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(queue: quire.Queue) -> None:
        async with sink_at(tmp_path / "copy", style) as sink, source_of(queue, sink, style):
            await sink.stored(queue.appender().write_bytes(b"one"))
            reader, writer = await asyncio.open_connection(*sink.address)
            said = await reader.read()
            assert said == b"" if style == "vanilla" else b"follows another source" in said
            writer.close()
            await sink.stored(queue.appender().write_bytes(b"two"))

    with open_at(tmp_path / "source", style) as queue:
        run(work(queue))
    assert "sources=1" in caplog.text


def test_a_listening_sink_whose_copy_is_promoted_ends(tmp_path: Path) -> None:
    async def work(queue: quire.Queue) -> None:
        sink = sink_at(tmp_path / "copy", "chronicle")
        with pytest.raises(quire.errors.ReplicationError, match="was promoted"):  # noqa: PT012
            async with sink:
                async with source_of(queue, sink, "chronicle"):
                    await sink.stored(queue.appender().write_bytes(b"one"))
                promoting = asyncio.to_thread(promote, tmp_path / "copy", timeout_s=60)
                await asyncio.gather(promoting, sink.run_forever())

    with quire.open(tmp_path / "source") as queue:
        run(work(queue))


def test_a_second_source_learns_that_the_sink_follows_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(first: quire.JournalQueue, second: quire.JournalQueue) -> None:
        async with (
            Sink(tmp_path / "copy", port=0, listens=True) as sink,
            Source(first, port=sink.address[1], connects=True),
        ):
            await sink.stored(first.appender().write_bytes(b"one"))
            async with Source(second, port=sink.address[1], connects=True):
                await until(lambda: "follows another source already" in caplog.text)
            await sink.stored(first.appender().write_bytes(b"two"))

    with (
        caplog.at_level(logging.WARNING, "quire"),
        quire.open(tmp_path / "first") as first,
        quire.open(tmp_path / "second") as second,
    ):
        run(work(first, second))
    assert payloads(tmp_path / "copy") == [b"one", b"two"]
