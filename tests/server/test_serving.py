"""A server and what it meets: other processes, locks, replicas, older formats, restarts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest
import redis

import quire
from parameters import some
from served import WAIT_S, command, connected, real_redis, serving, talk

_DAY_MS = 86_400_000


def test_the_two_terminals_of_the_page(tmp_path: Path) -> None:
    """Redis' own command line, if it is there."""
    with real_redis(tmp_path / "unused"), serving(tmp_path / "queues") as (port, _):

        def cli(*words: str) -> str:
            command = ["redis-cli", "-p", str(port), *words]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        index = cli("XADD", "orders", "*", "symbol", "EURUSD", "price", "1.1").strip()
        assert cli("XRANGE", "orders", "-", "+").split() == [
            *(index, "symbol", "EURUSD", "price", "1.1")
        ]
    with quire.open(tmp_path / "queues" / "orders") as queue, queue.tailer() as tailer:
        message = tailer.read()
        assert message is not None
        assert message.to_dict() == {"symbol": "EURUSD", "price": "1.1"}
        assert f"{message.index}-0" == index


def test_an_append_of_another_process_wakes_those_who_wait(tmp_path: Path) -> None:
    program = "import quire, sys; quire.open(sys.argv[1]).appender().write_map({'n': 1})"
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        client.xadd("orders", {"n": "0"})
        found: list[Any] = []
        waiting = Thread(target=lambda: found.append(client.xread({"orders": "$"}, block=50_000)))
        waiting.start()
        with connected(port) as other:
            while not other.info("clients")["blocked_clients"]:
                pass
        path = str(tmp_path / "queues" / "orders")
        subprocess.run([sys.executable, "-c", program, path], check=True, cwd="/")
        waiting.join()
        ((_, ((_, fields),)),) = found[0]
        assert fields == {b"n": b"1"}


def test_those_who_wait_at_one_place_have_each_their_own_form_of_the_answer(tmp_path: Path) -> None:
    xread = ("STREAMS", "orders", "$")
    with serving(tmp_path / "queues") as (port, _), connected(port) as other:
        first = int(other.xadd("orders", {"n": 0}).partition(b"-")[0])
        start = ("QUIRE.READ", "orders", "FROM", str(first + 1))
        asked = [
            (2, ("XREAD", "BLOCK", "0", *xread)),
            (3, ("XREAD", "BLOCK", "0", *xread)),
            (2, ("XREAD", "COUNT", "1", "BLOCK", "0", *xread)),
            (2, (*start, "BLOCK", "0")),
            (3, (*start, "PACKED", "BLOCK", "0")),
            (2, (*start, "COUNT", "1", "PACKED", "BLOCK", "0")),
        ]
        raws = [socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) for _ in 3 * asked]
        for raw, (protocol, words) in zip(raws, 3 * asked, strict=True):
            raw.sendall(command("HELLO", str(protocol)))
            assert b"quire" in raw.recv(1 << 16)
            raw.sendall(command(*words))
        while other.info("clients")["blocked_clients"] < len(raws):
            pass
        with other.pipeline(transaction=False) as together:
            together.xadd("orders", {"n": 1}).xadd("orders", {"n": 2}).execute()
        found = [raw.recv(1 << 16) for raw in raws]
        assert found == 3 * found[: len(asked)]
        for (protocol, words), answer in zip(asked, found, strict=False):
            again = [str(first) if it == "$" else it for it in words if it not in {"BLOCK", "0"}]
            said = talk(port, command("HELLO", str(protocol)) + command(*again))
            assert said.removesuffix(b"+OK\r\n").endswith(answer), words
            assert said.count(b"\n") > answer.count(b"\n")
    for raw in raws:
        raw.close()


def test_an_append_that_waits_for_the_lock_holds_up_nobody_else(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, _), connected(port) as client, connected(port) as other:
        client.xadd("held", {"n": "1"})
        with quire.open(root / "held") as queue, queue.appender() as appender:
            with appender.writing_document() as document:
                waiting = Thread(target=lambda: client.xadd("held", {"n": "3"}))
                waiting.start()
                other.xadd("free", {"n": "1"})
                assert other.xlen("free") == 1
                document.write("n", "2")
            waiting.join()
        assert [it[b"n"] for _, it in client.xrange("held")] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("kind", ["vanilla", "quick-queue"])
def test_queues_of_older_formats(tmp_path: Path, kind: Literal["vanilla", "quick-queue"]) -> None:
    root = tmp_path / "queues"
    with quire.open(root / "old" / "one", format=kind) as queue, queue.appender() as appender:
        first = appender.write_bytes(b"raw")
    with serving(root) as (port, _), connected(port) as client:
        added = [client.xadd("old/one", {"n": str(number)}) for number in range(5)]
        assert client.xlen("old/one") == 6
        found = client.xrange("old/one")
        assert found[0] == (b"%d-0" % first, {b"payload": b"raw"})
        assert [index for index, _ in found[1:]] == added
        assert [index for index, _ in client.xrevrange("old/one", count=2)] == added[:2:-1]
        ((_, after),) = client.xread({"old/one": added[1]})
        assert [index for index, _ in after] == added[2:]
        assert client.xread({"old/one": added[-1]}, block=10) == []
        assert client.xinfo_stream("old/one")["format"] == kind.encode()


def test_a_replica_is_read(tmp_path: Path) -> None:
    import asyncio

    from quire.replication import Sink, Source

    async def replicate() -> None:
        with quire.open(tmp_path / "original") as queue:
            last = queue.appender().write_text("hello")
            copy = tmp_path / "queues" / "copy"
            async with Source(queue) as source, Sink(copy, port=source.address[1]) as sink:
                await sink.stored(last)

    (tmp_path / "queues").mkdir()
    asyncio.run(replicate())
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        ((_, fields),) = client.xrange("copy")
        assert fields == {b"payload": b"hello"}
        with pytest.raises(redis.ResponseError, match="replication sink"):
            client.xadd("copy", {"n": "1"})


def names(client: Any, consumer: str) -> list[bytes]:  # noqa: ANN401
    found = client.xreadgroup("billing", consumer, {"orders": "0"})
    return [fields[b"n"] for _, entries in found for _, fields in entries]


@pytest.mark.parametrize("end", some(["terminate", "kill"], keep=[1]))
def test_consumers_have_what_they_had_after_a_restart(tmp_path: Path, end: str) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, process), connected(port) as client:
        for number in range(100):
            client.xadd("orders", {"n": str(number)})
        client.xgroup_create("orders", "billing", "0")
        client.xreadgroup("billing", "one", {"orders": ">"}, count=40)
        client.xreadgroup("billing", "two", {"orders": ">"}, count=10)
        taken = [index for index, _ in client.xrange("orders")]
        assert client.xack("orders", "billing", *taken[:35]) == 35
        before = client.xpending("orders", "billing")
        getattr(process, end)()
        process.wait()
    with serving(root) as (port, _), connected(port) as client:
        assert client.xpending("orders", "billing") == before
        assert names(client, "one") == [b"%d" % number for number in range(35, 40)]
        assert names(client, "two") == [b"%d" % number for number in range(40, 50)]
        ((_, new),) = client.xreadgroup("billing", "one", {"orders": ">"}, count=1000)
        assert [fields[b"n"] for _, fields in new] == [b"%d" % n for n in range(50, 100)]
        assert client.xack("orders", "billing", *taken) == 65
        assert client.xinfo_groups("orders")[0]["lag"] == 0


def test_a_group_is_shared_with_consumers_of_quire(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, _), connected(port) as client:
        for number in range(100):
            client.xadd("orders", {"n": str(number)})
        client.xgroup_create("orders", "billing", "0")
        ((_, served),) = client.xreadgroup("billing", "one", {"orders": ">"}, count=30)
        with (
            quire.open(root / "orders") as queue,
            queue.group("billing").consumer("own") as consumer,
        ):
            own = consumer.read_many(1000)
            assert len(own) == 70
            assert {it.index for it in own}.isdisjoint(int(i[:-2]) for i, _ in served)
            assert consumer.ack_many(own) == 70
            assert queue.groups()[0].members[0].name in {"own", "quire-serve"}
        assert client.xreadgroup("billing", "one", {"orders": ">"}) == []


def test_trimming_removes_whole_cycles(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    clock = quire.ManualClock(1_705_314_600_000)
    with quire.open(root / "days", clock=clock) as queue, queue.appender() as appender:
        for number in range(3):
            appender.write_many([b"%d" % number] * 10)
            clock.advance(_DAY_MS)
    with serving(root) as (port, _), connected(port) as client:
        assert client.xtrim("days", maxlen=15, approximate=True) == 10
        assert client.xlen("days") == 20
        assert [it[b"payload"] for _, it in client.xrange("days", count=1)] == [b"1"]


def test_appends_that_were_sent_together_have_their_own_ids(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        pipe = client.pipeline(transaction=False)
        for number in range(1000):
            pipe.xadd("orders" if number % 7 else "others", {"n": str(number)})
        found = pipe.execute()
        for name in ("orders", "others"):
            expected = {index: fields[b"n"] for index, fields in client.xrange(name)}
            own = {
                index: b"%d" % number
                for number, index in enumerate(found)
                if (name == "orders") == bool(number % 7)
            }
            assert own == expected


def test_the_state_of_groups_is_the_owners_alone(tmp_path: Path) -> None:
    with serving(tmp_path / "queues"):
        own = tmp_path / "queues" / ".quire-server"
        assert own.stat().st_mode & 0o777 == 0o700
        assert own.stat().st_uid == os.geteuid()
