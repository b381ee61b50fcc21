"""SCAN and DBSIZE: patterns as Redis has them, and many who ask."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Generator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import redis

import quire
from quire.server import Server, TokenFile
from quire.server.queue_folder import Queues
from quire.server.queue_names import QueueNames
from served import WAIT_S, command, connected, real_redis, serving

NAMES = [
    *("a", "b", "ab", "abc", "abcabc", "a2", "a1", "aa", "aaaaaaaaaab", "A"),
    *("a-c", "a^c", "a]c", "a[c", "a*c", "a?c", "[", "]", "^", "-", "*", "?", "é", "aéc"),
    *("prices/eur", "prices/usd", "more/eur/bid", "{a}", "a,b", "a!c"),
]
WRITTEN = [
    *("*", "", "?", "??", "a*", "*c", "a*c", "*b*", "**", "a**c", "*?", "?*?", "prices/*", "*/*"),
    *("a[^2]", "a[!2]", "a[12]", "[a-c]", "[c-a]", "[^a-c]", "a[]c]c", "a[", "[", "[^", "[]"),
    *(r"a[\]]c", r"a\*c", r"a\?c", r"\a", r"\[", "\\", "a\\", r"\1", r"a\2", r"[\a-c]", r"[a-\]]"),
    *("a[*]c", "a[?]c", "{a,b}", "a??c", "[*-?]", "a[^]c]c", "*a*a*a*a*b", "A", "[A-z]", "a[a-"),
]


def made_up(count: int) -> list[str]:
    chance = random.Random(1)  # noqa: S311 - no secret
    return ["".join(chance.choices("abc*?[]^-\\é/", k=chance.randint(1, 8))) for _ in range(count)]


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[int, int]]:
    """The port of a server of Quire's, and that of a Redis, of the same names."""
    folder = tmp_path_factory.mktemp("named")
    with real_redis(folder / "redis") as other, serving(folder / "queues") as (own, _):
        for port in (own, other):
            with connected(port) as client:
                for name in NAMES:
                    client.xadd(name, {"n": "1"})
        yield own, other


def test_patterns_are_those_of_redis(ports: tuple[int, int]) -> None:
    patterns = [*WRITTEN, *made_up(500)]
    found: list[list[list[bytes]]] = []
    for port in ports:
        with connected(port) as client, client.pipeline(transaction=False) as many:
            for pattern in patterns:
                many.scan(0, match=pattern, count=1000)
            found.append([sorted(names) for _, names in many.execute()])
    for pattern, own, other in zip(patterns, *found, strict=True):
        assert own == other, pattern


def test_a_pattern_is_short_and_no_pattern_takes_long(ports: tuple[int, int]) -> None:
    with connected(ports[0]) as client:
        with pytest.raises(redis.ResponseError, match="pattern is too long: length=1001 limit=10"):
            client.scan(0, match="*" * 1001)
        client.xadd("/".join(["a" * 200] * 16), {"n": "1"})
        for pattern in ("*a" * 499 + "b", "*[ab]" * 199 + "c", "*" + "?" * 998 + "b"):
            assert client.scan(0, match=pattern, count=1000) == (0, [])


def test_pages_of_names_are_of_one_list(ports: tuple[int, int]) -> None:
    with connected(ports[0]) as client:
        names = [*client.scan_iter(count=3)]
        assert len(names) == len({*names}) == client.dbsize()


def test_a_queue_that_another_process_has_just_made_is_there(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    token = tokens.add("reader", {"read": ("q*",)})
    with (
        serving(tmp_path / "queues", "--tokens", tokens.path) as (port, _),
        connected(port, password=token) as client,
    ):
        for number in range(10):
            for name in (f"q{number}", f"other{number}"):
                with quire.open(tmp_path / "queues" / name) as queue:
                    queue.appender().write_text("a")
            assert client.dbsize() == number + 1
            assert len(client.scan(0, count=100)[1]) == number + 1


def test_many_who_ask_meanwhile_are_answered_by_one_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quire.open(tmp_path / "first"):
        pass
    looks, goes_on, topics = [0], Event(), Queues.topics

    def looked_for(queues: Queues) -> list[str]:
        found = topics(queues)
        looks[0] += 1
        assert goes_on.wait(WAIT_S)
        return found

    asked, ask_names = [0], QueueNames.ask

    def counted(names: QueueNames, make: Any) -> Any:  # noqa: ANN401 - as the method
        answer = ask_names(names, make)
        asked[0] += 1
        return answer

    monkeypatch.setattr(Queues, "topics", looked_for)
    monkeypatch.setattr(QueueNames, "ask", counted)

    async def ask() -> None:
        async with Server(tmp_path) as server:
            clients: list[Any] = [await asyncio.open_connection(*server.address) for _ in range(21)]
            (reader, writer), *others = clients
            writer.write(command("DBSIZE"))
            while not looks[0]:  # noqa: ASYNC110 - another thread counts them
                await asyncio.sleep(0)
            with quire.open(tmp_path / "second"):
                pass
            for _, other in others:
                other.write(command("PING") + command("DBSIZE"))
            for other, _ in others:
                assert await other.readline() == b"+PONG\r\n"
            while asked[0] < 21:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0)
            goes_on.set()
            assert await reader.readline() == b":1\r\n"
            for other, _ in others:
                assert await other.readline() == b":2\r\n"
            assert looks[0] == 2
            for _, each in clients:
                each.close()

    asyncio.run(asyncio.wait_for(ask(), WAIT_S))
