"""The same calls to `quire serve` and to a real Redis: the same answers, but for the ids."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import redis

from asked import Answers, Asked
from parameters import some
from served import WAIT_S, command, connected, real_cluster, real_redis, serving, talk


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[int, int]]:
    """The port of a server of Quire's, and that of a Redis."""
    folder = tmp_path_factory.mktemp("served")
    with real_redis(folder / "redis") as other, serving(folder / "queues") as (own, _):
        yield own, other


def adds(ask: Asked) -> None:
    ask("XADD", "key:a", "*", "symbol", "EURUSD", "price", "1.1")
    ask("XADD", "key:a", "*", "symbol", "GBPUSD", "price", "1.3")
    ask("XADD", "key:a", "*", "bytes", b"\xff\x00\xfe", "", "")
    ask("XADD", "key:a", "NOMKSTREAM", "*", "n", "1")
    ask("XADD", "key:none", "NOMKSTREAM", "*", "n", "1")
    ask("XLEN", "key:a")
    ask("XLEN", "key:none")
    ask("XADD", "key:a", "*", "alone")
    ask("XADD", "key:a", "*")
    ask("XADD", "key:a")
    ask("XADD", "key:a", "?", "n", "1")
    ask("TYPE", "key:a")
    ask("TYPE", "key:none")
    ask("EXISTS", "key:a", "key:a", "key:none")


def ranges(ask: Asked) -> None:
    for number in range(6):
        ask("XADD", "key:r", "*", "n", number)
    ask("XRANGE", "key:r", "-", "+")
    ask("XRANGE", "key:r", "-", "+", "COUNT", "2")
    ask("XRANGE", "key:r", "@1", "@3")
    ask("XRANGE", "key:r", "(@1", "(@3")
    ask("XRANGE", "key:r", "@2", "@2")
    ask("XRANGE", "key:r", "@4", "@1")
    ask("XRANGE", "key:r", "+", "-")
    ask("XRANGE", "key:r", "-", "+", "COUNT", "0")
    ask("XRANGE", "key:r", "-", "+", "COUNT", "x")
    ask("XRANGE", "key:r", "-", "+", "LIMIT", "1")
    ask("XRANGE", "key:r", "x", "+")
    ask("XRANGE", "key:r", "-")
    ask("XREVRANGE", "key:r", "+", "-")
    ask("XREVRANGE", "key:r", "+", "-", "COUNT", "2")
    ask("XREVRANGE", "key:r", "@3", "@1")
    ask("XREVRANGE", "key:r", "(@3", "(@1", "COUNT", "9")
    ask("XREVRANGE", "key:none", "+", "-")
    ask("XRANGE", "key:none", "-", "+")


def reads(ask: Asked) -> None:
    ask("XREAD", "STREAMS", "key:s", "0")
    ask("XREAD", "BLOCK", "10", "STREAMS", "key:s", "$")
    for number in range(5):
        ask("XADD", "key:s", "*", "n", number)
    ask("XREAD", "STREAMS", "key:s", "0")
    ask("XREAD", "COUNT", "2", "STREAMS", "key:s", "0-0")
    ask("XREAD", "COUNT", "2", "STREAMS", "key:s", "key:none", "@1", "0")
    ask("XREAD", "STREAMS", "key:s", "@4")
    ask("XREAD", "STREAMS", "key:s", "$")
    ask("XREAD", "BLOCK", "10", "STREAMS", "key:s", "$")
    ask("XREAD", "COUNT", "2", "BLOCK", "10", "STREAMS", "key:s", "@0")
    ask("XREAD", "STREAMS", "key:s", ">")
    ask("XREAD", "STREAMS", "key:s")
    ask("XREAD", "BLOCK", "-1", "STREAMS", "key:s", "0")
    ask("XREAD", "BLOCK", "x", "STREAMS", "key:s", "0")
    ask("XREAD", "COUNT", "STREAMS", "key:s", "0")
    ask("XREAD", "STREAMS", "key:s", "not-an-id")


def groups(ask: Asked) -> None:
    ask("XGROUP", "CREATE", "key:g", "billing", "$")
    ask("XGROUP", "CREATE", "key:g", "billing", "$", "MKSTREAM")
    ask("XGROUP", "CREATE", "key:g", "billing", "$")
    for number in range(6):
        ask("XADD", "key:g", "*", "n", number)
    ask("XREADGROUP", "GROUP", "billing", "one", "COUNT", "2", "STREAMS", "key:g", ">")
    ask("XREADGROUP", "GROUP", "billing", "two", "COUNT", "2", "STREAMS", "key:g", ">")
    ask("XREADGROUP", "GROUP", "billing", "one", "STREAMS", "key:g", "0")
    ask("XREADGROUP", "GROUP", "billing", "one", "COUNT", "1", "STREAMS", "key:g", "@0")
    ask("XREADGROUP", "GROUP", "billing", "three", "STREAMS", "key:g", "0")
    ask("XACK", "key:g", "billing", "@0")
    ask("XACK", "key:g", "billing", "@0")
    ask("XACK", "key:g", "billing", "@5")
    ask("XACK", "key:g", "none", "@1")
    ask("XPENDING", "key:g", "billing")
    ask("XCLAIM", "key:g", "billing", "two", "0", "@1", "JUSTID")
    ask("XCLAIM", "key:g", "billing", "two", "100000", "@1")
    ask("XCLAIM", "key:g", "billing", "two", "0", "@1")
    ask("XPENDING", "key:g", "billing")
    ask("XAUTOCLAIM", "key:g", "billing", "one", "0", "0", "COUNT", "2")
    ask("XAUTOCLAIM", "key:g", "billing", "one", "0", "0", "COUNT", "2", "JUSTID")
    ask("XAUTOCLAIM", "key:g", "billing", "one", "1000000", "0")
    ask("XREADGROUP", "GROUP", "billing", "one", "NOACK", "STREAMS", "key:g", ">")
    ask("XREADGROUP", "GROUP", "billing", "one", "STREAMS", "key:g", ">")
    ask("XREADGROUP", "GROUP", "billing", "one", "BLOCK", "10", "STREAMS", "key:g", ">")
    ask("XREADGROUP", "GROUP", "billing", "one", "STREAMS", "key:g", "$")
    ask("XREADGROUP", "GROUP", "none", "one", "STREAMS", "key:g", ">")
    ask("XREADGROUP", "GROUP", "billing", "one", "STREAMS", "key:none", ">")
    ask("XGROUP", "CREATECONSUMER", "key:g", "billing", "four")
    ask("XGROUP", "CREATECONSUMER", "key:g", "billing", "four")
    ask("XGROUP", "DELCONSUMER", "key:g", "billing", "one")
    ask("XPENDING", "key:g", "billing")
    ask("XGROUP", "DESTROY", "key:g", "billing")
    ask("XGROUP", "DESTROY", "key:g", "billing")
    ask("XGROUP", "NONSENSE", "key:g", "billing")
    ask("XPENDING", "key:g", "billing")
    ask("XINFO", "GROUPS", "key:g")
    ask("XINFO", "STREAM", "key:none")


def starts(ask: Asked) -> None:
    for number in range(4):
        ask("XADD", "key:p", "*", "n", number)
    ask("XGROUP", "CREATE", "key:p", "all", "0")
    ask("XGROUP", "CREATE", "key:p", "later", "@1")
    ask("XGROUP", "CREATE", "key:p", "new", "$")
    for group in ("all", "later", "new"):
        ask("XREADGROUP", "GROUP", group, "c", "STREAMS", "key:p", ">")
    ask("XACK", "key:p", "later", "@2", "@3")
    ask("XGROUP", "SETID", "key:p", "later", "@2")
    ask("XREADGROUP", "GROUP", "later", "c", "STREAMS", "key:p", ">")
    ask("XGROUP", "SETID", "key:p", "none", "0")


def missing(ask: Asked) -> None:
    """What is asked of queues, groups and messages that there are not, or twice of one."""
    ask("XRANGE", "key:none", "-", "+", "COUNT", "0")
    ask("XREVRANGE", "key:none", "+", "-", "COUNT", "0")
    ask("XTRIM", "key:none", "MAXLEN", "~", "5")
    ask("XTRIM", "key:none", "MAXLEN", "~", "5", "LIMIT")
    for number in range(3):
        ask("XADD", "key:m", "*", "n", number)
    for key in ("key:none", "key:m"):
        ask("XPENDING", key, "g")
        ask("XPENDING", key, "g", "-", "+", "10")
        ask("XCLAIM", key, "g", "c", "0", "@0")
        ask("XAUTOCLAIM", key, "g", "c", "0", "0")
        ask("XACK", key, "g", "5-1")
        ask("XACK", key, "g", "x")
    ask("XREAD", "STREAMS", "key:m", "key:m", "@0", "@1")
    ask("XREAD", "STREAMS", "key:m", "key:m", "@2", "@2")
    ask("XREAD", "COUNT", "1", "STREAMS", "key:m", "key:none", "key:m", "0", "0", "@0")
    ask("XGROUP", "CREATE", "key:m", "g", "0")
    ask("XREADGROUP", "GROUP", "g", "c", "COUNT", "2", "STREAMS", "key:m", "key:m", ">", ">")
    ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "key:m", "key:m", "@1", ">")
    ask("XREADGROUP", "GROUP", "g", "d", "STREAMS", "key:m", "key:m", "0", ">")
    ask("XACK", "key:m", "g", "5-1", "@0")
    ask("XACK", "key:m", "g", "@1", "x")
    ask("XCLAIM", "key:m", "g", "c", "0", "5-1", "JUSTID")
    ask("XCLAIM", "key:m", "g", "c", "0", "JUSTID")
    ask("XCLAIM", "key:m", "g", "c", "0", "x")
    ask("XCLAIM", "key:m", "g", "c", "-5", "@1", "JUSTID")
    ask("XCLAIM", "key:m", "g", "c", "0", "@1", "IDLE", "-5", "JUSTID")
    ask("XCLAIM", "key:m", "g", "c", "0", "@1", "TIME", "-5", "RETRYCOUNT", "-5", "JUSTID")
    ask("XCLAIM", "key:m", "g", "c", "x", "@1")
    ask("XAUTOCLAIM", "key:m", "g", "c", "-5", "0", "JUSTID")
    ask("XAUTOCLAIM", "key:m", "g", "c", "x", "0")
    for count in ("0", "-1", "x", str(2**63 - 1), "1000"):
        ask("XAUTOCLAIM", "key:m", "g", "c", "0", "0", "COUNT", count, "JUSTID")
    ask("XPENDING", "key:m", "g", "IDLE", "x", "-", "+", "10")


def connection(ask: Asked) -> None:
    ask("PING")
    ask("PING", "hello")
    ask("PING", "a", "b")
    ask("ECHO", "hello")
    ask("SELECT", "0")
    ask("SELECT", "99")
    ask("SELECT", "x")
    ask("CLIENT", "SETNAME", "worker")
    ask("CLIENT", "GETNAME")
    ask("CLIENT", "SETNAME", "two words")
    ask("CLIENT", "NONSENSE")
    ask("NONSENSE", "a")
    ask("HELLO", "7")
    ask("HELLO", "x")
    ask("AUTH", "a", "b", "c")


@pytest.mark.parametrize("protocol", some([2, 3], keep=[1]))
@pytest.mark.parametrize("calls", [adds, ranges, reads, groups, starts, missing, connection])
def test_the_answers_are_those_of_redis(
    ports: tuple[int, int], calls: Callable[[Asked], None], protocol: int
) -> None:
    found: list[Answers] = []
    for port in ports:
        with connected(port, protocol=protocol, single_connection_client=True) as client:
            client.response_callbacks.clear()
            ask = Asked(client, f"{calls.__name__}{protocol}-")
            calls(ask)
            found.append(ask.answers)
    for own, other in zip(*found, strict=True):
        assert own == other, f"Quire: {own}\nRedis: {other}"


def test_reading_again_what_a_consumer_has_counts_as_delivered(ports: tuple[int, int]) -> None:
    for port in ports:
        with connected(port) as client:
            client.xgroup_create("again", "g", "$", mkstream=True)
            taken = [client.xadd("again", {"n": str(number)}) for number in range(3)]
            client.xreadgroup("g", "c", {"again": ">"})
            client.xclaim("again", "g", "c", 0, taken, idle=1_000_000, justid=True)
            for _ in range(3):
                client.xreadgroup("g", "c", {"again": taken[0]})  # those after it
            found = client.xpending_range("again", "g", "-", "+", 10)
            assert [it["times_delivered"] for it in found] == [1, 4, 4]
            old = client.xpending_range("again", "g", "-", "+", 10, idle=900_000)
            assert [it["message_id"] for it in old] == taken[:1]
            assert client.xautoclaim("again", "g", "d", 900_000, justid=True) == taken[:1]
            words = ("XPENDING", "again", "g", "IDLE", -1, "-", "+", 10)
            assert len(client.execute_command(*words, parse_detail=True)) == 3


def test_who_waits_for_messages_of_a_group_is_answered_when_it_is_removed(
    ports: tuple[int, int],
) -> None:
    for port in ports:
        with connected(port) as client:
            client.xgroup_create("removed", "g", "$", mkstream=True)
            with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
                words = ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "removed", ">")
                raw.sendall(command(*words))
                while not client.info("clients")["blocked_clients"]:
                    pass
                assert client.xgroup_destroy("removed", "g") == 1
                assert raw.recv(1000).startswith(b"-NOGROUP ")


def test_the_texts_of_errors_are_those_of_redis(ports: tuple[int, int]) -> None:
    calls = [
        "XADD texts * n 1",
        "XPENDING none g",
        "XCLAIM none g c 0 1-0",
        "XAUTOCLAIM texts g c 0 0",
        "XREADGROUP GROUP g c STREAMS none >",
        "XREADGROUP GROUP g c STREAMS texts >",
        "XGROUP SETID texts g 0",
        "XGROUP CREATE texts g 0",
        "XAUTOCLAIM texts g c 0 0 COUNT 0",
        f"XAUTOCLAIM texts g c 0 0 COUNT {2**63 - 1}",
        "XCLAIM texts g c 0 x",
        "XREADGROUP GROUP g c STREAMS texts $",
        "XREAD STREAMS texts >",
        "AUTH x",
        "XINFO STREAM none",
    ]
    data = b"".join(command(*it.split()) for it in calls)
    own, other = (talk(port, data).splitlines()[2:] for port in ports)  # without the id
    assert own == other
    assert talk(ports[0], command("SELECT", "1")).startswith(b"-ERR DB index is out of range")


def test_a_name_of_a_group_is_checked_before_a_queue_is_made(ports: tuple[int, int]) -> None:
    with connected(ports[0]) as client:
        with pytest.raises(redis.ResponseError, match="invalid name of a group: 'a b'"):
            client.xgroup_create("unmade", "a b", "$", mkstream=True)
        with pytest.raises(redis.ResponseError, match="invalid name of a group: 'a b'"):
            client.execute_command(
                *("QUIRE.GROUP", "JOIN", "texts", "a b", "c", "DEADLETTER", "unmade", "1")
            )
        assert client.exists("unmade") == 0


def test_a_client_forges_no_line_of_the_list_of_clients(ports: tuple[int, int]) -> None:
    with connected(ports[0], single_connection_client=True) as client:
        assert client.execute_command("CLIENT", "SETINFO", "LIB-NAME", "good(v1.2_x)") == b"OK"
        for name in ("LIB-NAME", "lib-ver"):
            for value in ("a\nid=9 addr=forged", "two words", b"\xff"):
                with pytest.raises(redis.ResponseError, match=f"(?i){name} cannot contain spaces"):
                    client.execute_command("CLIENT", "SETINFO", name, value)
        listed = client.execute_command("CLIENT", "INFO", NEVER_DECODE=True)
        assert b"lib-name=good(v1.2_x) " in listed


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[int, int]]:
    """The port of a server of Quire's, and that of a Redis which is a cluster of one node."""
    folder = tmp_path_factory.mktemp("served")
    with real_cluster(folder / "redis") as other, serving(folder / "queues") as (own, _):
        yield own, other


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("calls", [adds, ranges, reads, starts])
def test_a_client_of_a_cluster_gets_the_same_answers(
    clusters: tuple[int, int], calls: Callable[[Asked], None], protocol: int
) -> None:
    found: list[Answers] = []
    for port in clusters:
        with redis.RedisCluster(host="127.0.0.1", port=port, protocol=protocol) as client:
            for node in client.get_nodes():
                assert node.redis_connection is not None
                node.redis_connection.response_callbacks.clear()
            ask = Asked(client, f"{{{calls.__name__}{protocol}}}-")  # all in one slot
            calls(ask)
            found.append(ask.answers)
    for own, other in zip(*found, strict=True):
        assert own == other, f"Quire: {own}\nRedis: {other}"


def told_to_clients_of_a_cluster(ask: Asked) -> None:
    for words in ("INFO", "SLOTS", "SHARDS", "NODES", "MYID"):
        ask("CLUSTER", words)
        ask("CLUSTER", words, "more")
    for key in ("a", "a{b}c", "{b}", "a{}b", "a{b", "a}b{c}", "{{b}}", "", b"\xff\x00"):
        ask("CLUSTER", "KEYSLOT", key)
    ask("CLUSTER", "KEYSLOT")
    ask("CLUSTER", "NONSENSE")
    ask("CLUSTER")
    for asked in (
        *(
            "XADD a * n 1",
            "XREAD COUNT 1 STREAMS a b 0 0",
            "XREAD STREAMS a b 0",
            "XREAD COUNT 1 a",
        ),
        *("XGROUP CREATE a g 0", "XINFO STREAM a", "XREADGROUP GROUP g STREAMS STREAMS a b > >"),
        *("DEL a b", "PING", "CLUSTER MYID", "NONSENSE a", "XADD a", "XREAD x", "XREAD x y z"),
    ):
        ask("COMMAND", "GETKEYS", *asked.split())


@pytest.mark.parametrize("protocol", [2, 3])
def test_what_a_cluster_says_of_itself(clusters: tuple[int, int], protocol: int) -> None:
    """But for the host, which a Redis that is alone does not know, and the statistics."""
    found: list[Answers] = []
    for port in clusters:
        with connected(port, protocol=protocol) as client:
            client.response_callbacks.clear()
            ask = Asked(client, "key:")
            told_to_clients_of_a_cluster(ask)
            identity = client.execute_command("CLUSTER", "MYID")
            hide = partial(hidden, names={identity: b"ID", b"%d" % port: b"PORT", port: 0})
            found.append([hide(it) for it in ask.answers])
    for own, other in zip(*found, strict=True):
        assert own == other, f"Quire: {own}\nRedis: {other}"


def hidden(told: Any, names: dict[Any, Any]) -> Any:  # noqa: ANN401
    """The answers, with a placeholder for each value that differs from run to run."""
    if isinstance(told, dict):
        known: dict[Any, Any] = {**told}
        return {hidden(key, names): hidden(value, names) for key, value in known.items()}
    if isinstance(told, list | tuple):
        return [hidden(it, names) for it in cast("list[Any]", told)]
    if isinstance(told, int):
        return names.get(told, told)
    if isinstance(told, bytes):
        for name, shown in names.items():
            told = told.replace(name, shown) if isinstance(name, bytes) else told
        told = re.sub(rb"(cluster_stats|total_cluster)[^\n]*\n|@\d+|127.0.0.1", b"", told)
    return told


def test_what_differs_from_redis_gives_its_reason(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _), connected(port) as client:
        first = client.xadd("orders", {"n": "1"})
        calls = {
            "XDEL orders 1-0": "removing one message",
            "XADD orders 5-0 n 1": "explicit id",
            "XADD orders MAXLEN 5 * n 1": "trims",
            "XTRIM orders MAXLEN 5": "exact trimming",
            "DEL orders": "removing a queue",
            "XSETID orders 1-0": "last id",
            "XADD orders * a 1 a 2": "given twice",
            "GET orders": "unknown command",
            "XINFO STREAM orders FULL": "not supported",
        }
        for words, reason in calls.items():
            with pytest.raises(redis.ResponseError, match=reason):
                client.execute_command(*words.split())
        assert client.xrange("orders") == [(first, {b"n": b"1"})]


def test_a_transaction_is_refused_as_a_whole(tmp_path: Path) -> None:
    with serving(tmp_path / "queues") as (port, _):
        with connected(port, single_connection_client=True) as client:
            pipeline = client.pipeline()
            for number in range(3):
                pipeline.xadd("orders", {"n": number})
            pipeline.xlen("orders")
            with pytest.raises(redis.ResponseError, match="not supported: MULTI"):
                pipeline.execute()
            assert client.exists("orders") == 0
            assert client.pipeline(transaction=False).xadd("orders", {"n": 1}).execute()
        words = ("MULTI", "XADD orders * n 2", "DISCARD", "XLEN orders", "MULTI", "XLEN orders")
        answers = talk(port, b"".join(command(*it.split()) for it in words)).splitlines()
        begins = (b"-ERR not supp", b"-ERR not executed", b"-EXECABORT ", b":1")
        assert [any(map(it.startswith, begins)) for it in answers] == [True] * len(words)
        assert answers[3] == b":1"
        assert answers[5].startswith(b"-ERR not executed: MULTI was refused")
        assert talk(port, command("MULTI") + command("RESET") + command("PING")).endswith(
            b"+PONG\r\n"
        )
