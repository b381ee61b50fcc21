"""XREAD and XREADGROUP of several queues: part by part, and up to a length."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.server import Server, client_session
from quire.server.client_session import Steps
from quire.server.served_queue import ServedQueue
from served import WAIT_S, command, connected, serving

_LONG = bytes(7_000_000)


def _names(answer: list[Any]) -> list[bytes]:
    return [name for name, _ in answer]


def append(path: Path) -> None:
    with quire.open(path) as queue:
        queue.appender().write_map({"n": 1})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six queues of one long message each, and an empty one."""
    for name in "abcdef":
        with quire.open(tmp_path / "queues" / name) as queue:
            queue.appender().write_bytes(_LONG)
    return tmp_path / "queues"


def test_an_answer_ends_with_the_queue_that_makes_it_long(root: Path) -> None:
    with serving(root) as (port, _), connected(port) as client:
        places: dict[str, bytes | str] = dict.fromkeys(["none", *"abcdef"], "0")
        read: list[bytes] = []
        for _ in range(3):
            answer = client.xread(places)
            read += _names(answer)
            places |= {name.decode(): messages[-1][0] for name, messages in answer}
            assert len(answer) == 2
        assert read == [b"a", b"b", b"c", b"d", b"e", b"f"]
        assert client.xread(places) == []


def test_what_a_group_was_not_answered_is_not_delivered(root: Path) -> None:
    with serving(root) as (port, _), connected(port) as client:
        for name in "abcdef":
            client.xgroup_create(name, "g", "0")
        places = dict.fromkeys("abcdef", ">")
        assert _names(client.xreadgroup("g", "c", places)) == [b"a", b"b"]
        assert [client.xpending(name, "g")["pending"] for name in "abcdef"] == [1, 1, 0, 0, 0, 0]
        assert _names(client.xreadgroup("g", "c", places, noack=True)) == [b"c", b"d"]
        assert _names(client.xreadgroup("g", "c", places, block=0)) == [b"e", b"f"]
        assert client.xreadgroup("g", "c", places, block=10) == []
        history = client.xreadgroup("g", "c", dict.fromkeys("abcdef", "0"))
        assert _names(history) == [b"a", b"b"]


def test_a_group_that_is_missing_is_said_before_anything_is_delivered(root: Path) -> None:
    with serving(root) as (port, _), connected(port) as client:
        client.xgroup_create("a", "g", "0")
        with pytest.raises(Exception, match="NOGROUP No such key 'b' or consumer group 'g' in"):
            client.xreadgroup("g", "c", dict.fromkeys("ab", ">"))
        assert client.xpending("a", "g")["pending"] == 0


def test_a_message_of_a_queue_that_was_looked_at_already_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_session, "_TURN_S", 0)  # one queue each turn
    for name in ("first", "second", "third"):
        with quire.open(tmp_path / name):
            pass
    has_looked, is_told = asyncio.Event(), asyncio.Event()
    read, advance = ServedQueue.read, Steps.advance

    def read_while_another_appends(queue: ServedQueue, start: int, *given: int) -> Any:  # noqa: ANN401
        if queue.topic == "second" and not start and not has_looked.is_set():
            has_looked.set()
            append(tmp_path / "first")
        return read(queue, start, *given)

    def advance_when_told(steps: Steps) -> Any:  # noqa: ANN401 - as the method
        """Do nothing until another one that waits has got the message."""
        return steps if has_looked.is_set() and not is_told.is_set() else advance(steps)

    monkeypatch.setattr(ServedQueue, "read", read_while_another_appends)
    monkeypatch.setattr(Steps, "advance", advance_when_told)

    async def wait() -> None:
        async with Server(tmp_path) as server:
            clients = [await asyncio.open_connection(*server.address) for _ in range(3)]
            (_, beyond), (told, other), (reader, writer) = clients
            words = ("XREAD", "BLOCK", "0", "STREAMS", "first", "second", "third")
            beyond.write(command(*words, *[str(2**62)] * 3))  # keeps the server at all queues
            other.write(command("XREAD", "BLOCK", "0", "STREAMS", "first", "$"))
            while sum(it.waiting is not None for it in server.context.sessions) < 2:  # noqa: ASYNC110 - the server has no such event
                await asyncio.sleep(0)
            writer.write(command(*words, *"000"))
            await told.readuntil(b"first")
            is_told.set()
            assert await reader.readline() == b"*1\r\n"
            assert b"first" in await reader.readuntil(b"first")
            for _, each in clients:
                each.close()

    asyncio.run(asyncio.wait_for(wait(), WAIT_S))


@pytest.mark.parametrize("protocol", [2, 3])
def test_who_waits_for_several_is_answered_with_all_that_came(
    tmp_path: Path, protocol: int
) -> None:
    for name in "abc":
        append(tmp_path / name)

    async def wait() -> None:
        async with Server(tmp_path) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(command("HELLO", str(protocol)))
            writer.write(command("XREAD", "BLOCK", "0", "STREAMS", *"abc", *"$$$"))
            while not any(it.waiting for it in server.context.sessions):  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0)
            append(tmp_path / "c")  # the server's event loop stands still meanwhile
            append(tmp_path / "b")
            writer.write(command("ECHO", "last"))
            answer = await reader.readuntil(b"last\r\n")
            if protocol > 2:
                assert b"\r\n%2\r\n$1\r\nb\r\n*1\r\n" in answer
                assert b"\r\n$1\r\nc\r\n*1\r\n" in answer
            else:
                assert b"\r\n*2\r\n*2\r\n$1\r\nb\r\n*1\r\n" in answer
                assert b"\r\n*2\r\n$1\r\nc\r\n*1\r\n" in answer
            writer.close()

    asyncio.run(asyncio.wait_for(wait(), WAIT_S))
