"""Proofs: what they bind without a message, and the stored form of one that they are about."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import quire
from cli_runs import Cli
from quire._native import is_encrypted
from quire.errors import SealError
from quire.maintenance import check_proof, prove, seal
from quire.sealed.seal_files import SEALS
from reference import read_queue

KEY: Final = bytes(range(32))
WORD: Final = "attack at dawn " * 20
INDEX_AT: Final = 8
open_any: Any = quire.open


@pytest.fixture
def signer(tmp_path: Path) -> Path:
    """A private key; the public one is beside it."""
    key, file = Ed25519PrivateKey.generate(), tmp_path / "key.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key()
    file.with_suffix(".pub").write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return file


def fill(path: Path, **options: Any) -> list[int]:  # noqa: ANN401
    with open_any(path, **options) as queue, queue.appender() as appender:
        return [appender.write_text(f"{WORD} {it}") for it in range(5)]


def with_index(proof: bytes, index: int) -> bytes:
    return proof[:INDEX_AT] + struct.pack("<q", index) + proof[INDEX_AT + 8 :]


def test_another_index_in_a_proof_is_refused_without_the_message(
    tmp_path: Path, signer: Path, cli: Cli
) -> None:
    queue, file = tmp_path / "q", tmp_path / "proof"
    indexes = fill(queue)
    seal(queue, sign=signer)
    public = signer.with_suffix(".pub")
    proof = prove(queue, indexes[2])
    assert proof[INDEX_AT : INDEX_AT + 8] == struct.pack("<q", indexes[2])
    assert check_proof(proof, trust=public).index == indexes[2]
    for index in (indexes[1], indexes[3], indexes[2] << 1, indexes[2] ^ 0x4000000000, 0):
        changed = with_index(proof, index)
        with pytest.raises(SealError):
            check_proof(changed, trust=public)
        file.write_bytes(changed)
        assert cli("check-proof", file, "--trust", public).code == 1
    file.write_bytes(proof)
    assert f"{indexes[2]:#x}" in cli.ok("check-proof", file, "--trust", public).out


@pytest.mark.parametrize("options", [{"key": KEY}, {"compression": "zstd"}], ids=["key", "zstd"])
def test_what_is_proven_of_a_message_is_its_stored_form(
    tmp_path: Path, signer: Path, cli: Cli, options: dict[str, Any]
) -> None:
    queue, stored, proof = tmp_path / "q", tmp_path / "stored", tmp_path / "proof"
    indexes = fill(queue, **options)
    seal(queue, sign=signer)
    proof.write_bytes(prove(queue, indexes[2], message_to=stored))  # without a key
    assert stored.read_bytes() == dict(read_queue(queue))[indexes[2]]
    assert is_encrypted(stored.read_bytes()) is ("key" in options)
    assert WORD.encode() not in stored.read_bytes()
    public = ("--trust", signer.with_suffix(".pub"))
    cli.ok("check-proof", proof, *public, "--message", stored)
    prove(queue, indexes[3], message_to=stored)
    refused = cli("check-proof", proof, *public, "--message", stored)
    assert (refused.code, "of another message" in refused.err) == (1, True)
    cli.ok("prove", queue, hex(indexes[2]), "--message-to", stored)
    cli.ok("check-proof", proof, *public, "--message", stored)


def test_seals_of_other_leaves_are_refused_by_a_clear_error(tmp_path: Path) -> None:
    """As Quire made them while a leaf held the message itself."""
    queue = tmp_path / "q"
    fill(queue)
    seal(queue)
    head, *rest = (queue / SEALS).read_bytes().split(b" ")
    fields = json.loads(head)
    del fields["version"]
    older = json.dumps(fields, separators=(",", ":")).encode()
    (queue / SEALS).write_bytes(b" ".join([older, *rest]))
    (finding,) = quire.verify(queue).findings
    assert finding.kind == "seals"
    assert "another version of Quire" in finding.found
    with pytest.raises(SealError, match="seal again"):
        seal(queue)
