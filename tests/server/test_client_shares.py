"""How much of a server one client takes: what a connection holds, and its connections and pages."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

import quire
from quire.server import Limits, Server, TokenFile, stream_groups
from served import WAIT_S, command

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def completed(coroutine: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, WAIT_S))


class Clients:
    """Connections, which are closed at the end."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, source: str = "127.0.0.1") -> Streams:
        found = await asyncio.open_connection(*self._address, local_addr=(source, 0))
        self._writers.append(found[1])
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_given: object) -> None:
        for writer in self._writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def ask(streams: Streams, *words: str) -> str:
    """Give a command; the first line of its answer."""
    reader, writer = streams
    writer.write(command(*words))
    return (await reader.readline()).decode().strip()


async def get(streams: Streams, place: str) -> str:
    """Ask for a page; the status, and what comes first of it."""
    reader, writer = streams
    writer.write(f"GET {place} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    status = (await reader.readline()).split()[1]
    await reader.readuntil(b"\r\n\r\n")
    return f"{status.decode()} {(await reader.read(1 << 16)).decode()}"


def test_a_connection_holds_so_many_tailers_members_and_parts(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue:
        queue.appender().write_text("a")

    async def hold() -> None:
        async with (
            Server(tmp_path, limits=Limits(held=3)) as server,
            Clients(server.address) as clients,
        ):
            one = await clients.connect()
            opens = {
                "tailer": ("QUIRE.TAILER", "OPEN", "q"),
                "member": ("QUIRE.GROUP", "JOIN", "q", "g"),
                "part": ("QUIRE.SINK", "OPEN", "q", "w", "0"),
            }
            assert (await ask(one, *opens["tailer"], "first")).startswith(":")
            assert (await ask(one, *opens["member"], "c")).startswith(":")
            assert (await ask(one, *opens["part"], "0")).startswith(":")
            for words in ((*opens["tailer"], "x"), (*opens["member"], "d"), (*opens["part"], "1")):
                refused = await ask(one, *words)
                assert "ERR too many tailers, members of groups and parts" in refused
                assert "limit=3" in refused
            assert (await ask(one, *opens["tailer"], "first")).startswith(":")  # it again
            assert await ask(one, "QUIRE.TAILER", "CLOSE", "q", "first") == "+OK"
            assert (await ask(one, *opens["tailer"], "second")).startswith(":")
            other = await clients.connect()
            assert (await ask(other, *opens["tailer"], "first")).startswith(":")

    completed(hold())
    with quire.open(tmp_path / "q") as queue:
        assert {name for name, _ in queue.named_tailers()} == {"first", "second"}


def test_a_queue_has_so_many_names_that_clients_choose(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue:
        queue.appender().write_text("a")

    async def name() -> None:
        async with (
            Server(tmp_path, limits=Limits(kept_names=2)) as server,
            Clients(server.address) as clients,
        ):
            one = await clients.connect()
            for each in ("a", "b"):
                assert (await ask(one, "QUIRE.TAILER", "OPEN", "q", each)).startswith(":")
                assert await ask(one, "XGROUP", "CREATE", "q", each, "0") == "+OK"
            full = "limit=2 (delete unused ones)"
            refused = await ask(one, "QUIRE.TAILER", "OPEN", "q", "c")
            assert refused == f"-ERR the queue has too many named tailers: {full}"
            joins = ("QUIRE.GROUP", "JOIN", "q", "c", "m")
            for words in (("XGROUP", "CREATE", "q", "c", "0"), joins):
                assert await ask(one, *words) == f"-ERR the queue has too many groups: {full}"
            assert await ask(one, "QUIRE.TAILER", "CLOSE", "q", "a") == "+OK"
            assert (await ask(one, "QUIRE.TAILER", "OPEN", "q", "a")).startswith(":")
            assert (await ask(one, "QUIRE.GROUP", "JOIN", "q", "a", "m")).startswith(":")
            assert (await ask(one, "QUIRE.TAILER", "DELETE", "q", "b")).startswith("-")  # in use
            assert await ask(one, "QUIRE.TAILER", "CLOSE", "q", "b") == "+OK"
            assert await ask(one, "QUIRE.TAILER", "DELETE", "q", "b") == ":1"
            assert (await ask(one, "QUIRE.TAILER", "OPEN", "q", "c")).startswith(":")

    completed(name())
    with quire.open(tmp_path / "q") as queue:
        assert {name for name, _ in queue.named_tailers()} == {"a", "c"}


def test_a_group_has_so_many_consumers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_groups, "_CONSUMERS", 2)
    with quire.open(tmp_path / "q") as queue:
        queue.appender().write_text("a")

    async def name() -> None:
        async with Server(tmp_path) as server, Clients(server.address) as clients:
            one = await clients.connect()
            assert await ask(one, "XGROUP", "CREATE", "q", "g", "0") == "+OK"
            for each in ("a", "b", "a"):
                created = await ask(one, "XGROUP", "CREATECONSUMER", "q", "g", each)
                assert created in {":0", ":1"}
            refused = "-ERR the group has too many consumers: limit=2 (XGROUP DELCONSUMER)"
            read = ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "q", ">")
            assert await ask(one, *read) == refused
            assert await ask(one, "XGROUP", "DELCONSUMER", "q", "g", "b") == ":0"
            assert await ask(one, *read) == "*1"

    completed(name())


def test_all_tailers_that_clients_may_name_have_their_place(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue:
        queue.appender().write_text("a")
        queue.tailer("long" * 20).close()

    async def name() -> None:
        async with Server(tmp_path) as server, Clients(server.address) as clients:
            one = await clients.connect()
            words = ("QUIRE.TAILER", "OPEN", "q")
            refused = "-ERR the name of a tailer is too long: length=65 limit=64 bytes"
            assert await ask(one, *words, "x" * 65) == refused
            assert await ask(one, *words, "é" * 32 + "x") == refused
            assert (await ask(one, *words, "long" * 20)).startswith(":")  # it was there
            text = ""
            for number in range(999):
                text = f"{number:064}"
                assert (await ask(one, *words, text)).startswith(":")
                assert await ask(one, "QUIRE.TAILER", "CLOSE", "q", text) == "+OK"
            assert await ask(one, "QUIRE.TAILER", "RENAME", "q", text, "x" * 65) == refused
            assert "limit=1000" in await ask(one, *words, "more")

    completed(name())
    with quire.open(tmp_path / "q") as queue, queue.tailer("home" * 16) as tailer:
        assert tailer.read() is not None


def test_the_name_of_a_consumer_is_not_long(tmp_path: Path) -> None:
    with quire.open(tmp_path / "q") as queue:
        queue.appender().write_text("a")
    long = "x" * 257
    refused = "-ERR the name of a consumer is too long: length=257 limit=256 bytes"

    async def name() -> None:
        async with Server(tmp_path) as server, Clients(server.address) as clients:
            one = await clients.connect()
            assert await ask(one, "XGROUP", "CREATE", "q", "g", "0") == "+OK"
            for words in (
                ("XGROUP", "CREATECONSUMER", "q", "g", long),
                ("XREADGROUP", "GROUP", "g", long, "STREAMS", "q", ">"),
                ("XREADGROUP", "GROUP", "g", long, "STREAMS", "q", "0"),
                ("XCLAIM", "q", "g", long, "0", "1-0"),
                ("XAUTOCLAIM", "q", "g", long, "0", "0"),
                ("QUIRE.GROUP", "JOIN", "q", "other", long),
            ):
                assert await ask(one, *words) == refused
            assert await ask(one, "XGROUP", "CREATECONSUMER", "q", "g", long[1:]) == ":1"

    completed(name())


def test_a_token_has_so_many_connections(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    first, second = (tokens.add(it, {"read": ("*",)}) for it in ("first", "second"))
    full = "-ERR max number of clients reached: limit=100 limit_of_a_client=2"

    async def sign_in() -> None:
        limits = Limits(connections=100, connections_of_one=2)
        (tmp_path / "queues").mkdir()
        async with (
            Server(tmp_path / "queues", tokens=tokens.path, limits=limits) as server,
            Clients(server.address) as clients,
        ):
            of_first = [await clients.connect() for _ in range(2)]
            unknown = await clients.connect()
            assert await unknown[0].readline() == f"{full}\r\n".encode()  # nobody knows whose it is
            for each in of_first:
                assert await ask(each, "AUTH", first) == "+OK"
            third = await clients.connect()
            assert await ask(third, "AUTH", first) == full
            assert (await ask(third, "PING")).startswith("-NOAUTH")
            assert await ask(third, "AUTH", second) == "+OK"
            of_first[0][1].close()
            again = await clients.connect()
            while (said := await ask(again, "AUTH", first)) == full:
                pass
            assert said == "+OK"
            for _ in range(5):
                assert await ask(third, "RESET") == "+RESET"
                assert await ask(third, "AUTH", second) == "+OK"

    completed(sign_in())


def test_a_machine_without_a_token_has_so_many_connections(tmp_path: Path) -> None:
    async def connect_from_two() -> None:
        async with (
            Server(tmp_path, limits=Limits(connections_of_one=1)) as server,
            Clients(server.address) as clients,
        ):
            one = await clients.connect()
            assert await ask(one, "PING") == "+PONG"
            more = await clients.connect()
            assert b"limit_of_a_client=1" in await more[0].read()
            assert await ask(await clients.connect("127.0.0.2"), "PING") == "+PONG"

    completed(connect_from_two())


def test_unfinished_requests_of_a_client_are_so_long_together(tmp_path: Path) -> None:
    begins = command("ECHO", "x" * 10_000)[:-3]
    full = "-ERR too long unfinished requests: limit_of_a_client=25000 bytes"

    async def send(clients: Clients, source: str = "127.0.0.1") -> Streams:
        streams = await clients.connect(source)
        streams[1].write(command("PING") + begins)
        assert await streams[0].readline() == b"+PONG\r\n"
        return streams

    async def begin_many(server: Server, clients: Clients) -> None:
        async def until(count: int) -> None:
            begun = [0]
            while len(begun) != count:
                await asyncio.sleep(0)
                begun = [it for it in server.context.sessions if it.pending_bytes == len(begins)]

        first, second = [await send(clients) for _ in range(2)]
        await until(2)
        for _ in range(3):
            third = await send(clients)
            assert (await third[0].read()).decode().strip() == full
        other = await send(clients, "127.0.0.2")
        for reader, writer in (first, other):
            writer.write(b"x\r\n")
            assert await reader.readline() == b"$10000\r\n"
            await reader.readexactly(10_002)
        second[1].close()
        await until(0)
        for _ in range(2):
            await send(clients)
        await until(2)

    async def run() -> None:
        limits = Limits(begun_bytes_of_one=25_000)
        async with Server(tmp_path, limits=limits) as server, Clients(server.address) as clients:
            await begin_many(server, clients)

    completed(run())


def test_unfinished_requests_are_those_of_the_token_that_was_shown(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    first, second = (tokens.add(it, {"read": ("*",)}) for it in ("first", "second"))
    (tmp_path / "queues").mkdir()
    echo = command("ECHO", "x" * 400)

    async def sign_in() -> None:
        limits = Limits(begun_bytes_of_one=600)
        async with (
            Server(tmp_path / "queues", tokens=tokens.path, limits=limits) as server,
            Clients(server.address) as clients,
        ):

            async def begin(token: str) -> Streams:
                streams = await clients.connect()
                assert await ask(streams, "AUTH", token) == "+OK"
                assert await ask(streams, "PING") == "+PONG"
                streams[1].write(command("PING") + echo[:-9])
                assert await streams[0].readline() == b"+PONG\r\n"
                return streams

            begun = [await begin(it) for it in (first, second)]
            too_many = await begin(first)
            assert (await too_many[0].read()).startswith(b"-ERR too long unfinished requests")
            for reader, writer in begun:
                writer.write(echo[-9:])
                assert await reader.readline() == b"$400\r\n"
            await begin(first)

    completed(sign_in())


def test_a_machine_has_so_many_connections_to_the_page(tmp_path: Path) -> None:
    async def look() -> None:
        limits = Limits(connections=100, connections_of_one=2)
        async with (
            Server(tmp_path, host=None, web=("127.0.0.1", 0), limits=limits) as server,
            Clients(server.web_address) as clients,
        ):
            first, second = [await clients.connect() for _ in range(2)]
            assert (await get(first, "/")).startswith("200")
            refused = (await (await clients.connect())[0].read()).decode()
            assert refused.startswith("HTTP/1.1 503 ")
            full = "too many connections to the page: limit=100 limit_of_a_client=2"
            assert full in refused
            assert (await get(await clients.connect("127.0.0.2"), "/")).startswith("200")
            second[1].close()
            while (await get(await clients.connect(), "/")).startswith("503"):
                pass

    completed(look())


def test_a_machine_has_so_many_pages_that_are_kept_up_to_date(tmp_path: Path) -> None:
    async def watch() -> None:
        limits = Limits(live_views_of_one=1)
        async with (
            Server(tmp_path, host=None, web=("127.0.0.1", 0), limits=limits) as server,
            Clients(server.web_address) as clients,
        ):
            first = await clients.connect()
            assert (await get(first, "/live")).startswith("200")
            refused = await get(await clients.connect(), "/live")
            assert refused.startswith("400")
            assert "too many live pages are open: limit=256 limit_of_a_client=1" in refused
            assert (await get(await clients.connect("127.0.0.2"), "/live")).startswith("200")
            first[1].close()
            while (await get(await clients.connect(), "/live")).startswith("400"):
                pass

    completed(watch())
