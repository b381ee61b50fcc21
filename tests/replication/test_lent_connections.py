"""What a busy thread gets of a connection that the event loop has read from."""

from __future__ import annotations

import asyncio

import pytest

from quire.errors import PeerSilentError
from quire.replication.drivers.connection import Connection

WAIT_S = 60.0


def test_what_came_before_the_end_is_not_lost_with_it() -> None:
    async def work() -> bytes:
        async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"the last batch")
            writer.close()

        async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            connection = Connection(reader, writer)
            while not reader._eof:  # type: ignore[attr-defined]  # noqa: ASYNC110
                await asyncio.sleep(0)
            lent, first = await connection.lend(WAIT_S)
            with lent:
                assert lent.recv(1) == b""
            connection.close()
            return first

    assert asyncio.run(work()) == b"the last batch"


def test_a_peer_that_takes_nothing_is_not_waited_for_without_end() -> None:
    async def work() -> None:
        ended = asyncio.Event()

        async def ignore(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await ended.wait()
            writer.close()

        async with await asyncio.start_server(ignore, "127.0.0.1", 0, limit=1) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            connection = Connection(reader, writer)
            writer.write(bytes(64 << 20))
            with pytest.raises(PeerSilentError):
                await connection.lend(0.1)
            writer.transport.abort()
            ended.set()

    asyncio.run(work())
