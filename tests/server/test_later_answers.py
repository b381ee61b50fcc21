"""Commands that a thread carries out: each is answered once, in its turn."""

from __future__ import annotations

import socket
from pathlib import Path

import quire
from served import WAIT_S, command, connected, serving


def test_a_command_that_comes_while_another_is_carried_out_waits_for_its_turn(
    tmp_path: Path,
) -> None:
    root = tmp_path / "queues"
    with (
        serving(root) as (port, _),
        connected(port) as other,
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as raw,
    ):
        other.xadd("orders", {"n": 0})
        with quire.open(root / "orders") as home, home.appender() as appender:
            with appender.writing_document() as document:  # holds the write lock
                document.write("n", 1)
                raw.sendall(command("XADD", "orders", "*", "n", "2"))
                other.ping()  # the server has taken what came before
                raw.sendall(command("PING"))
                other.ping()
            raw.sendall(command("QUIT"))
            found = b""
            while more := raw.recv(1 << 16):
                found += more
            last = home.last_index
    assert found == b"$16\r\n%d-0\r\n+PONG\r\n+OK\r\n" % (last or 0)
