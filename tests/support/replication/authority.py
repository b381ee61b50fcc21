"""Certificates that tests make, each of an authority of their own."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from quire.replication.tls import Tls

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
