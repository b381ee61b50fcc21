"""Certificates of both sides, made here: what is shown must be valid, and of one authority."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import quire
from event_loops import until
from quire.errors import OptionsError, PeerLostError
from quire.replication import Sink, Source
from quire.replication.tls import Tls
from replication_reference import Peer, greeting

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@dataclass(frozen=True)
class Authority:
    """Signs certificates, and has one of its own."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        public, subject = key.public_key(), common_name(name)
        builder = (
            validity(x509.CertificateBuilder(), NOW + DAY)
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        made = cls(folder, name, key, builder.sign(key, hashes.SHA256()))
        made.file.write_bytes(made.certificate.public_bytes(serialization.Encoding.PEM))
        return made

    @property
    def file(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def signed(
        self, name: str, host: x509.GeneralName = LOOPBACK, ends: dt.datetime = NOW + DAY
    ) -> Tls:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            validity(x509.CertificateBuilder(), ends)
            .subject_name(common_name(name))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .add_extension(x509.SubjectAlternativeName([host]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        certificate = builder.sign(self.key, hashes.SHA256())
        files = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return Tls(*files, self.file)


def common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def validity(builder: x509.CertificateBuilder, ends: dt.datetime) -> x509.CertificateBuilder:
    return builder.not_valid_before(NOW - 2 * DAY).not_valid_after(ends)


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
