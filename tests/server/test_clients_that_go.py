"""Clients that go away: what they held is given back, whatever they had asked for."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

import quire
from replicas import wait_until
from served import WAIT_S, command, connected, serving

CLIENTS = 50
BLOCKED = {
    "XREAD": ("XREAD", "BLOCK", "0", "STREAMS", "q", "$"),
    "XREAD of none": ("XREAD", "BLOCK", "0", "STREAMS", "none", "$"),
    "XREADGROUP": ("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "q", ">"),
}
FOLLOWING = {"a command": command("PING"), "many": command("ECHO", "x" * 1000) * 50}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Generator[int]:
    root = tmp_path_factory.mktemp("served") / "queues"
    with serving(root) as (port, _), connected(port) as client:
        client.xadd("q", {"n": 0})
        client.xgroup_create("q", "g", "$")
        yield port


def counts(client: Any) -> tuple[int, int]:  # noqa: ANN401
    found = client.info("clients")
    return found["connected_clients"], found["blocked_clients"]


@pytest.mark.parametrize("following", [*FOLLOWING])
@pytest.mark.parametrize("blocked", [*BLOCKED])
def test_those_whose_commands_wait_for_one_that_waits_are_forgotten(
    port: int, blocked: str, following: str
) -> None:
    with connected(port) as client, ExitStack() as stack:
        before = counts(client)
        for _ in range(CLIENTS):
            raw = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
            stack.enter_context(raw)
            raw.sendall(command(*BLOCKED[blocked]) + FOLLOWING[following])
        wait_until(lambda: counts(client) == (before[0] + CLIENTS, before[1] + CLIENTS))
        stack.close()
        wait_until(lambda: counts(client) == before)


def test_a_named_tailer_of_one_that_has_gone_is_free(port: int) -> None:
    with connected(port) as client, quire.open(f"quire://127.0.0.1:{port}/q") as queue:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
            raw.sendall(command("QUIRE.TAILER", "OPEN", "q", "named"))
            assert raw.recv(100).startswith(b":")
            raw.sendall(command(*BLOCKED["XREAD"]) + command("PING"))
            wait_until(lambda: counts(client)[1] == 1)
            with pytest.raises(quire.errors.TailerInUseError):
                queue.tailer("named")
        wait_until(lambda: counts(client)[1] == 0)
        with queue.tailer("named") as tailer:
            assert tailer.name == "named"


def test_one_that_stays_is_answered_in_turn(port: int) -> None:
    with connected(port) as client:
        before = counts(client)
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
            raw.sendall(command(*BLOCKED["XREAD"]) + 20 * FOLLOWING["many"])
            wait_until(lambda: counts(client) == (before[0] + 1, 1))
            client.xadd("q", {"n": 1})
            raw.sendall(command("QUIT"))
            found = b""
            while more := raw.recv(1 << 16):
                found += more
    assert found.count(b"x" * 1000) == 1000
    assert found.endswith(b"+OK\r\n")
