"""A queue whose write lock another process holds: who waits for it, and who does not."""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import quire
from served import WAIT_S, command, connected, serving, serving_here

CLIENTS = 12
HOLDS = """
import sys, quire
with quire.open(sys.argv[1]).appender().writing_document() as document:
    document.write("n", 0)
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def locked(path: Path) -> Generator[subprocess.Popen[str]]:
    """Have another process hold the write lock of a queue."""
    pipe, program = subprocess.PIPE, [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True, cwd="/") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.communicate("\n", timeout=WAIT_S)


def adding(stack: ExitStack, port: int) -> list[socket.socket]:
    """Have clients append to the queue in each way, with one after the other in the line."""
    raws = list[socket.socket]()
    for number in range(CLIENTS):
        raw = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=WAIT_S))
        name = b"%016d" % (number + 1)
        words: tuple[str | bytes, ...] = (
            ("XADD", "q", "*", "n", "1"),
            ("QUIRE.APPEND", "q", "ID", name, "1", "VALUES", "one"),
            ("QUIRE.APPEND", "q", "METADATA", "VALUES", "two"),
        )[number % 3]
        raw.sendall(command(*words))
        raws.append(raw)
    return raws


def test_those_who_wait_for_one_queue_hold_up_nobody_else(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, _), connected(port) as client, ExitStack() as stack:
        for name in ("q", "free"):
            client.xadd(name, {"n": 1})
        with locked(root / "q"):
            raws = adding(stack, port)
            assert len(client.xrevrange("free")) == len(client.xrange("free")) == 1
            assert client.execute_command("QUIRE.SYNC", "free")
            assert not select.select(raws, [], [], 0)[0]  # they wait as before
        assert not any(it.recv(99).startswith(b"-") for it in raws)
        assert client.xlen("q") == 2 + 2 * CLIENTS // 3


def test_each_of_them_learns_who_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "queues"
    monkeypatch.setenv("QUIRE_TIMEOUT_S", "1")
    quire.open(root / "q").close()
    with serving_here(root) as port, ExitStack() as stack:
        with locked(root / "q") as process:
            raws = adding(stack, port)
            for raw in raws:
                answer = raw.recv(999)
                assert answer.startswith((b"-ERR ", b"-LOCKTIMEOUT ")), answer
                assert b"holder_pid=%d " % process.pid in answer
        raws[1].sendall(command("QUIRE.APPEND", "q", "ID", b"%016d" % 2, "1", "VALUES", "one"))
        assert raws[1].recv(99).startswith(b":")


def test_one_that_has_gone_appends_nothing_more(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, _), connected(port) as client, ExitStack() as stack:
        client.xadd("q", {"n": 1})
        with locked(root / "q"):
            raws = adding(stack, port)
            client.ping()  # the server has taken what came before
            for raw in raws:  # resets its connection: what merely sends no more is answered
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raw.close()
            while client.info("clients")["connected_clients"] > 1:
                pass
        client.xadd("q", {"n": 2})
        assert client.xlen("q") in {3, 4}  # that of the other process, and of one that had begun
