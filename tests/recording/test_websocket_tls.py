"""``quire record`` and ``quire publish`` over WebSocket with TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trustme
from websockets.asyncio.server import ServerConnection, serve

import quire
from cli_runs import ENVIRONMENT, Ran, run
from parameters import some

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def _trusted(  # pyright: ignore[reportUnusedFunction]
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setitem(ENVIRONMENT, "SSL_CERT_FILE", str(tmp_path / "authority.pem"))


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setitem(ENVIRONMENT, "NO_PROXY", "*")


def with_server(
    certificate: trustme.LeafCert,
    handler: Callable[[ServerConnection], Awaitable[None]],
    *arguments: str | Path,
) -> Ran:
    """Run the command with the URL of a server as its last argument."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)

    async def scenario() -> Ran:
        async with serve(
            handler, HOST, 0, ssl=context, open_timeout=None, ping_timeout=None, close_timeout=None
        ) as server:
            url = f"wss://{HOST}:{server.sockets[0].getsockname()[1]}/feed"
            return await asyncio.to_thread(run, *arguments, "--websocket", url)

    return asyncio.run(scenario())


async def send(connection: ServerConnection) -> None:
    await connection.send(b"one")


@pytest.mark.usefixtures("_trusted")
def test_a_server_is_recorded(path: Path, authority: trustme.CA) -> None:
    ran = with_server(authority.issue_cert(HOST), send, "record", path, "--create")
    connected, counts = ran.err.splitlines()
    assert ran.code == 0
    assert connected.startswith(f"quire: connected: websocket=wss://{HOST}:")
    assert counts == "quire: received=1 written=1 refused=0"
    with quire.open(path, read_only=True) as queue, queue.tailer() as tailer:
        assert [it.data for it in tailer] == [b"one"]


@pytest.mark.usefixtures("_trusted")
def test_a_queue_is_published(
    path: Path, appender: quire.JournalAppender, authority: trustme.CA
) -> None:
    payloads = [b"one", b"x" * 60_000]
    appender.write_many(payloads)
    heard = list[str | bytes]()

    async def hear(connection: ServerConnection) -> None:
        heard.extend([it async for it in connection])

    ran = with_server(authority.issue_cert(HOST), hear, "publish", path)
    assert (ran.code, heard) == (0, payloads), ran.err


@pytest.mark.usefixtures("_trusted")
@pytest.mark.parametrize("verb", some(["record", "publish"], keep=[0]))
def test_a_certificate_that_does_not_fit_is_refused(
    path: Path, appender: quire.JournalAppender, authority: trustme.CA, verb: str
) -> None:
    appender.write_bytes(b"secret")
    for certificate, reason in (
        (trustme.CA().issue_cert(HOST), "unable to get local issuer certificate"),
        (authority.issue_cert("localhost"), "IP address mismatch"),
    ):
        ran = with_server(certificate, send, verb, path)
        assert (ran.code, ran.err.count("cannot connect: url=wss://")) == (1, 1), ran.err
        assert f"certificate verify failed: {reason}" in ran.err
