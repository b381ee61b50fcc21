"""Queues divided among servers: clients are sent to the one that has a queue, or told where."""

from __future__ import annotations

import json
import pickle
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import trustme
from pyarrow import flight
from redis import RedisCluster
from redis.exceptions import NoPermissionError, RedisClusterException, ResponseError

import quire
from browsing import Visit
from cli_runs import Cli, run_here, started
from flown import client_of, flying, path_of
from parameters import some
from paths import ROOT
from ports import free_port
from quire.errors import MovedError, RefusedError
from quire.remote import RemoteQueue
from quire.remote.address import parse
from quire.remote.connection import server_at
from quire.server.answers import encoded
from served import command, connected, serving, talk

ELSEWHERE = "192.0.2.1"  # of documentation: nobody is there
SECRET = "x" * 43


@dataclass
class Pair:
    """A server, and the one that has its `orders/*`."""

    port: int
    owner: int
    root: Path

    def url(self, topic: str) -> str:
        return f"quire://127.0.0.1:{self.port}/{topic}"

    def owned(self, topic: str) -> str:
        return f"quire://127.0.0.1:{self.owner}/{topic}"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with (
        serving(tmp_path / "owner") as (owner, _),
        serving(tmp_path / "queues", "--peer", f"orders/*=127.0.0.1:{owner}") as (port, _),
    ):
        yield Pair(port, owner, tmp_path)


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(capfdbinary)


def opened(address: str, **options: Any) -> RemoteQueue:  # noqa: ANN401
    return cast("RemoteQueue", quire.open(address, **options))


def test_handles_go_to_the_server_that_has_the_queue(pair: Pair) -> None:
    with opened(pair.url("orders/eur")) as queue:
        assert queue.path == pair.owned("orders/eur")
        index = queue.appender().write_text("hello")
        with queue.tailer("risk") as tailer:
            assert tailer.read_text() == "hello"
        with queue.group("billing").consumer("c1") as consumer:
            assert [it.ack() for it in consumer.read_many(5)] == [True]
        again = pickle.loads(pickle.dumps(queue))
        assert (again.path, again.last_index) == (queue.path, index)
        again.close()
    with opened(pair.url("prices")) as own:
        assert own.path == pair.url("prices")
        own.appender().write_text("own")
    found = {it: [*(pair.root / it).glob("**/*.cq4")] for it in ("owner", "queues")}
    assert [it.parts[-3:-1] for it in found["owner"]] == [("orders", "eur")]
    assert [it.parent.name for it in found["queues"]] == ["prices"]


def test_clients_of_redis_are_told_where(pair: Pair) -> None:
    said = b"-MOVED 0 127.0.0.1:%d\r\n" % pair.owner
    for words in (
        ("XADD", "orders/eur", "*", "n", "1"),
        ("XLEN", "orders/eur"),
        ("TYPE", "orders/eur"),
        ("XREAD", "STREAMS", "orders/eur", "0"),
        ("XGROUP", "CREATE", "orders/eur", "g", "0", "MKSTREAM"),
        ("QUIRE.OPEN", "orders/eur", "CREATE"),
        ("QUIRE.APPEND", "orders/eur", "CREATE", "VALUES", "x"),
    ):
        assert talk(pair.port, command(*words)).removesuffix(b"+OK\r\n") == said
    many = command("XADD", "orders/eur", "*", "n", "1") * 3
    assert talk(pair.port, many).removesuffix(b"+OK\r\n") == 3 * said
    assert not [*(pair.root / "queues").glob("orders")]


def test_clients_of_a_cluster_are_refused_with_the_reason(pair: Pair) -> None:
    """Slots cannot say which queues a server has: a client that trusts them makes queues twice."""
    with connected(pair.port) as client:
        for words in ("SLOTS", "SHARDS", "NODES", "INFO", "MYID", "KEYSLOT a", "NONSENSE"):
            with pytest.raises(ResponseError, match=r"cluster support disabled: .* patterns"):
                client.execute_command("CLUSTER", *words.split())
    with pytest.raises(RedisClusterException):
        RedisCluster(host="127.0.0.1", port=pair.port)
    with RedisCluster(host="127.0.0.1", port=pair.owner) as client:
        client.xadd("orders/eur", {"n": "1"})
        assert client.xlen("orders/eur") == 1


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="needs redis-cli, see .ci/needs")
def test_the_command_line_of_redis_goes_there(pair: Pair) -> None:
    command = ["redis-cli", "-c", "-p", str(pair.port)]
    for topic, port in (("orders/eur", pair.owner), ("prices", pair.port)):
        subprocess.run([*command, "XADD", topic, "*", "n", "1"], check=True, capture_output=True)
        with connected(port) as client:
            assert client.xlen(topic) == 1


def test_the_vectors_of_the_page(tmp_path: Path) -> None:
    """The bytes in docs/remote.md."""
    peers = ("--peer", "orders/*=10.0.0.2:7000", "--peer", "prices/*=10.0.0.3:7000")
    page = (ROOT / "docs" / "remote.md").read_text().partition("<!-- vectors of peers -->")[2]
    lines = [it for it in page.partition("## ")[0].splitlines() if it.startswith(("> *", "< "))]
    assert len(lines) == 8
    asked, answered = (
        [it[2:].encode().decode("unicode_escape").encode() for it in lines[place::2]]
        for place in (0, 1)
    )
    with serving(tmp_path / "queues", *peers) as (port, _):
        assert [talk(port, it).removesuffix(b"+OK\r\n") for it in asked] == answered  # its QUIT


def test_one_command_goes_to_one_server(pair: Pair) -> None:
    with connected(pair.port) as client:
        client.xadd("own", {"n": 1})
        client.xgroup_create("own", "g", 0)
        places: dict[Any, Any] = {"own": 0, "orders/eur": 0}
        waiting: dict[Any, Any] = {"own": ">", "orders/eur": ">"}
        asks: list[Callable[[], Any]] = [
            lambda: client.exists("own", "orders/eur"),
            lambda: client.xread(places, block=60_000),
            lambda: client.xreadgroup("g", "c", waiting, block=60_000),
        ]
        for ask in asks:
            with pytest.raises(ResponseError, match=rf"own=here orders/eur=.*:{pair.owner}"):
                ask()
        assert client.exists("own") == 1


def test_listings_name_what_is_elsewhere(pair: Pair, cli: Cli) -> None:
    with connected(pair.port) as client:
        client.xadd("own", {"n": 1})
        assert client.scan()[1] == [b"own"]
        peers = client.execute_command("QUIRE.PEERS")
        assert peers == [[b"orders/*", f"quire://127.0.0.1:{pair.owner}".encode()]]
        (shown,) = [
            value for name, value in client.info("peers").items() if name.startswith("peer")
        ]
        assert shown == {"pattern": "orders/*", "address": f"127.0.0.1:{pair.owner}"}
    refused = cli("read", pair.url("orders"))
    assert refused.code == 1
    assert f"orders/* at quire://127.0.0.1:{pair.owner}" in refused.err


def test_verbs_go_there_too(pair: Pair, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    cli.ok("write", pair.url("orders/eur"), tmp_path / "lines.jsonl", "--create")
    cli.ok("write", pair.url("own"), tmp_path / "lines.jsonl", "--create")
    for verb, *more in (
        ("read", "--format", "jsonl"),
        ("stat", "--format", "jsonl"),
        ("tailers", "--format", "jsonl"),
        ("groups", "--format", "jsonl"),
    ):
        there = cli.ok(verb, pair.url("orders/eur"), *more).out
        assert there == cli.ok(verb, pair.owned("orders/eur"), *more).out
    quick = ("--once", "--interval", "0.1", "--format", "jsonl")
    rows = cli.ok("top", pair.url("orders/eur"), pair.url("own"), *quick).lines
    assert [json.loads(it)["state"] for it in rows] == ["ok", "ok"]


def test_a_queue_below_the_directory_that_a_peer_has_is_not_served(tmp_path: Path) -> None:
    with quire.open(tmp_path / "queues" / "orders" / "old") as queue:
        queue.appender().write_text("stays")
    peer = f"orders/*=127.0.0.1:{free_port()}"
    with serving(tmp_path / "queues", "--peer", peer) as (port, process):
        with connected(port) as client:
            assert client.scan()[1] == []
            with pytest.raises(ResponseError):
                client.xlen("orders/old")
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert b"count=1 first=orders/old" in said


def test_a_queue_that_moves_while_it_is_open(tmp_path: Path) -> None:
    port, peer = free_port(), ("--peer", f"orders/*=127.0.0.1:{free_port()}")
    with serving(tmp_path / "queues", "--listen", f"127.0.0.1:{port}"):
        queue = opened(f"quire://127.0.0.1:{port}/orders/eur")
        appender, tailer = queue.appender(), queue.tailer()
        appender.write_text("before")
        assert tailer.read_text() == "before"
    with closing(queue), serving(tmp_path / "queues", "--listen", f"127.0.0.1:{port}", *peer):
        for call in (
            lambda: queue.last_index,
            lambda: appender.write_text("after"),
            tailer.read_text,
        ):
            with pytest.raises(MovedError, match="served elsewhere"):
                call()


@pytest.mark.parametrize(
    ("peer", "problem"),
    [
        ("orders", "invalid pattern"),
        ("=127.0.0.1:7000", "invalid pattern"),
        ("or ders=127.0.0.1:7000", "invalid pattern"),
        ("orders/\n*=127.0.0.1:7000", "invalid pattern"),
        ("orders/=127.0.0.1:7000", "no queue's name can match"),
        ("/orders=127.0.0.1:7000", "no queue's name can match"),
        ("orders/*=", "invalid address"),
        ("orders/*=7000", "invalid address"),
        ("orders/*=127.0.0.1:0", "invalid address"),
        ("orders/*=127.0.0.1:65536", "invalid address"),
        ("orders/*=127.0.0.1:x", "invalid address"),
        ("orders/*=a/b:7000", "invalid address"),
        ("orders/*=0.0.0.0:7000", "cannot connect to"),
    ],
)
def test_an_option_that_is_no_peer(cli: Cli, tmp_path: Path, peer: str, problem: str) -> None:
    ran = cli("serve", tmp_path, "--listen", "127.0.0.1:0", "--peer", peer)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err
    assert "PATTERN=HOST:PORT" in ran.err


def test_a_peer_at_an_address_of_ipv6(tmp_path: Path) -> None:
    with serving(tmp_path / "queues", "--peer", "a=b/*=[::1]:7000") as (port, _):
        said = talk(port, command("XLEN", "a=b/c")).removesuffix(b"+OK\r\n")
        assert said == b"-MOVED 0 ::1:7000\r\n"
        with pytest.raises(quire.errors.ServerLostError, match=r"quire://\[::1\]:7000/a%3Db/c"):
            quire.open(f"quire://127.0.0.1:{port}/a=b/c")


def test_a_pattern_that_is_given_twice(cli: Cli, tmp_path: Path) -> None:
    peers = [it for port in (1, 2) for it in ("--peer", f"orders/*=127.0.0.1:{port}")]
    ran = cli("serve", tmp_path, "--listen", "127.0.0.1:0", *peers)
    assert ran.code == 2
    assert "given twice: pattern=orders/*" in ran.err


@pytest.mark.parametrize(
    ("listen", "named"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "localhost"),
        ("127.0.0.1", "127.1"),
        ("127.0.0.1", "0"),
        ("127.0.0.1", "[::ffff:127.0.0.1]"),
        ("localhost", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),  # noqa: S104
        ("", "127.0.0.1"),
        ("[::1]", "[0:0:0:0:0:0:0:1]"),
    ],
)
@pytest.mark.parametrize("option", ["--listen", "--web"])
def test_a_peer_that_is_the_server_itself(
    tmp_path: Path, cli: Cli, listen: str, named: str, option: str
) -> None:
    port = free_port()
    own = (option, f"{listen}:{port}" if listen else f"{port}")
    tokens = ("--insecure", "--tokens", tmp_path / "none")
    with socket.create_server(("127.0.0.1", port)):  # listening would fail, and with another code
        ran = cli("serve", tmp_path, *tokens, *own, "--peer", f"orders/*={named}:{port}")
    assert (ran.code, ran.out) == (2, "")
    assert f"a peer is this server: pattern=orders/* address={named}:{port}" in ran.err
    assert "(see: quire serve --help)" in ran.err


@pytest.mark.parametrize("named", ["127.0.0.2", "192.0.2.1", "no-such-host.invalid"])
def test_a_peer_elsewhere_with_the_same_port(tmp_path: Path, named: str) -> None:
    port = free_port()
    own = ("--listen", f"127.0.0.1:{port}", "--peer", f"orders/*={named}:{port}")
    with serving(tmp_path / "queues", *own) as (_, process):
        assert talk(port, command("XLEN", "orders/x")).startswith(f"-MOVED 0 {named}:".encode())
        assert process.poll() is None


def test_servers_that_send_clients_to_one_another(tmp_path: Path, cli: Cli) -> None:
    first, second = free_port(), free_port()

    def other(port: int, peer: int) -> Any:  # noqa: ANN401 - a context manager
        at = ("--listen", f"127.0.0.1:{port}", "--peer", f"orders/*=127.0.0.1:{peer}")
        return serving(tmp_path / str(port), *at)

    with other(first, second), other(second, first):
        urls = [f"quire://127.0.0.1:{it}/orders/eur" for it in (first, second, first)]
        with pytest.raises(MovedError, match="in circles") as raised:
            quire.open(urls[0])
        assert str(raised.value).endswith(f"way={' '.join(urls)}")
        assert cli("read", urls[0]).err.count(f":{second}/orders/eur") == 1


@pytest.mark.check
def test_a_chain_of_servers(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(6)]
    with serving(tmp_path / "last", "--listen", f"127.0.0.1:{ports[-1]}"):
        running = [
            serving(
                *(tmp_path / str(port), "--listen", f"127.0.0.1:{port}"),
                *("--peer", f"orders=127.0.0.1:{following}"),
            )
            for port, following in pairwise(ports)
        ]
        for it in running:
            it.__enter__()
        try:
            with opened(f"quire://127.0.0.1:{ports[1]}/orders") as queue:
                assert queue.path.endswith(f":{ports[-1]}/orders")
            with pytest.raises(MovedError, match="too many redirects"):
                quire.open(f"quire://127.0.0.1:{ports[0]}/orders")
        finally:
            for it in running:
                it.__exit__(None, None, None)


@pytest.mark.check
def test_the_owner_wants_another_token(tmp_path: Path) -> None:
    made: list[str] = []
    for name in ("owner", "first"):
        rights = [it for right in ("read", "append", "create") for it in (f"--{right}", "*")]
        ran = run_here("token", "add", "all", "--tokens", tmp_path / name, *rights)
        made.append(ran.out.strip())
    with (
        serving(tmp_path / "b", "--tokens", tmp_path / "owner") as (owner, _),
        serving(
            *(tmp_path / "a", "--tokens", tmp_path / "first"),
            *("--peer", f"orders=127.0.0.1:{owner}"),
        ) as (port, _),
    ):
        url = f"quire://127.0.0.1:{port}/orders"
        with pytest.raises(RefusedError, match=f"WRONGPASS.*server=quire://127.0.0.1:{owner}"):
            quire.open(url, token=made[1])
        with pytest.raises(RefusedError, match="WRONGPASS"):
            quire.open(url, token=made[0])


def test_a_token_that_may_not_read_is_not_told_where(tmp_path: Path) -> None:
    ran = run_here("token", "add", "x", "--tokens", tmp_path / "tokens", "--read", "prices/*")
    tokens = ("--tokens", tmp_path / "tokens", "--peer", "orders=127.0.0.1:1")
    with (
        serving(tmp_path / "queues", *tokens) as (port, _),
        connected(port, password=ran.out.strip()) as client,
    ):
        for ask in (("XLEN", "orders"), ("QUIRE.OPEN", "orders", "CREATE")):
            with pytest.raises(NoPermissionError):
                client.execute_command(*ask)


@pytest.mark.parametrize("is_trusted", some([True, False], keep=[0]))
def test_the_owner_has_a_certificate_of_its_own(tmp_path: Path, *, is_trusted: bool) -> None:
    """It is checked before the token is sent."""
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    def certified(name: str, issuer: trustme.CA) -> tuple[object, ...]:
        made = issuer.issue_cert("127.0.0.1")
        made.private_key_and_cert_chain_pem.write_to_path(tmp_path / name)
        return ("--certificate", tmp_path / name, "--key", tmp_path / name)

    rights = [it for right in ("read", "append", "create") for it in (f"--{right}", "*")]
    token = run_here("token", "add", "all", "--tokens", tmp_path / "tokens", *rights).out.strip()
    tokens = ("--tokens", tmp_path / "tokens")
    owned = certified("b.pem", authority if is_trusted else other)
    own = certified("a.pem", authority)
    with (
        serving(tmp_path / "b", *tokens, *owned, "--audit", tmp_path / "audit") as (owner, _),
        serving(tmp_path / "a", *tokens, *own, "--peer", f"orders=127.0.0.1:{owner}") as (port, _),
    ):
        url, given = f"quire://127.0.0.1:{port}/orders", {"token": token, "timeout_s": 10}
        if is_trusted:
            with opened(url, tls=tmp_path / "ca.pem", **given) as queue:
                assert queue.path == f"quire://127.0.0.1:{owner}/orders"
        else:
            with pytest.raises(ssl.SSLCertVerificationError):
                opened(url, tls=tmp_path / "ca.pem", **given)
    with quire.open(tmp_path / "audit", read_only=True) as audit:
        assert bool(audit.entry_count) is is_trusted


# Where a client may be sent.


@pytest.mark.parametrize(
    ("own", "other", "trusts", "may"),
    [
        ("10.0.0.1", "10.0.0.1", "", True),
        ("127.0.0.1", "localhost", "", True),
        ("127.0.0.1", "10.0.0.1", "", False),
        ("10.0.0.1", "127.0.0.1", "", False),
        ("10.0.0.1", "10.0.0.2", "", False),
        ("10.0.0.1", "10.0.0.2", "system", False),
        ("10.0.0.1", "10.0.0.2", "context", False),
        ("10.0.0.1", "10.0.0.2", "authority", True),
    ],
)
def test_where_a_server_may_send_a_client(
    tmp_path: Path, own: str, other: str, trusts: str, *, may: bool
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    tls: Any = {"system": True, "context": ssl.create_default_context()}.get(trusts)
    if trusts == "authority":
        tls = tmp_path / "ca.pem"
    server = server_at(parse(f"quire://{own}:7000/x"), {"tls": tls})
    assert server.leads_to(other) is may


@contextmanager
def hostile(answers: Callable[[list[bytes]], bytes]) -> Generator[tuple[int, list[list[bytes]]]]:
    """A server that answers each command as it likes; its port, and what it was asked."""
    import hiredis

    asked: list[list[bytes]] = []

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            reader = hiredis.Reader()
            with client:
                while data := client.recv(1 << 16):
                    reader.feed(data)
                    while (words := reader.gets()) is not False:
                        asked.append(cast("list[bytes]", words))
                        client.sendall(answers(cast("list[bytes]", words)))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1], asked
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (f"MOVED 0 {ELSEWHERE}:7000", f"server=quire://{ELSEWHERE}:7000/x .open it there: "),
        ("MOVED 0 ::ffff:7000", "server=quire://.::ffff.:7000/x .open it there: "),
        ("MOVED 0 127.0.0.1:0", "MOVED to an invalid address"),
        ("MOVED 0 127.0.0.1:99999", "MOVED to an invalid address"),
        ("MOVED 0 :7000", "MOVED to an invalid address"),
        ("MOVED 0 a b:7000", "MOVED to an invalid address"),
        ("MOVED 0 user@127.0.0.1:7000", "MOVED to an invalid address"),
        ("MOVED", "MOVED to an invalid address"),
    ],
)
def test_a_server_that_sends_its_client_away(said: str, problem: str) -> None:
    def answer(words: list[bytes]) -> bytes:
        return b"%0\r\n" if words[0] == b"HELLO" else b"-" + said.encode() + b"\r\n"

    with hostile(answer) as (port, _), pytest.raises(RefusedError, match=problem):
        quire.open(f"quire://127.0.0.1:{port}/x", token=SECRET, timeout_s=5)


def test_a_server_that_names_itself_is_asked_once() -> None:
    here: list[int] = []

    def answer(words: list[bytes]) -> bytes:
        return b"%0\r\n" if words[0] == b"HELLO" else b"-MOVED 0 127.0.0.1:%d\r\n" % here[0]

    with hostile(answer) as (port, asked):
        here.append(port)
        with pytest.raises(MovedError, match="in circles"):
            quire.open(f"quire://127.0.0.1:{port}/x")
    assert [it[0] for it in asked] == [b"HELLO", b"QUIRE.OPEN"]


@pytest.mark.parametrize("token", [None, SECRET])
def test_a_token_goes_to_no_other_machine_that_a_greeting_names(token: str | None) -> None:
    facts: dict[str, Any] = {"format": b"chronicle", "wire": 1, "writable": 0, "first": None}

    def answer(words: list[bytes]) -> bytes:
        greeting = {"flight": f"{ELSEWHERE}:7001".encode()}
        return encoded(greeting if words[0] == b"HELLO" else facts, 3)

    with (
        hostile(answer) as (port, _),
        opened(f"quire://127.0.0.1:{port}/x", token=token, read_only=True) as queue,
    ):
        place = queue._flight()  # pyright: ignore[reportPrivateUsage]
        assert (place is None) is (token is not None)


# Other ways in.


def test_arrow_flight(tmp_path: Path) -> None:
    with flying(tmp_path / "owner", listen=True) as ((owner, _), _process):
        with opened(f"quire://{owner}/orders/eur") as queue:
            queue.appender().write_map({"n": 1})
        peer = ("--peer", f"orders/*={owner}")
        with flying(tmp_path / "queues", *peer, listen=True) as ((at, flies), _other):
            with client_of(flies) as client:
                assert [*client.list_flights()] == []
                with pytest.raises(flight.FlightServerError) as raised:
                    client.get_flight_info(path_of("orders/eur"))
            said = f"the queue is served elsewhere: name=orders/eur server=quire://{owner}"
            assert said in str(raised.value)
            assert raised.value.extra_info == b"MovedError"
            with opened(f"quire://{at}/orders/eur", read_only=True) as queue:
                assert queue.to_arrow({"n": "int64"}).column("n").to_pylist() == [1]


def test_the_page(tmp_path: Path) -> None:
    peer = ("--peer", "orders/*=127.0.0.1:7123")
    (tmp_path / "queues").mkdir()
    with started("serve", tmp_path / "queues", "--web", "127.0.0.1:0", *peer) as process:
        assert process.stdout is not None
        visit = Visit(int(process.stdout.readline().decode().rpartition(":")[2]))
        assert "On other servers Queues Server orders/* quire://127.0.0.1:7123" in (
            visit.ask("/").words
        )
        there = visit.ask("/queue/orders/eur")
        assert there.status == 400
        assert there.alert == (
            "the queue is served elsewhere: name=orders/eur server=quire://127.0.0.1:7123"
            " (ask there)"
        )
