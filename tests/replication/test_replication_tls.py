"""Certificates of both sides, made here: what is shown must be valid, and of one authority."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cryptography import x509

import quire
from authority import DAY, NOW, Authority
from event_loops import until
from quire.errors import OptionsError, PeerLostError
from quire.replication import Sink, Source
from quire.replication.tls import Tls
from replication_reference import Peer, greeting

WAIT_S = 60.0


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path, "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path, "theirs")


def test_both_sides_with_certificates_replicate(
    queue: quire.JournalQueue, ours: Authority, tmp_path: Path
) -> None:
    index = queue.appender().write_bytes(b"secret")

    async def work() -> None:
        async with Source(queue, tls=ours.signed("source")) as source:
            copy, port = tmp_path / "copy", source.address[1]
            async with Sink(copy, port=port, tls=ours.signed("sink"), attempts=1) as sink:
                await sink.stored(index)
                await source.acknowledged(index)

    asyncio.run(work())
    with quire.open(tmp_path / "copy", read_only=True) as copy:
        assert copy.tailer().read_bytes() == b"secret"


def test_much_reaches_a_sink_that_listens(
    queue: quire.JournalQueue, ours: Authority, tmp_path: Path
) -> None:
    """More than any buffer on the way holds."""
    appender = queue.appender()
    indexes = [appender.write_bytes(b"%4d" % it + bytes(10_000)) for it in range(2000)]

    async def work() -> None:
        async with Sink(tmp_path / "copy", port=0, tls=ours.signed("sink"), listens=True) as sink:
            tls = ours.signed("source")
            async with Source(queue, port=sink.address[1], tls=tls, connects=True):
                await asyncio.wait_for(sink.stored(indexes[-1]), WAIT_S)

    asyncio.run(work())
    with quire.open(tmp_path / "copy", read_only=True) as copy:
        assert [int(bytes(it.data[:4])) for it in copy.tailer()] == [*range(2000)]


def refused(queue: quire.JournalQueue, source_tls: Tls | None, sink_tls: Tls | None) -> str:
    """Return why the sink gives up; the source has no sink, and serves on."""
    queue.appender().write_bytes(b"secret")
    path = Path(queue.path)

    async def work() -> str:
        async with Source(queue, tls=source_tls) as source:
            sink = Sink(path.parent / "copy", port=source.address[1], tls=sink_tls, attempts=1)
            with pytest.raises(PeerLostError) as caught:
                async with sink:
                    await sink.run_forever()
            assert source.sinks == []
            return str(caught.value)

    reason = asyncio.run(work())
    assert not (path.parent / "copy").exists()
    return reason


def test_an_expired_source(queue: quire.JournalQueue, ours: Authority) -> None:
    expired = ours.signed("source", ends=NOW - DAY)
    assert "expired" in refused(queue, expired, ours.signed("sink"))


def test_an_expired_sink(queue: quire.JournalQueue, ours: Authority) -> None:
    refused(queue, ours.signed("source"), ours.signed("sink", ends=NOW - DAY))


def test_a_source_of_another_authority(
    queue: quire.JournalQueue, ours: Authority, theirs: Authority
) -> None:
    foreign = theirs.signed("source")
    trusting = Tls(foreign.certificate, foreign.key, ours.file)
    assert "verify failed" in refused(queue, trusting, ours.signed("sink"))


def test_a_sink_of_another_authority(
    queue: quire.JournalQueue, ours: Authority, theirs: Authority
) -> None:
    foreign = theirs.signed("sink")
    refused(queue, ours.signed("source"), Tls(foreign.certificate, foreign.key, ours.file))


def test_a_source_of_another_host(queue: quire.JournalQueue, ours: Authority) -> None:
    elsewhere = ours.signed("source", x509.DNSName("elsewhere.example"))
    assert "IP address mismatch" in refused(queue, elsewhere, ours.signed("sink"))


def test_a_source_without_tls(queue: quire.JournalQueue, ours: Authority) -> None:
    refused(queue, None, ours.signed("sink"))


def test_a_sink_without_tls(queue: quire.JournalQueue, ours: Authority) -> None:
    refused(queue, ours.signed("source"), None)


def test_a_peer_that_never_shakes_hands_is_no_sink(
    queue: quire.JournalQueue, ours: Authority, tmp_path: Path
) -> None:
    index = queue.appender().write_bytes(b"secret")

    async def work() -> None:
        async with Source(queue, tls=ours.signed("source")) as source:
            port = source.address[1]
            mute, plain = await Peer.connect(port), await Peer.connect(port)
            await plain.send(greeting("plain"))
            async with Sink(tmp_path / "copy", port=port, tls=ours.signed("sink")) as sink:
                await sink.stored(index)
            await plain.close()
            await mute.close()
            await until(lambda: source.sinks == [])

    asyncio.run(work())


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "source.example"])  # noqa: S104
def test_beyond_this_machine_certificates_are_needed(
    host: str, queue: quire.JournalQueue, tmp_path: Path
) -> None:
    with pytest.raises(OptionsError, match=f"needs TLS: host={host}"):
        Source(queue, host=host)
    with pytest.raises(OptionsError, match=f"needs TLS: host={host}"):
        Sink(tmp_path / "copy", host=host, port=7001)
    assert not (tmp_path / "copy").exists()
    assert not (Path(queue.path) / "replication.json").exists()


def test_files_that_are_no_certificates(
    queue: quire.JournalQueue, ours: Authority, tmp_path: Path
) -> None:
    good = ours.signed("source")
    for wrong in (
        Tls(tmp_path / "missing", good.key, good.authority),
        Tls(good.certificate, good.certificate, good.authority),
        Tls(good.certificate, good.key, good.key),
        Tls(good.certificate, ours.signed("other").key, good.authority),
    ):
        with pytest.raises(OptionsError, match="cannot use TLS"):
            Source(queue, tls=wrong)
        with pytest.raises(OptionsError, match="cannot use TLS"):
            Sink(tmp_path / "copy", port=7001, tls=wrong)


@pytest.mark.parametrize("listens", [False, True], ids=["source", "sink"])
def test_peers_that_show_no_certificate_keep_nobody_out(
    queue: quire.JournalQueue, ours: Authority, tmp_path: Path, *, listens: bool
) -> None:
    """The oldest of more than 32 makes room, while its encrypted connection has not begun."""
    index, copy = queue.appender().write_bytes(b"secret"), tmp_path / "copy"

    async def work() -> None:
        sink_tls, source_tls = ours.signed("sink"), ours.signed("source")
        waiting: Sink | Source
        if listens:
            waiting = Sink(copy, port=0, tls=sink_tls, listens=True)
        else:
            waiting = Source(queue, tls=source_tls)
        async with waiting:
            port = waiting.address[1]
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
            oldest = [reader.read() for reader, _ in silent[:8]]
            assert await asyncio.wait_for(asyncio.gather(*oldest), WAIT_S) == [b""] * 8
            other: Sink | Source
            if isinstance(waiting, Sink):
                other = Source(queue, port=port, tls=source_tls, connects=True)
                async with other:
                    await asyncio.wait_for(waiting.stored(index), WAIT_S)
            else:
                other = Sink(copy, port=port, tls=sink_tls)
                async with other:
                    await asyncio.wait_for(waiting.acknowledged(index), WAIT_S)
            for _, writer in silent:
                writer.close()

    asyncio.run(work())
