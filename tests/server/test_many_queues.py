"""More queues than may be open at once: the one that was not used for longest is closed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from redis.exceptions import ResponseError

import quire
from quire.server.context import Limits
from replicas import wait_until
from served import WAIT_S, command, connected, serving_here

MOST = 3
NAMES = [f"c/q{number}" for number in range(3 * MOST)]
FULL = "too many queues are in use: limit=3"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "queues").mkdir()
    return tmp_path / "queues"


@pytest.fixture
def port(root: Path) -> Generator[int]:
    with serving_here(root, Limits(queues=MOST)) as port:
        yield port


def test_another_client_has_a_queue_although_one_has_used_as_many_as_may_be_open(
    port: int,
) -> None:
    with connected(port) as one, connected(port) as other:
        for name in NAMES:
            one.execute_command("QUIRE.OPEN", name, "CREATE", "block_bytes", 1 << 16)
        other.xadd("mine", {"n": 1})
        for round_ in range(2):
            for name in NAMES:
                assert other.exists(name)
                assert other.type(name) == b"stream"
                assert other.xlen(name) == round_
                other.xadd(name, {"n": round_})
        assert [other.xrange(it)[1][1] for it in NAMES] == [{b"n": b"1"}] * len(NAMES)
        assert other.xread(dict.fromkeys(NAMES, "0"))[-1][0] == NAMES[-1].encode()
        assert one.info("queues")["open_queues"] == MOST


def test_handles_go_on_whose_queue_was_closed_meanwhile(port: int) -> None:
    with (
        quire.open(f"quire://127.0.0.1:{port}/q") as queue,
        queue.appender() as appender,
        queue.tailer() as tailer,
        connected(port) as client,
    ):
        for number in range(3):
            appender.write_bytes(b"%d" % number)
            assert tailer.read_bytes() == b"%d" % number
            for name in NAMES:
                client.xadd(name, {"n": 1})
        client.xgroup_create("q", "g", "0")
        assert len(client.xreadgroup("g", "c", {"q": ">"}, noack=True)[0][1]) == 3
        for name in NAMES:
            assert client.xlen(name) == 3
        appender.write_bytes(b"3")
        assert len(client.xreadgroup("g", "c", {"q": ">"}, noack=True)[0][1]) == 1


def call(stack: ExitStack, port: int, *words: str) -> socket.socket:
    raw = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=WAIT_S))
    raw.sendall(command(*words))
    return raw


def waits(stack: ExitStack, port: int, _root: Path, name: str) -> None:
    call(stack, port, "XREAD", "BLOCK", "0", "STREAMS", name, "$")
    with connected(port) as client:
        wait_until(lambda: client.info("clients")["blocked_clients"] > NAMES.index(name))


def has_tailer(stack: ExitStack, port: int, _root: Path, name: str) -> None:
    assert call(stack, port, "QUIRE.TAILER", "OPEN", name, "t").recv(99).startswith(b":")


def is_member(stack: ExitStack, port: int, _root: Path, name: str) -> None:
    assert call(stack, port, "QUIRE.GROUP", "JOIN", name, "g", "c").recv(99) == b":1\r\n"


def has_part(stack: ExitStack, port: int, _root: Path, name: str) -> None:
    opened = call(stack, port, "QUIRE.SINK", "OPEN", name, "w", "1", "0").recv(99)
    assert opened.startswith(b":"), opened


def appends(stack: ExitStack, port: int, root: Path, name: str) -> None:
    home = stack.enter_context(quire.open(root / name))
    document = stack.enter_context(home.appender().writing_document())
    document.write("n", 1)  # holds the write lock
    call(stack, port, "XADD", name, "*", "n", "2")
    with connected(port) as client:
        client.ping()  # the server has taken what came before


USES: dict[str, Callable[[ExitStack, int, Path, str], None]] = {
    "waits": waits,
    "has a tailer": has_tailer,
    "is a member": is_member,
    "has a part": has_part,
    "appends": appends,
}


@pytest.mark.parametrize("use", [*USES])
def test_a_queue_in_use_stays_open(port: int, root: Path, use: str) -> None:
    with connected(port) as client, ExitStack() as stack:
        for name in NAMES[:MOST]:
            client.xadd(name, {"n": 0})
            USES[use](stack, port, root, name)
        with pytest.raises(ResponseError, match=FULL):
            client.xadd("mine", {"n": 1})
        assert client.xlen(NAMES[0]) == 1
        stack.close()
        added = list[bytes]()

        def is_added() -> bool:
            with suppress(ResponseError):  # until the server has noticed
                added.append(client.xadd("mine", {"n": 1}))
            return bool(added)

        wait_until(is_added)


def test_a_queue_whose_messages_consumers_have_stays_open(port: int) -> None:
    with connected(port) as client:
        for name in NAMES[:MOST]:
            client.xadd(name, {"n": 0})
            client.xgroup_create(name, "g", "0")
            client.xreadgroup("g", "c", {name: ">"})
        with pytest.raises(ResponseError, match=FULL):
            client.xadd("mine", {"n": 1})
        (pending,) = client.xpending_range(NAMES[1], "g", "-", "+", 10)
        assert client.xack(NAMES[1], "g", pending["message_id"]) == 1
        client.xadd("mine", {"n": 1})


def test_a_group_and_its_dead_letters_stay_open(port: int) -> None:
    address = f"quire://127.0.0.1:{port}"
    with connected(port) as client, quire.open(f"{address}/q") as queue:
        queue.appender().write_bytes(b"bad")
        group = queue.group("g", dead_letter=f"{address}/letters", max_deliveries=1)
        client.xadd("letters", {"n": 0})
        for name in NAMES[:MOST]:
            client.xadd(name, {"n": 0})
        with group.consumer() as consumer:
            for name in NAMES:
                client.xadd(name, {"n": 0})
            message = consumer.read()
            assert message is not None
            message.nack()
            assert consumer.read() is None
        assert client.xlen("letters") == 2


def test_those_that_waited_for_a_queue_are_woken_once_it_is_open_again(port: int) -> None:
    with connected(port) as client, connected(port) as other:
        client.xadd("q", {"n": 0})
        assert client.xread({"q": "$"}, block=1) == []  # the server still sleeps on it
        for name in NAMES:
            other.xadd(name, {"n": 0})
        found = list[Any]()
        waiting = Thread(target=lambda: found.extend(client.xread({"q": "$"}, block=60_000)))
        waiting.start()
        wait_until(lambda: other.info("clients")["blocked_clients"] > 0)
        other.xadd("q", {"n": 1})
        waiting.join()
        assert [fields for _, fields in found[0][1]] == [{b"n": b"1"}]
