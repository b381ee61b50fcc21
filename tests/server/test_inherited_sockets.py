"""`quire serve` with sockets that were opened before it, as systemd hands them over."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from cli_runs import COMMAND, ENVIRONMENT
from quire.server.inherited import inherited_sockets
from served import connected

STARTS = """
import os, sys
for place, handle in enumerate(map(int, sys.argv[1].split(",")), 3):
    os.dup2(handle, place)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execvp(sys.argv[2], sys.argv[2:])
"""


def started(
    root: Path, sockets: list[socket.socket], names: str, *options: str
) -> subprocess.Popen[bytes]:
    root.mkdir(exist_ok=True)
    handles = [it.fileno() for it in sockets]
    # Numbers that are free here, and higher than those that the new process gives them.
    high = [fcntl.fcntl(it, fcntl.F_DUPFD_CLOEXEC, 100) for it in handles]
    command = [*COMMAND, "serve", str(root), *options]
    environment = ENVIRONMENT | {"LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": names}
    try:
        return subprocess.Popen(
            [sys.executable, "-c", STARTS, ",".join(map(str, high)), *command],
            env=environment,
            pass_fds=high,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    finally:
        for handle in high:
            os.close(handle)


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_clients_that_came_before_it_was_started_are_answered(tmp_path: Path) -> None:
    with listening() as first, listening() as second:
        port, web = first.getsockname()[1], second.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=60) as early:
            early.sendall(b"*1\r\n$4\r\nPING\r\n")
            process = started(tmp_path / "queues", [second, first], "web:listen")
            with process:
                assert early.recv(99) == b"+PONG\r\n"
                assert process.stdout is not None
                lines = [process.stdout.readline().decode() for _ in range(2)]
                assert lines == [f"listening 127.0.0.1:{it}\n" for it in (port, web)]
                with connected(port) as client:
                    client.xadd("orders", {"n": "1"})
                with urllib.request.urlopen(f"http://127.0.0.1:{web}/") as answer:
                    assert b"orders" in answer.read()
                process.send_signal(signal.SIGTERM)
                _, errors = process.communicate(timeout=60)
                assert (process.returncode, errors) == (0, b"")
        with socket.create_connection(("127.0.0.1", port), timeout=60):
            pass  # the socket is systemd's, and takes clients for the next one


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        ("flight", (), "gRPC cannot use an inherited socket"),
        ("listen:listen", (), "each once"),
        ("a:b", (), "FileDescriptorName=listen"),
        ("", ("--listen", "127.0.0.1:0"), "omit --listen"),
    ],
)
def test_what_is_refused(tmp_path: Path, names: str, options: tuple[str, ...], said: str) -> None:
    with listening() as first, listening() as second:
        sockets = [first, second][: names.count(":") + 1]
        with started(tmp_path / "queues", sockets, names, *options) as process:
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said in errors.decode()


def test_sockets_of_another_process_are_left_alone() -> None:
    given = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "listen"}
    assert inherited_sockets(given) == {}
    assert given == {}, "no process that is started takes them for its own"
