"""``quire record`` as a process, with signals; and how it refuses what it cannot do."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import quire
from cli_runs import Cli, run, started
from parameters import some
from quire.recording.addresses import parse_address, show_address


def port_of(process: subprocess.Popen[bytes]) -> int:
    assert process.stderr
    line = process.stderr.readline().decode()
    found = re.fullmatch(r"quire: listening: (?:udp|tcp)=127\.0\.0\.1:(\d+).*\n", line)
    assert found, line
    return int(found[1])


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[int, str]:
    process.send_signal(number)
    _, errors = process.communicate()
    return process.returncode, errors.decode()


def wait_for(path: Path, count: int) -> list[bytes]:
    with quire.open(path, read_only=True, create=False) as queue, queue.tailer() as tailer:
        return [bytes(next(tailer.follow()).data) for _ in range(count)]


def test_clients_of_a_port_are_recorded_until_sigterm(path: Path) -> None:
    with started("record", path, "--create", "--tcp", "0") as process:
        with socket.create_connection(("127.0.0.1", port_of(process))) as client:
            client.sendall(b"one\n\ntwo\n")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        code, errors = end(process, signal.SIGTERM)
    assert (code, errors) == (0, "quire: received=3 written=2 refused=1\n")
    assert wait_for(path, 2) == [b"one", b"two"]


def test_datagrams_are_recorded_until_sigint(path: Path) -> None:
    with started("record", path, "--create", "--udp", "0") as process:
        port = port_of(process)
        with socket.socket(type=socket.SOCK_DGRAM) as sender:
            sender.sendto(b"one", ("127.0.0.1", port))
            assert wait_for(path, 1) == [b"one"]
        code, errors = end(process, signal.SIGINT)
    assert (code, errors) == (130, "quire: received=1 written=1 dropped=0 refused=0\n")


def test_stdin_is_recorded_until_sigterm(path: Path) -> None:
    quire.open(path).close()
    with started("record", path, "--create", "--stdin", "--framing", "length") as process:
        assert process.stdin
        process.stdin.write(b"\0\0\0\3one\0\0\0\3tw")
        process.stdin.flush()
        assert wait_for(path, 1) == [b"one"]
        process.send_signal(signal.SIGTERM)
        assert process.stderr
        errors = process.stderr.read().decode()
        assert (process.wait(), errors) == (0, "quire: received=2 written=1 refused=1\n")


def test_stdin_is_recorded_to_its_end(path: Path) -> None:
    ran = run("record", path, "--create", "--stdin", stdin=b"one\r\ntwo")
    assert (ran.code, ran.raw, ran.err) == (0, b"", "quire: received=2 written=2 refused=0\n")
    assert wait_for(path, 2) == [b"one", b"two"]


def test_a_line_of_stdin_that_is_too_long_is_an_error(path: Path) -> None:
    ran = run("record", path, "--create", "--stdin", "--max-bytes", "3", stdin=b"one\nfour\n")
    assert ran.code == 1
    assert "a message is too long: length=4 limit=3 received=2 written=1" in ran.err
    assert wait_for(path, 1) == [b"one"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "give exactly one of --udp, --tcp, --websocket and --stdin"),
        (["--stdin", "--udp", "0"], "give exactly one of --udp, --tcp, --websocket and --stdin"),
        (["--stdin", "--max-clients", "3"], "--max-clients does not go with --stdin"),
        (["--udp", "0", "--framing", "length"], "--framing does not go with --udp"),
        (["--tcp", "host"], "'host' is not HOST:PORT"),
        (["--tcp", "1:65536"], "'1:65536' is not HOST:PORT"),
        (["--tcp", "0", "--max-bytes", "0"], "--max-bytes"),
    ],
)
def test_wrong_use_is_refused(cli: Cli, path: Path, options: list[str], reason: str) -> None:
    ran = cli("record", path, "--create", *options)
    assert ran.code == 2
    assert reason in ran.err
    assert not path.exists()


def test_a_port_in_use_is_named(cli: Cli, path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = cli("record", path, "--create", "--tcp", f"127.0.0.1:{port}")
    assert ran.code == 1
    assert f"cannot listen: address=127.0.0.1:{port} reason=" in ran.err


def test_a_queue_that_is_not_there_is_made_only_on_request(cli: Cli, path: Path) -> None:
    ran = cli("record", path, "--tcp", "0")
    assert ran.code == 1
    assert "--create makes a queue" in ran.err


@pytest.mark.parametrize("kind", some(["vanilla", "quick-queue"], keep=[0]))
def test_a_queue_of_an_older_format_is_recorded_to(path: Path, kind: str) -> None:
    made = "--create", "--queue-format", kind
    for options, sent in ((made, b"one\n\ntwo\n"), ((), b"three\n"), (made, b"four\n")):
        ran = run("record", path, "--stdin", *options, stdin=sent)
        assert (ran.code, ran.raw) == (0, b""), ran.err
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert [bytes(it.data) for it in tailer] == [b"one", b"two", b"three", b"four"]


def test_a_queue_of_another_format_is_refused(cli: Cli, path: Path) -> None:
    with quire.open(path, format="vanilla") as queue:
        queue.appender().write_text("hello")
    ran = cli("record", path, "--tcp", "0", "--queue-format", "quick-queue")
    assert ran.code in {1, 2}
    assert str(path) in ran.err
    ran = cli("record", path, "--tcp", "0", "--queue-format", "vanilla", "--roll-cycle", "DAILY")
    assert ran.code == 2
    assert "--roll-cycle does not go with --queue-format vanilla" in ran.err


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("9000", ("127.0.0.1", 9000), "127.0.0.1:9000"),
        (":9000", ("127.0.0.1", 9000), "127.0.0.1:9000"),
        ("10.0.0.1:0", ("10.0.0.1", 0), "10.0.0.1:0"),
        ("[::1]:9000", ("::1", 9000), "[::1]:9000"),
    ],
)
def test_addresses(text: str, address: tuple[str, int], shown: str) -> None:
    assert parse_address(text) == address
    assert show_address(address) == shown
