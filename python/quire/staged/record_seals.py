"""
Seals that authenticate the records of a sink in an encrypted queue: sealing needs the queue's key.

A sealed file is a JSON object. The seal covers its values and the batch or writer that they belong
to, so a file of another batch, writer or queue is refused. An older version of the same file is
not detected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from quire._native import Cipher
from quire.errors import ForgedMessageError, PlainMessageError

_SEAL: Final = "seal"
_NUMBER: Final = 0
_HIDDEN: Final = 1


def to_json(values: Mapping[str, Any], place: str, cipher: Cipher | None) -> bytes:
    """
    Return the content of a file.

    Args:
        values: The values to store.
        place: What the file belongs to: writer and batch, or writer and the file's name.
        cipher: The cipher of an encrypted queue; None: store no seal.

    """
    stored = dict(values)
    if cipher is not None:
        stored[_SEAL] = cipher.seal_staged(_NUMBER, _digest(values, place)).hex()
    return json.dumps(stored).encode()


def check_seal(found: dict[str, Any], place: str, cipher: Cipher) -> None:
    """
    Check that values were written for their place, by a process that had a key of the queue.

    Raises:
        EncryptionError: The data key of the seal cannot be opened.
        ValueError: The seal is missing, or was not made for these values.

    """
    values = {name: value for name, value in found.items() if name != _SEAL}
    seal = found.get(_SEAL)
    if not isinstance(seal, str):
        raise ValueError("it has no seal")  # noqa: TRY004 - as all the others
    try:
        digest = cipher.open_staged(_NUMBER, bytes.fromhex(seal))
    except (ForgedMessageError, PlainMessageError):
        raise ValueError("its seal was not made with a key of this queue") from None
    if digest != _digest(values, place):
        raise ValueError("it was changed, or belongs to another batch")


def hidden(text: str, cipher: Cipher) -> str:
    """Encrypt a value of a sealed file, so that only a key of the queue can read it."""
    return cipher.seal_staged(_HIDDEN, text.encode()).hex()


def shown(value: str, cipher: Cipher) -> str:
    """
    Decrypt a value that :func:`hidden` returned.

    Raises:
        ValueError: The value was not encrypted with a key of the queue.

    """
    try:
        return cipher.open_staged(_HIDDEN, bytes.fromhex(value)).decode()
    except (ForgedMessageError, PlainMessageError):
        raise ValueError("a value was not encrypted with a key of this queue") from None


def _digest(values: Mapping[str, Any], place: str) -> bytes:
    return hashlib.sha256(f"{place}\n".encode() + json.dumps(values).encode()).digest()
