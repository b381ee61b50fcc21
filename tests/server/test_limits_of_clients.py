"""What one client may use, so that the others are served."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import struct
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

import quire
from quire.server import Server, client_session
from quire.server.client_session import Session, Steps
from quire.server.queue_folder import Queues
from served import WAIT_S, command, connected, serving


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served") / "queues"


@pytest.fixture(scope="module")
def port(root: Path) -> Generator[int]:
    with serving(root) as (port, _):
        yield port


class Counts:
    """How often a server woke sessions, and looked for each queue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wakes = 0
        self.looks: Counter[str] = Counter()
        self.looked = asyncio.Event()
        wake, get = Session.wake, Queues.get

        def counted_wake(session: Session, now_s: float) -> None:
            self.wakes += 1
            wake(session, now_s)

        def counted_get(queues: Queues, topic: str) -> Any:  # noqa: ANN401 - as the method
            self.looks[topic] += 1
            self.looked.set()
            return get(queues, topic)

        monkeypatch.setattr(Session, "wake", counted_wake)
        monkeypatch.setattr(Queues, "get", counted_get)

    async def until(self, topic: str, looks: int) -> None:
        while self.looks[topic] < looks:
            self.looked.clear()
            await self.looked.wait()


def blocked(names: list[str]) -> bytes:
    return command("XREAD", "BLOCK", "0", "STREAMS", *names, *["0"] * len(names))


def append(path: Path) -> None:
    with quire.open(path) as queue:
        queue.appender().write_map({"n": 1})


def test_who_waits_for_queues_that_are_absent_is_woken_by_the_one_that_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"absent{number}" for number in range(100)]

    async def wait() -> None:
        counts = Counts(monkeypatch)
        async with Server(tmp_path) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(blocked(names))
            await counts.until("absent0", 5)
            assert counts.wakes == 0
            await asyncio.to_thread(append, tmp_path / "absent7")
            assert b"absent7" in await reader.readuntil(b"absent7")
            assert counts.wakes < 10
            writer.close()

    asyncio.run(asyncio.wait_for(wait(), WAIT_S))


def test_who_waits_for_many_queues_is_woken_once_for_the_news_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"q{number}" for number in range(30)]
    for name in names:
        with quire.open(tmp_path / name):
            pass

    async def wait() -> None:
        counts = Counts(monkeypatch)
        async with Server(tmp_path) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(blocked(names))
            await counts.until("q29", 2)
            await asyncio.to_thread(append, tmp_path / "q7")
            await reader.readuntil(b"q7")
            assert counts.wakes < 10
            writer.close()

    asyncio.run(asyncio.wait_for(wait(), WAIT_S))


def test_a_command_names_a_thousand_queues_at_most(port: int) -> None:
    names = [f"q{number}" for number in range(1001)]
    many = (
        ["EXISTS", *names],
        ["DEL", *names],
        ["XREAD", "STREAMS", *names, *["0"] * 1001],
        ["XREADGROUP", "GROUP", "g", "c", "STREAMS", *names, *[">"] * 1001],
    )
    with connected(port) as client:
        for words in many:
            with pytest.raises(redis.ResponseError, match="too many queues: limit=1000"):
                client.execute_command(*words)
        with pytest.raises(redis.ResponseError, match="too many arguments: limit=1000"):
            client.execute_command("COMMAND", "INFO", *["get"] * 1000)
        assert client.exists(*names[:1000]) == 0
        assert client.xread(dict.fromkeys(names[:1000], "0")) == []
        client.xadd("wide", {f"f{number}": "1" for number in range(2000)})


def test_pending_messages_come_in_answers_of_eight_mebibytes(root: Path, port: int) -> None:
    with quire.open(root / "big") as queue, queue.appender() as appender:
        for _ in range(20):
            appender.write_bytes(bytes(1 << 20))
    with connected(port) as client:
        client.xgroup_create("big", "g", "0")
        taken: list[bytes] = []
        while found := client.xreadgroup("g", "c", {"big": ">"}, count=100):
            taken += [index for index, _ in found[0][1]]
        assert len(taken) == 20
        history: list[bytes] = []
        last = b"0"
        while found := client.xreadgroup("g", "c", {"big": last}, count=100)[0][1]:
            assert len(found) <= 8
            history += [index for index, _ in found]
            last = history[-1]
        assert history == taken
        assert len(client.xclaim("big", "g", "d", 0, taken)) <= 9
        assert client.xpending("big", "g")["consumers"][1]["pending"] <= 9  # the rest is still c's
        assert len(client.xclaim("big", "g", "d", 0, taken, justid=True)) == 20
        claimed: list[bytes] = []
        following = b"0-0"
        while True:
            following, found, _ = client.xautoclaim("big", "g", "e", 0, following)
            assert len(found) <= 9
            claimed += [index for index, _ in found]
            if following == b"0-0":
                break
        assert claimed == taken


def test_metadata_is_not_acknowledged_by_replicas(port: int) -> None:
    words = ("QUIRE.APPEND", "meta", "CREATE", "METADATA", "WAIT", "ALL", "VALUES", "x")
    with connected(port) as client:
        with pytest.raises(redis.ResponseError, match="METADATA with WAIT"):
            client.execute_command(*words)
        assert client.exists("meta") == 0


def test_a_directory_that_no_client_can_name_hides_no_other(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    append(root / "good")
    for name in (b"bad\xff", b"bad\x07"):
        shutil.copytree(root / "good", os.fsdecode(os.fsencode(root) + b"/" + name))
    with serving(root) as (port, _), connected(port) as client:
        assert client.scan() == (0, [b"good"])
        assert client.dbsize() == 1


IDS = [str(number) for number in range(1, 20_000)]
LONG = {
    "XACK": ["XACK", "q", "g", *IDS],
    "XCLAIM": ["XCLAIM", "q", "g", "other", "0", *IDS],
    "XAUTOCLAIM": ["XAUTOCLAIM", "q", "g", "other", "0", "0", "COUNT", "5000"],
    "XPENDING": ["XPENDING", "q", "g", "IDLE", str(10**12), "-", "+", "5000"],
    "XPENDING, all": ["XPENDING", "q", "g"],
    "XINFO CONSUMERS": ["XINFO", "CONSUMERS", "q", "g"],
    "XGROUP DELCONSUMER": ["XGROUP", "DELCONSUMER", "q", "g", "c"],
    "XREADGROUP": ["XREADGROUP", "GROUP", "g", "c", "COUNT", "5000", "STREAMS", "q", "0"],
    "XREADGROUP >": ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "q", "q", ">", ">"],
    "XREAD": ["XREAD", "STREAMS", *["q"] * 10, *["0"] * 10],
    "EXISTS": ["EXISTS", *IDS[:1000]],
}


ANSWERS = {b":0\r\n", b":5000\r\n", *(b"*%d\r\n" % number for number in (-1, 0, 1, 3, 4, 10))}


@pytest.fixture(scope="module")
def pending(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a queue of which a group's consumer has 5,000 messages."""
    root = tmp_path_factory.mktemp("pending") / "queues"
    with quire.open(root / "q") as queue, queue.appender() as appender:
        appender.write_many([b"x"] * 5000)
    with serving(root) as (port, _), connected(port) as client:
        client.xgroup_create("q", "g", "0")
        assert len(client.xreadgroup("g", "c", {"q": ">"}, count=5000)[0][1]) == 5000
    return root


@pytest.mark.parametrize("name", LONG)
def test_others_are_answered_in_the_middle_of_a_long_command(
    pending: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root = tmp_path / "queues"
    shutil.copytree(pending, root)
    monkeypatch.setattr(client_session, "_TURN_S", 0)  # one part of it each turn
    begun, advance = asyncio.Event(), Steps.advance

    def advanced(steps: Steps) -> Any:  # noqa: ANN401 - as the method
        begun.set()
        return advance(steps)

    monkeypatch.setattr(Steps, "advance", advanced)

    async def ask_meanwhile() -> None:
        async with Server(root) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            other_reader, other_writer = await asyncio.open_connection(*server.address)
            other_writer.write(command("PING"))
            assert await other_reader.readline() == b"+PONG\r\n"
            writer.write(command(*LONG[name]))
            answer = asyncio.create_task(reader.readline())
            await begun.wait()
            other_writer.write(command("PING"))
            assert await other_reader.readline() == b"+PONG\r\n"
            assert not answer.done()
            assert await answer in ANSWERS
            for each in (writer, other_writer):
                each.close()
                await each.wait_closed()

    asyncio.run(asyncio.wait_for(ask_meanwhile(), WAIT_S))


MEANWHILE: dict[str, list[tuple[str, ...]]] = {
    "removed": [("XGROUP", "DESTROY", "q", "g")],
    "made again": [
        ("XGROUP", "DESTROY", "q", "g"),
        ("XGROUP", "CREATE", "q", "g", "0"),
        ("XREADGROUP", "GROUP", "g", "new", "COUNT", "2", "STREAMS", "q", ">"),
    ],
    "acknowledged": [("XACK", "q", "g", *IDS)],
}


def on(root: Path, words: Sequence[str]) -> bytes:
    """A command that names the messages of the queue in place of made-up ids."""
    if IDS[0] not in words:
        return command(*words)
    with quire.open(root / "q", read_only=True) as queue, queue.tailer() as tailer:
        return command(*words[: words.index(IDS[0])], *(str(it.index) for it in tailer))


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("name", [name for name in LONG if name != "EXISTS"])
def test_a_long_command_leaves_alone_what_became_of_its_group_meanwhile(
    pending: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, meanwhile: str
) -> None:
    root = tmp_path / "queues"
    shutil.copytree(pending, root)
    monkeypatch.setattr(client_session, "_TURN_S", 0)
    steps, advance = 0, Steps.advance
    begun = asyncio.Event()

    def advanced(command: Steps) -> Any:  # noqa: ANN401 - as the method
        nonlocal steps
        steps += 1
        if steps == 3:  # the first messages were looked at
            begun.set()
        return advance(command)

    monkeypatch.setattr(Steps, "advance", advanced)

    async def change_meanwhile() -> bytes:
        async with Server(root) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            other_reader, other_writer = await asyncio.open_connection(*server.address)
            writer.write(on(root, LONG[name]))
            answer = asyncio.create_task(reader.readline())
            await begun.wait()
            other_writer.write(b"".join(on(root, it) for it in MEANWHILE[meanwhile]))
            other_writer.write(command("PING"))
            while not (await other_reader.readline()).startswith(b"+PONG"):
                pass
            answered = await answer
            for each in (writer, other_writer):
                each.close()
                await each.wait_closed()
            return answered

    answered = asyncio.run(asyncio.wait_for(change_meanwhile(), WAIT_S))
    assert answered[:1] in b":*" or answered.startswith(b"-NOGROUP"), answered
    for _ in range(2):  # also after a restart
        with serving(root) as (port, _), connected(port) as client:
            if meanwhile == "removed":
                assert client.xinfo_groups("q") == []
            elif meanwhile == "made again":
                assert client.xpending("q", "g")["consumers"] == [{"name": b"new", "pending": 2}]
                assert [it["name"] for it in client.xinfo_consumers("q", "g")] == [b"new"]
            else:
                assert client.xpending("q", "g")["pending"] == 0


def test_a_long_command_ends_although_its_client_is_gone(pending: Path, tmp_path: Path) -> None:
    root = tmp_path / "queues"
    shutil.copytree(pending, root)
    with serving(root) as (port, _), connected(port) as client:
        indexes = [it["message_id"] for it in client.xpending_range("q", "g", "-", "+", 5000)]
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
            raw.sendall(command("XACK", "q", "g", *indexes))
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        while client.xpending("q", "g")["pending"]:
            pass


def test_claiming_many_goes_on_from_where_it_ended(pending: Path, tmp_path: Path) -> None:
    root = tmp_path / "queues"
    shutil.copytree(pending, root)
    with serving(root) as (port, _), connected(port) as client:
        first = client.xautoclaim("q", "g", "d", 0, "0", count=300, justid=True)
        assert len(first) == 300
        following, found, deleted = client.execute_command(
            "XAUTOCLAIM", "q", "g", "d", "0", "0", "COUNT", "300"
        )
        assert [it for it, _ in found] == first
        assert deleted == []
        left = client.execute_command("XAUTOCLAIM", "q", "g", "e", "0", following, "COUNT", "9999")
        assert left[0] == b"0-0"
        assert len(left[1]) == 4700
        counts = {it["name"]: it["pending"] for it in client.xpending("q", "g")["consumers"]}
        assert counts == {b"d": 300, b"e": 4700}
        assert client.xack("q", "g", *first, *first, "1-0") == 300
    with serving(root) as (port, _), connected(port) as client:
        assert client.xpending("q", "g")["consumers"] == [{"name": b"e", "pending": 4700}]
