"""
The replication protocol as docs/vanilla.md has it, a captured session, and a proxy that cuts.

Nothing of quire.vanilla.replication is used here, so that the two can disagree.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import quire
from paths import GOLDEN
from quire.vanilla import FileOptions

SMALL: dict[str, Any] = {"index_block_bytes": 4096, "data_block_bytes": 8192}
FILES = FileOptions(**SMALL)
HEARTBEAT = struct.pack("<iq", -128, 0)
DAY_MS = 86_400_000
CAPTURED_CYCLE = 0x512A
CAPTURED_MS = CAPTURED_CYCLE * DAY_MS
FIRST_CAPTURED = CAPTURED_CYCLE << 40
WAIT_S = 300  # for what must come; a test that waits this long has failed

_T = TypeVar("_T")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def subscribe(last: int) -> bytes:
    return struct.pack("<qq", 1, last)


def acknowledge(index: int) -> bytes:
    return struct.pack("<qq", 0x51414B, index)


def echo(index: int) -> bytes:
    return struct.pack("<iq", -126, index)


def message(index: int, payload: bytes) -> bytes:
    return struct.pack("<iq", len(payload), index) + payload


@dataclass
class Exchange:
    """One captured connection: what each side sent, as a stream."""

    requests: bytes = b""
    frames: bytes = b""


def captured() -> list[Exchange]:
    """Java 3.6.4 on both sides, through a proxy."""
    exchanges: list[Exchange] = []
    for line in (GOLDEN / "vanilla/replication.log").read_text("ascii").splitlines():
        if line.endswith("connect"):
            exchanges.append(Exchange())
            continue
        found = re.fullmatch(r"[\d.]+ (sink->source|source->sink) (\d+) ([0-9a-f]+)", line)
        assert found is not None
        sent = bytes.fromhex(found[3])
        assert len(sent) == int(found[2])
        if found[1] == "sink->source":
            exchanges[-1].requests += sent
        else:
            exchanges[-1].frames += sent
    return exchanges


def captured_payloads() -> list[bytes]:
    """The eight messages of the captured queue."""
    frames, at, payloads = captured()[3].frames, 12, list[bytes]()
    while len(payloads) < 8:
        length, index = struct.unpack_from("<iq", frames, at)
        assert index == FIRST_CAPTURED + len(payloads)
        payloads.append(frames[at + 12 : at + 12 + length])
        at += 12 + length
    return payloads


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a test's coroutine; it fails instead of waiting for ever."""

    async def limited() -> _T:
        async with asyncio.timeout(WAIT_S):
            return await coroutine

    return asyncio.run(limited())


def contents(queue: quire.vanilla.VanillaQueue) -> list[tuple[int, bytes]]:
    with queue.tailer() as tailer:
        return [(excerpt.index, excerpt.data) for excerpt in tailer]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncGenerator[int]:
    """Serve connections with a handler of the test; the port."""
    writers: list[asyncio.StreamWriter] = []
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.add(asyncio.create_task(handler(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Read until the peer closes the connection."""
    try:
        while await reader.read(65536):
            pass
    except ConnectionError:
        pass
    return True


class Cutter:
    """
    A proxy. Connection n is cut after `frames[n]` bytes to the sink or `requests[n]` to the source.

    Later connections are not cut.
    """

    def __init__(self, port: int, *, frames: list[int], requests: list[int]) -> None:
        self._port = port
        self._frames, self._requests = iter(frames), iter(requests)
        self.connections = 0
        self.reconnected = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.connections > 1:
            self.reconnected.set()
        budgets = next(self._frames, 1 << 40), next(self._requests, 1 << 40)
        source_reader, source_writer = await asyncio.open_connection("127.0.0.1", self._port)
        pumps = [
            asyncio.create_task(self._pump(source_reader, writer, budgets[0])),
            asyncio.create_task(self._pump(reader, source_writer, budgets[1])),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for end in (writer, source_writer):
                end.close()

    @staticmethod
    async def _pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: int
    ) -> None:
        while budget and (chunk := await reader.read(min(budget, 65536))):
            writer.write(chunk)
            await writer.drain()
            budget -= len(chunk)
