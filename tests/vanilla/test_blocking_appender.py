"""The remote appender without an event loop, with sources that answer, refuse, or send nonsense."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

import quire
from any_format import open_vanilla
from ports import free_port
from quire.errors import ClosedError, PeerLostError, PeerSilentError, ReplicationError
from quire.vanilla.replication import BlockingRemoteAppender, Source
from replication_wire import (
    CAPTURED_MS,
    FIRST_CAPTURED,
    HEARTBEAT,
    SMALL,
    WAIT_S,
    captured,
    captured_payloads,
    contents,
    echo,
    is_closed,
    listening,
    run,
)

_T = TypeVar("_T")


def with_appender(port: int, work: Callable[[BlockingRemoteAppender], _T]) -> _T:
    with BlockingRemoteAppender(port=port, timeout_s=WAIT_S) as appender:
        return work(appender)


def test_it_sends_what_javas_sent() -> None:
    submitted = captured()[2]
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(2):
            received.extend(await reader.readexactly(29))
            writer.write(HEARTBEAT + submitted.frames[number * 12 : number * 12 + 12])
        await is_closed(reader)
        writer.close()

    def appended(appender: BlockingRemoteAppender) -> list[int]:
        return [appender.write_bytes(it) for it in captured_payloads()[6:]]

    async def work() -> list[int]:
        async with listening(serve) as port:
            return await asyncio.to_thread(with_appender, port, appended)

    assert run(work()) == [FIRST_CAPTURED + 6, FIRST_CAPTURED + 7]
    assert bytes(received) == submitted.requests


def test_threads_share_it(tmp_path: Path) -> None:
    def appended(appender: BlockingRemoteAppender) -> list[int]:
        appender.write_bytes_unacknowledged(b"first")
        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(appender.write_bytes, [b"%d" % it for it in range(40)]))

    async def work(queue: quire.vanilla.VanillaQueue) -> list[int]:
        async with Source(queue, accept_submits=True) as source:
            return await asyncio.to_thread(with_appender, source.address[1], appended)

    clock = quire.ManualClock(CAPTURED_MS)
    with open_vanilla(tmp_path / "source", clock=clock, **SMALL) as queue:
        indexes = run(work(queue))
        found = dict(contents(queue))
    assert [found[index] for index in indexes] == [b"%d" % it for it in range(40)]
    assert len(found) == 41


def test_what_was_sent_without_an_answer_is_appended_before_it_is_closed(tmp_path: Path) -> None:
    def appended(appender: BlockingRemoteAppender) -> None:
        for number in range(1000):
            appender.write_bytes_unacknowledged(b"%d" % number * 100)

    async def work(queue: quire.vanilla.VanillaQueue) -> None:
        async with Source(queue, accept_submits=True) as source:
            await asyncio.to_thread(with_appender, source.address[1], appended)

    with open_vanilla(tmp_path / "source") as queue:
        run(work(queue))
        assert queue.entry_count == 1000


@pytest.mark.parametrize("answer", [b"", echo(1), struct.pack("<iq", -129, 1) * 2])
def test_nonsense_closes_it(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(19)
        writer.write(answer)
        writer.close()

    def fails(appender: BlockingRemoteAppender) -> None:
        with pytest.raises(ReplicationError):
            appender.write_bytes(b"one")
        with pytest.raises(ClosedError):
            appender.write_bytes(b"one")

    async def work() -> None:
        async with listening(serve) as port:
            await asyncio.to_thread(with_appender, port, fails)

    run(work())


def test_a_source_that_refuses_answers_again(tmp_path: Path) -> None:
    def fails(appender: BlockingRemoteAppender) -> None:
        for _ in range(2):
            with pytest.raises(quire.errors.UnsupportedError, match="does not accept messages"):
                appender.write_bytes(bytes(100_000))

    async def work(queue: quire.vanilla.VanillaQueue) -> None:
        async with Source(queue) as source:
            await asyncio.to_thread(with_appender, source.address[1], fails)

    with open_vanilla(tmp_path / "source") as queue:
        run(work(queue))
        assert queue.entry_count == 0


def test_a_source_that_only_sends_heartbeats_is_given_up() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(19)
        while not reader.at_eof():
            writer.write(HEARTBEAT)
            await asyncio.sleep(0.01)

    def fails(port: int) -> None:
        with (
            BlockingRemoteAppender(port=port, timeout_s=0.1) as appender,
            pytest.raises(PeerSilentError, match=r"timeout_s=0\.1"),
        ):
            appender.write_bytes(b"one")

    async def work() -> None:
        async with listening(serve) as port:
            await asyncio.to_thread(fails, port)

    run(work())
    with pytest.raises(PeerLostError, match="the connection failed"):
        BlockingRemoteAppender(port=free_port())
