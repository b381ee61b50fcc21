"""Ed25519 keys, in PEM files, by the package ``cryptography`` of the extra ``quire[sealed]``."""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from quire.errors import SealError
from quire.sealed.seal_chain import Checkpoint, Signature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_LONGEST: Final = 1 << 16
_KEY_ID_LEN: Final = 8


class Signer:
    """Signs checkpoints by a private key."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """
        Read the key.

        Raises:
            SealError: The file is not an unencrypted Ed25519 private key in PEM.

        """
        self._key: Final = _private_key(path)
        self.key_id: Final = _id_of(self._key.public_key())

    def is_signed(self, checkpoint: Checkpoint) -> bool:
        """As :meth:`Trust.is_signed`, by the public half."""
        return _is_signed(self._key.public_key(), self.key_id, checkpoint)

    def sign(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return a checkpoint with its signature."""
        value = self._key.sign(checkpoint.signed_bytes())
        return checkpoint.with_signature(Signature(self.key_id, value))


class Trust:
    """A public key whose signatures are trusted."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """
        Read the key.

        Raises:
            SealError: The file is not an Ed25519 public key in PEM.

        """
        self._key: Final = _public_key(path)
        self.key_id: Final = _id_of(self._key)

    def is_signed(self, checkpoint: Checkpoint) -> bool:
        """
        Return whether a checkpoint has a signature by the key.

        Raises:
            SealError: The checkpoint names the key, but the key did not make the signature.

        """
        return _is_signed(self._key, self.key_id, checkpoint)


def _is_signed(key: Ed25519PublicKey, key_id: bytes, checkpoint: Checkpoint) -> bool:
    from cryptography.exceptions import InvalidSignature

    signature = checkpoint.signature
    if signature is None or signature.key != key_id:
        return False
    try:
        key.verify(signature.value, checkpoint.signed_bytes())
    except InvalidSignature:
        raise SealError(
            f"the signature is not that of the key: checkpoint={checkpoint.number}"
            f" key={key_id.hex()}"
        ) from None
    return True


def _id_of(key: Ed25519PublicKey) -> bytes:
    return hashlib.sha256(key.public_bytes_raw()).digest()[:_KEY_ID_LEN]


def _content(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - also of bytes
        found = file.read(_LONGEST + 1)
    if len(found) > _LONGEST:
        raise SealError(f"too long for a key: file={os.fspath(path)} limit={_LONGEST}")
    return found


def _private_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_content(path), None)
    except (ValueError, TypeError) as error:
        raise _not_a_key(path, "private", error) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _not_a_key(path, "private", type(key).__name__)
    return key


def _public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_content(path))
    except (ValueError, TypeError) as error:
        raise _not_a_key(path, "public", error) from None
    if not isinstance(key, Ed25519PublicKey):
        raise _not_a_key(path, "public", type(key).__name__)
    return key


def _require() -> None:
    if find_spec("cryptography") is None:
        raise SealError("signatures need the package cryptography (pip install 'quire[sealed]')")


def _not_a_key(path: str | os.PathLike[str], kind: str, found: object) -> SealError:
    return SealError(
        f"not an Ed25519 {kind} key in PEM: file={os.fspath(path)} found={found!s:.80}"
        " (openssl genpkey -algorithm ed25519 makes one)"
    )
