"""Appends through a server that wait for replicas, with real replicas that are stopped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quire
from cli_runs import ENVIRONMENT
from parameters import some
from quire._native import ReplicaStates
from quire.errors import ReplicationError, ServerLostError, WaitTimeoutError
from quire.server import TokenFile
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


@pytest.fixture
def patient(pair: tuple[Replicated, int], monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Another server of the directory, which waits for as long as a sink may need."""
    running, _ = pair
    monkeypatch.delitem(ENVIRONMENT, "QUIRE_TIMEOUT_S")
    with serving(running.path.parent) as (port, _):
        yield port


def far(port: int, name: str = "queue", **options: Any) -> Any:  # noqa: ANN401 - any handle
    open_any: Any = quire.open
    return open_any(f"quire://127.0.0.1:{port}/{name}", **options)


@pytest.mark.parametrize("wait", some(["any", "all", 1], keep=[1]))
def test_a_remote_append_waits_for_the_sink(
    pair: tuple[Replicated, int],
    patient: int,
    wait: Any,  # noqa: ANN401
) -> None:
    running, port = pair
    with (
        far(port) as queue,
        queue.appender() as appender,
        far(patient) as patient_queue,
        patient_queue.appender() as patient_appender,
    ):
        first = patient_appender.write_bytes(b"first", wait=wait)
        running.sinks["b"].stop()
        with pytest.raises(WaitTimeoutError, match="stays in the queue") as caught:
            appender.write_bytes(b"second", wait=wait)
        assert caught.value.acknowledged == {"b": first}
        assert caught.value.index == queue.last_index == appender.last_index_appended != first
        running.sinks["b"].go_on()
        third = patient_appender.write_bytes(b"third", wait=wait)
        assert third == queue.last_index
        assert queue.tailer().read_many(9) == [b"first", b"second", b"third"]
    with quire.open(running.copies["b"], read_only=True) as copy:
        assert copy.tailer().read_many(9) == [b"first", b"second", b"third"]


@pytest.mark.slow
def test_every_way_to_write_waits(pair: tuple[Replicated, int], patient: int) -> None:
    running, port = pair
    with far(patient) as patient_queue, far(port) as queue:
        every_write_waits(patient_queue, queue, running.sinks["b"], many=[b"x"] * 100_000)


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


@pytest.mark.check
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
            with quire.open(running.path) as queue:  # the server would wait for 0.3 s alone
                wait_until(lambda: queue.last_acknowledged_index == queue.last_index)
            raw.sendall(append)
            assert raw.recv(1 << 16).startswith(b":")
        assert other.xlen("queue") == 1


@pytest.mark.check
@pytest.mark.parametrize("words", [("QUIRE.APPEND", "WAIT", "ALL", "VALUES", "x"), ("QUIRE.WAIT",)])
def test_a_token_that_is_revoked_ends_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    token = tokens.add("writer", {"append": ("*",)})
    with replicated(tmp_path / "served", "b") as running:
        with quire.open(running.path) as queue:
            wait_until(lambda: [it.in_sync for it in queue.replicas] == [True])
        monkeypatch.setitem(ENVIRONMENT, "QUIRE_TIMEOUT_S", "600")
        with (
            serving(tmp_path / "served", "--tokens", tokens.path) as (port, _),
            socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw,
            quire.open(running.path) as queue,
        ):
            running.sinks["b"].stop()
            index = queue.appender().write_text("not acknowledged")
            name, *rest = words
            asked = command(name, "queue", *(rest or ["ALL", str(index)]))
            raw.sendall(command("AUTH", token) + asked)
            assert raw.recv(5, socket.MSG_WAITALL) == b"+OK\r\n"
            wait_until(lambda: queue.entry_count == 1 + (name == "QUIRE.APPEND"))
            tokens.revoke("writer")
            assert raw.recv(1 << 16) == b"-NOAUTH Authentication required.\r\n"
            raw.sendall(asked)
            assert raw.recv(1 << 16) == b"-NOAUTH Authentication required.\r\n"


@pytest.mark.check
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


@pytest.mark.check
def test_messages_under_way_to_replicas(pair: tuple[Replicated, int]) -> None:
    running, port = pair
    with far(port) as queue, queue.appender() as appender:
        with appender.in_flight(4) as flight:
            futures = [flight.write_bytes(b"%d" % number) for number in range(20)]
        indexes = [future.result(WAIT_S) for future in futures]
        assert indexes == [it.index for it in queue.tailer()]
        (replica,) = queue.replicas
        assert (replica.name, replica.in_sync, replica.connected) == ("b", True, True)
        assert (replica.acknowledged_index, replica.lag_messages) == (indexes[-1], 0)
        assert (replica.lag_bytes, replica.lag_s) == (0, 0.0)
        with quire.open(running.path) as home:
            assert home.replicas == queue.replicas
            assert home.last_acknowledged_index == queue.last_acknowledged_index


@pytest.mark.check
def test_an_index_is_acknowledged_once_the_sink_goes_on(pair: tuple[Replicated, int]) -> None:
    running, port = pair
    with far(port) as queue, queue.appender() as appender:
        running.sinks["b"].stop()
        index = appender.write_bytes(b"x")
        with pytest.raises(WaitTimeoutError, match="stays in the queue") as caught:
            appender.acknowledged(index, timeout_s=0.01)
        assert caught.value.index == index
        assert caught.value.acknowledged == {"b": None}
        assert queue.replicas[0].lag_messages == 1
        with pytest.raises(WaitTimeoutError):
            appender.when_acknowledged(index, wait="all", timeout_s=0.01).result(WAIT_S)
        with pytest.raises(WaitTimeoutError), appender.in_flight(2, timeout_s=0.01) as flight:
            flight.write_bytes(b"y")
        later = appender.when_acknowledged(index, timeout_s=WAIT_S)
        running.sinks["b"].go_on()
        assert later.result(WAIT_S) == index
        appender.acknowledged(index, wait=1, timeout_s=WAIT_S)
        asyncio.run(appender.aacknowledged(index))


@pytest.mark.check
def test_futures_say_that_the_server_is_gone(pair: tuple[Replicated, int]) -> None:
    running, _ = pair
    running.sinks["b"].stop()
    with serving(running.path.parent) as (port, process), far(port, timeout_s=0.5) as queue:
        appender = queue.appender()
        future = appender.when_acknowledged(appender.write_bytes(b"x"), timeout_s=WAIT_S)
        process.kill()
        process.wait()
        with pytest.raises(ServerLostError):
            future.result(WAIT_S)
    running.sinks["b"].go_on()


def test_a_queue_that_is_not_replicated_says_so(server: str, tmp_path: Path) -> None:
    with far(int(server.rpartition(":")[2]), tmp_path.name) as queue, queue.appender() as appender:
        assert queue.replicas == []
        assert queue.last_acknowledged_index is None
        for ask in (appender.in_flight, lambda: appender.when_acknowledged(1)):
            with pytest.raises(ReplicationError, match="not replicated"):
                ask()
        with pytest.raises(ReplicationError, match="not replicated"):
            appender.acknowledged(1)


def test_a_waiter_through_a_server_learns_that_messages_were_cut_off(
    pair: tuple[Replicated, int],
) -> None:
    running, port = pair
    running.sinks["b"].stop()
    states = ReplicaStates.open_existing(running.path)
    assert states is not None
    with far(port) as queue, queue.appender() as appender:
        flight = appender.in_flight(4, wait="all", timeout_s=WAIT_S)
        future = flight.write_bytes(b"x")
        wait_until(lambda: queue.entry_count == 1)
        states.note_cut(None)
        running.sinks["b"].go_on()
        with pytest.raises(ReplicationError, match="it is unknown"):
            future.result()
        assert appender.write_bytes(b"y", wait="all") == queue.last_index
