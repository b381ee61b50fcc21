"""Certificates of clients in place of tokens, and whose they are in the audit log."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import redis
import trustme
from pyarrow import flight
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry

import quire
from browsing import Visit
from cli_runs import started
from flown import WAIT_S, client_of, ticket
from quire.errors import OptionsError
from quire.server import Certificates, Server, TokenFile, tls_context
from quire.server.server_tls import name_in
from served import command, connected, serving

NAME = "writer of orders"


class Certified:
    """An authority's certificates for a server and a client, as files and options."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.authority = folder / "ca.pem"
        authority.cert_pem.write_to_path(self.authority)
        for name, issued in (
            ("node", authority.issue_cert("127.0.0.1", "localhost")),
            ("client", authority.issue_cert("client.example", common_name=NAME)),
        ):
            issued.private_key_pem.write_to_path(folder / f"{name}.key")
            (folder / f"{name}.pem").write_bytes(
                b"".join(it.bytes() for it in issued.cert_chain_pems)
            )
        self.node, self.client = (
            (folder / f"{it}.pem", folder / f"{it}.key") for it in ("node", "client")
        )
        self.options: list[str | Path] = ["--certificate", self.node[0], "--key", self.node[1]]

    def redis_options(self) -> dict[str, Any]:
        certificate, key = map(str, self.client)
        return {
            "ssl": True,
            "host": "127.0.0.1",
            "ssl_ca_certs": str(self.authority),
            "ssl_certfile": certificate,
            "ssl_keyfile": key,
        }

    def browser(self, *, shows: bool) -> ssl.SSLContext:
        found = ssl.create_default_context(cafile=str(self.authority))
        if shows:
            found.load_cert_chain(*self.client)
        return found


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return Certified(tmp_path_factory.mktemp("certified"))


def rows_of(audit: Path) -> list[tuple[str, str, str]]:
    with quire.open(audit, read_only=True) as queue, queue.tailer() as tailer:
        rows = [it.to_dict() for it in tailer]
    return [(it["what"], it["who"], it["about"]) for it in rows]


def refused(port: int, options: dict[str, Any], reason: str | None = None) -> None:
    """Check that a client is not admitted, at its first attempt."""
    with (
        redis.Redis(port=port, retry=Retry(NoBackoff(), 0), **options) as client,
        pytest.raises(redis.ConnectionError, match=reason),
    ):
        client.ping()


@pytest.mark.check
def test_beyond_this_machine_a_certificate_does_in_place_of_a_token(
    tmp_path: Path, certified: Certified
) -> None:
    (tmp_path / "queues").mkdir()
    audit, anywhere = tmp_path / "audit", "0.0.0.0:0"
    listens = ["--listen", anywhere, "--flight", anywhere, "--web", anywhere]
    options: list[str | Path] = [*certified.options, "--authority", certified.authority]
    options += ["--audit", audit]
    with started("serve", tmp_path / "queues", *listens, *options) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().decode() for _ in range(3)]
        port, flown, web = (int(it.rpartition(":")[2]) for it in lines)
        with connected(port, **certified.redis_options()) as client:
            client.xadd("orders", {"n": "1"})
            assert client.xtrim("orders", 5, approximate=True) == 0
        assert Visit(web, certified.browser(shows=True)).ask("/queue/orders").status == 200
        with pytest.raises((ssl.SSLError, OSError)):
            Visit(web, certified.browser(shows=False)).ask("/queue/orders")
        refused(port, certified.redis_options() | {"ssl_certfile": None, "ssl_keyfile": None})
        own = {
            "cert_chain": certified.client[0].read_bytes(),
            "private_key": certified.client[1].read_bytes(),
        }
        roots = {"tls_root_certs": certified.authority.read_bytes()}
        asked = (ticket(queue="orders"), flight.FlightCallOptions(timeout=WAIT_S))
        at = f"127.0.0.1:{flown}"
        with client_of(at, "grpc+tls", **roots, **own) as client:
            assert client.do_get(*asked).read_all().num_rows == 1
        process.terminate()
        assert process.wait(WAIT_S) == 0
    assert rows_of(audit) == [
        ("append", NAME, "orders"),
        ("create", NAME, "orders"),
        ("manage", NAME, "orders"),
        ("read", NAME, "orders"),  # the page
        ("read", "", "orders"),  # Flight shows no certificates
    ]


def test_where_there_are_tokens_a_certificate_is_not_enough(
    tmp_path: Path, certified: Certified
) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    token, audit = tokens.add("reader", {"read": ("*",)}), tmp_path / "audit"
    options = [*certified.options, "--authority", certified.authority, "--audit", audit]
    with serving(tmp_path / "queues", "--tokens", tokens.path, *options) as (port, _):
        refused(port, certified.redis_options(), "already authenticated")
        refused(
            port, certified.redis_options() | {"password": "wrong"}, "invalid username-password"
        )
        with connected(port, password=token, **certified.redis_options()) as client:
            assert client.xlen("orders") == 0
            with pytest.raises(NoPermissionError):
                client.xadd("orders", {"n": "1"})
    assert rows_of(audit) == [
        ("wrong token", NAME, ""),
        ("authenticated", "reader", ""),
        ("read", "reader", "orders"),
        ("refused", "reader", "append orders"),
    ]


def test_each_listener_asks_for_certificates_or_needs_tokens(
    tmp_path: Path, certified: Certified
) -> None:
    asks = tls_context(*certified.node, certified.authority)
    silent, silent_too = tls_context(*certified.node), Certificates(*certified.node)
    beyond = ("203.0.113.1", 1)
    for given in (
        {"host": beyond[0], "tls": silent},
        {"host": None, "web": beyond, "tls": silent},
        {"host": None, "flight": beyond, "tls": asks, "certificates": silent_too},
    ):
        options: dict[str, Any] = given
        with pytest.raises(OptionsError, match=r"needs tokens: host=203.0.113.1 .*--authority"):
            Server(tmp_path, **options)


def test_a_certificate_without_a_common_name_is_known_by_its_first_other_name() -> None:
    names = (("DNS", "client.example"), ("DNS", "other.example"))
    subject = ((("organizationName", "Example"),), (("commonName", "writer"),))
    assert name_in({"subject": subject, "subjectAltName": names}) == "writer"
    assert name_in({"subject": subject[:1], "subjectAltName": names}) == "client.example"
    assert name_in({"subject": subject[:1]}) == ""
    assert name_in({}) == name_in(None) == ""


def test_a_server_that_ends_waits_for_no_word_of_clients_that_have_all(
    certified: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.server.listening._ENDING_S", 10 * WAIT_S)

    def greeted(port: int) -> ssl.SSLSocket:
        raw = socket.create_connection(("localhost", port))
        client = certified.browser(shows=False).wrap_socket(raw, server_hostname="localhost")
        client.sendall(command("PING"))
        assert client.recv(100) == b"+PONG\r\n"
        return client

    async def run() -> None:
        async with Server(tmp_path, tls=tls_context(*certified.node)) as server:
            with await asyncio.to_thread(greeted, server.address[1]):  # it reads nothing more
                await asyncio.wait_for(server.close(), WAIT_S)

    asyncio.run(run())
