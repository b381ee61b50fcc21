"""What a server answers to bytes that are no requests, and to names that would lead elsewhere."""

from __future__ import annotations

import fcntl
import signal
import socket
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

import quire
from served import command, connected, serving, talk

_BULK = b"$4\r\nPING\r\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served") / "queues"


@pytest.fixture(scope="module")
def port(root: Path) -> Generator[int]:
    with serving(root) as (port, _):
        yield port


@pytest.mark.parametrize(
    "data",
    [
        b"PING\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"+PING\r\n",
        b"-ERR x\r\n",
        b":1\r\n",
        _BULK,
        b"$-5\r\n",
        b"*-7\r\n",
        b"*x\r\n",
        b"*1\r\n:5\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n*1\r\n" + _BULK,
        b"*2\r\n" + _BULK + b"*2000000000\r\n",
        b"*2000000000\r\n",
        b"*99999999999999999999999\r\n",
        b"*1\r\n$2000000000\r\n",
        b"*1\r\n$99999999999999999999\r\n",
        b"*1\r\n$-3\r\n",
        b"%1\r\n" + _BULK + _BULK,
        b"~1\r\n" + _BULK,
        b">1\r\n" + _BULK,
        b"|1\r\n" + _BULK + _BULK + b"*1\r\n" + _BULK,
        b"#t\r\n",
        b",1.5\r\n",
        b"\x00\xff\xfe",
        b"*1\r\n" * 20,
        b"*9\r\n" * 20,
        b"*1\r\n?4\r\nPING\r\n",
    ],
)
def test_bytes_that_are_no_request_close_their_connection_alone(port: int, data: bytes) -> None:
    with connected(port) as other:
        assert other.ping()
        found = talk(port, command("PING") + data, ends=False)
        assert found.startswith(b"+PONG\r\n-ERR Protocol error: "), found
        assert found.count(b"\r\n") == 2
        assert other.ping()


def test_a_request_in_pieces_is_one_request(port: int) -> None:
    data = command("ECHO", "*100\r\n$2000000000\r\n%3") + command("ECHO", b"x" * 70_000)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        for place in range(60):
            raw.sendall(data[place : place + 1])
        raw.sendall(data[60:])
        raw.sendall(command("QUIT"))
        found = b""
        while more := raw.recv(1 << 16):
            found += more
    assert found == (
        b"$21\r\n*100\r\n$2000000000\r\n%3\r\n" + b"$70000\r\n" + b"x" * 70_000 + b"\r\n+OK\r\n"
    )


def test_half_a_command_is_never_carried_out(port: int) -> None:
    whole = command("XADD", "half", "*", "n", "1")
    for length in range(1, len(whole)):
        assert talk(port, whole[:length]) == b""
    with connected(port) as client:
        assert client.xlen("half") == 0


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "/",
            "/etc",
            "..",
            "../out",
            "a/../../out",
            "a//b",
            "a/",
            ".hidden",
            "a/.quire-server",
        ),
        *("a\\b", "a\x00b", "a\nb", "a\x1b[2J", "x" * 300, "/".join("a" * 40), b"\xff\xfe"),
        *("\u202ea", "."),
    ],
)
def test_names_that_lead_elsewhere_are_refused(port: int, root: Path, name: str | bytes) -> None:
    with connected(port) as client:
        for words in (["XADD", name, "*", "n", "1"], ["XRANGE", name, "-", "+"], ["TYPE", name]):
            with pytest.raises(redis.ResponseError, match="invalid name of a queue"):
                client.execute_command(*words)
    assert {it.name for it in root.parent.iterdir()} == {"queues"}


def test_no_link_is_followed(port: int, root: Path, tmp_path: Path) -> None:
    with quire.open(tmp_path / "outside" / "orders") as queue:
        queue.appender().write_text("secret")
    (root / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    (root / "orders-linked").symlink_to(tmp_path / "outside" / "orders", target_is_directory=True)
    with connected(port) as client:
        for name in ("linked/orders", "orders-linked"):
            assert client.xlen(name) == 0
            with pytest.raises(redis.ResponseError):
                client.xadd(name, {"n": "1"})
        assert not [it for it in client.scan_iter() if b"linked" in it]
    assert sorted(it.name for it in (tmp_path / "outside").iterdir()) == ["orders"]


def test_a_part_of_a_queue_and_a_directory_of_queues_are_no_queues(port: int, root: Path) -> None:
    with connected(port) as client:
        client.xadd("tree/leaf", {"n": "1"})
        with pytest.raises(redis.ResponseError, match="not a queue, but a directory"):
            client.xadd("tree", {"n": "1"})
        with pytest.raises(redis.ResponseError):
            client.xadd("tree/leaf/below", {"n": "1"})
    assert not (root / "tree" / "leaf" / "below").exists()


def test_a_queue_deleted_underneath_is_gone_and_others_stay(port: int, root: Path) -> None:
    import shutil

    with connected(port) as client:
        client.xadd("other", {"n": "1"})
        client.xadd("gone", {"n": "1"})
        shutil.rmtree(root / "gone")
        while client.exists("gone"):  # it is looked for several times a second
            pass
        assert client.xadd("gone", {"n": "2"}, nomkstream=True) is None
        client.xadd("other", {"n": "2"})
        assert client.xlen("other") == 2
        client.xadd("gone", {"n": "3"})
        assert client.xlen("gone") == 1


def test_a_damaged_queue_is_an_error_to_its_clients_alone(port: int, root: Path) -> None:
    with connected(port) as client:
        client.xadd("sound", {"n": "1"})
        with quire.open(root / "damaged") as queue:
            queue.appender().write_text("hello")
            file = Path(queue.current_file)
        with file.open("r+b") as damaged:
            damaged.write(b"\xff" * 4096)
        assert client.xrange("damaged") == []  # what can be read
        with pytest.raises(redis.ResponseError):
            client.xadd("damaged", {"n": "1"})
        assert client.xlen("sound") == 1


@pytest.mark.check
def test_a_thousand_connections(port: int) -> None:
    with ExitStack() as all_of_them:
        opened = [
            all_of_them.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(1000)
        ]
        block = command("XREAD", "BLOCK", "0", "STREAMS", "crowd", "$")
        for each in opened:
            each.sendall(command("PING") + block)
        for each in opened:
            assert each.recv(7, socket.MSG_WAITALL) == b"+PONG\r\n"
        with connected(port) as client:
            while client.info("clients")["blocked_clients"] < len(opened):
                pass
            first = client.xadd("crowd", {"n": "1"})
        for each in opened:
            assert first in each.recv(1 << 16)


def test_connections_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "queues", "--max-connections", "2") as (port, _), ExitStack() as two:
        for _ in range(2):
            two.enter_context(connected(port, single_connection_client=True)).ping()
        assert talk(port, b"", ends=False).startswith(b"-ERR max number of clients reached")


def test_a_slow_reader_holds_back_itself_alone(port: int) -> None:
    with connected(port) as client:
        pipe = client.pipeline(transaction=False)
        for _ in range(200):
            pipe.xadd("large", {"n": b"x" * 50_000})
        pipe.execute()
        asks = command("XRANGE", "large", "-", "+") * 50
        with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
            slow.sendall(asks)
            assert client.ping()
            assert client.xlen("large") == 200
            size = 0
            while size < 50 * 200 * 50_000:
                more = slow.recv(1 << 20)
                assert more
                size += len(more)


def test_sigterm_answers_what_was_accepted(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with serving(root) as (port, process):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(command("XADD", "orders", "*", "n", "1") * 2000)
            first = raw.recv(1)
            process.send_signal(signal.SIGTERM)
            found = first
            while more := raw.recv(1 << 16):
                found += more
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b""), errors
    answered = found.count(b"-0\r\n")
    with quire.open(root / "orders", read_only=True) as queue:
        assert queue.entry_count == answered > 0


@pytest.mark.slow
def test_a_server_that_is_killed_has_what_it_answered(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    with (
        serving(root) as (port, process),
        socket.create_connection(("127.0.0.1", port), timeout=60) as raw,
    ):
        raw.sendall(b"".join(command("XADD", "orders", "*", "n", f"{n}") for n in range(1000)))
        found = raw.recv(64)
        process.kill()
        try:
            while more := raw.recv(1 << 16):
                found += more
        except ConnectionResetError:
            pass
    answered = found.count(b"-0\r\n")
    with quire.open(root / "orders") as queue, queue.tailer() as tailer:
        numbers = [int(it.to_dict()["n"]) for it in tailer]
    assert numbers == [*range(len(numbers))]
    assert len(numbers) >= answered
    with serving(root) as (port, _), connected(port) as client:
        client.xadd("orders", {"n": "last"})
        assert client.xlen("orders") == len(numbers) + 1


@pytest.mark.check
def test_a_log_that_nobody_reads_holds_up_nobody(tmp_path: Path) -> None:
    refused = 1200
    with serving(tmp_path / "queues") as (port, process):
        assert process.stderr is not None
        fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        for _ in range(refused):
            assert b"Protocol error" in talk(port, b"GET / HTTP/1.1\r\n\r\n")
        with connected(port) as client:
            assert client.ping()
        process.send_signal(signal.SIGTERM)
        lines = process.stderr.read().decode().splitlines()
        assert process.wait(60) == 0
    kept = [it for it in lines if "disconnected a client" in it]
    (dropped,) = [it for it in lines if "log lines were dropped" in it]
    assert len(kept) + int(dropped.rpartition("=")[2]) == refused
