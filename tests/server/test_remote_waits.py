"""Appends through a server that wait for replicas, with real replicas that are stopped."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import ENVIRONMENT
from quire.errors import ReplicationError, WaitTimeoutError
from replicas import wait_until
from replicated import Replicated, replicated
from served import WAIT_S, command, connected, serving
from waiting_writes import every_write_waits

CLIENT = b"0123456789abcdef"


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Replicated, int]]:
    """A queue with one sink, ``b``, which is in sync, and a server of its directory."""
    with replicated(tmp_path / "served", "b") as running:
        with quire.open(running.path) as queue:
            wait_until(lambda: [it.in_sync for it in queue.replicas] == [True])
        monkeypatch.setitem(ENVIRONMENT, "QUIRE_TIMEOUT_S", "0.3")
        with serving(tmp_path / "served") as (port, _):
            yield running, port


def far(port: int, name: str = "queue") -> Any:  # noqa: ANN401 - any handle
    open_any: Any = quire.open
    return open_any(f"quire://127.0.0.1:{port}/{name}")


@pytest.mark.parametrize("wait", ["any", "all", 1])
def test_a_remote_append_waits_for_the_sink(pair: tuple[Replicated, int], wait: Any) -> None:  # noqa: ANN401
    running, port = pair
    with far(port) as queue, queue.appender() as appender:
        first = appender.write_bytes(b"first", wait=wait)
        running.sinks["b"].stop()
        with pytest.raises(WaitTimeoutError, match="stays in the queue") as caught:
            appender.write_bytes(b"second", wait=wait)
        assert caught.value.acknowledged == {"b": first}
        assert caught.value.index == queue.last_index == appender.last_index_appended != first
        running.sinks["b"].go_on()
        third = appender.write_bytes(b"third", wait=wait)
        assert third == queue.last_index
        assert queue.tailer().read_many(9) == [b"first", b"second", b"third"]
    with quire.open(running.copies["b"], read_only=True) as copy:
        assert copy.tailer().read_many(9) == [b"first", b"second", b"third"]


@pytest.mark.slow
def test_every_way_to_write_waits(pair: tuple[Replicated, int]) -> None:
    running, port = pair
    with far(port) as queue:
        every_write_waits(queue, running.sinks["b"], many=[b"x"] * 100_000)


def test_a_wait_that_cannot_be_kept_is_refused_before_the_append(
    server: str, tmp_path: Path
) -> None:
    with far(int(server.rpartition(":")[2]), tmp_path.name) as queue, queue.appender() as appender:
        with pytest.raises(ReplicationError, match="not replicated"):
            appender.write_bytes(b"x", wait="any")
        with pytest.raises(ReplicationError, match="not replicated"):
            queue.appender(wait="all")
        for wrong in ("some", 0, -1, 1.5, True):
            with pytest.raises((TypeError, ValueError), match="wait must be"):
                appender.write_bytes(b"x", wait=wrong)
        with pytest.raises(ValueError, match="metadata"):
            appender.writing_document(metadata=True, wait="any")
        assert queue.entry_count == 0


def test_an_append_that_is_sent_again_while_it_waits_is_there_once(
    pair: tuple[Replicated, int],
) -> None:
    running, port = pair
    append = command("QUIRE.APPEND", "queue", "ID", CLIENT, "1", "WAIT", "ALL", "VALUES", b"x")
    with connected(port) as other:
        running.sinks["b"].stop()
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
            raw.sendall(append)
            wait_until(lambda: other.xlen("queue") == 1)
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw:
            raw.sendall(append)
            assert raw.recv(1 << 16).startswith(b"-WAITTIMEOUT replicas did not")
            running.sinks["b"].go_on()
            raw.sendall(append)
            assert raw.recv(1 << 16).startswith(b":")
        assert other.xlen("queue") == 1


def test_those_who_wait_hold_up_nobody_else(pair: tuple[Replicated, int]) -> None:
    running, port = pair
    running.sinks["b"].stop()
    append = command("QUIRE.APPEND", "queue", "WAIT", "ALL", "VALUES", b"x")
    raws = [socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) for _ in range(40)]
    with connected(port) as other:
        for raw in raws:
            raw.sendall(append)
        wait_until(lambda: other.xlen("queue") == len(raws))
        other.execute_command("QUIRE.SYNC", "queue")  # a thread carries it out
    for raw in raws:
        assert raw.recv(1 << 16).startswith(b"-WAITTIMEOUT")
        raw.close()
    running.sinks["b"].go_on()
