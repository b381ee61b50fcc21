"""
Keys as files, variables and programs give them: one key alone, or a key ring in TOML.

No error shows what may be a key.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import tomllib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from quire._common import arguments
from quire.errors import EncryptionError

KEY_LEN: Final = 32
LONGEST: Final = 64 << 10
_FIELDS: Final = ("current", "expires", "keys")
_TOML: Final = re.compile(rb"^\s*\[|=[ \t]*[^\s=]", re.MULTILINE)
"""A line that names a table or a value; base64 has equals signs at its end alone."""
_PLACE: Final = re.compile(r"\((at [^()]*)\)$")
_LONGEST_NAME: Final = 200
_LIKE_A_KEY: Final = re.compile(r"[0-9A-Za-z+/=_-]{40,}")
_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True)
class KeyText:
    """
    The keys that a text has.

    Attributes:
        keys: 32 bytes for each name.
        current: The name of the key to encrypt with.
        expires: When that key begins no cycle any more; None: the text does not say.

    """

    keys: dict[str, bytes] = field(repr=False)
    current: str
    expires: datetime | None


def read_key_file(path: str | os.PathLike[str], name: str) -> KeyText:
    """
    Return the keys of a file.

    Args:
        path: The file; links in it are the user's own.
        name: What a key is called that is in it alone.

    Raises:
        EncryptionError: The file holds neither, or a key ring that others may read or write.
        OSError: The file cannot be read.

    """
    place = arguments.path("path", path)
    where = f"file={place}"
    with Path(place).open("rb") as file:
        found, content = os.fstat(file.fileno()), file.read(LONGEST + 1)
    text = parse_keys(content, where, name)
    is_own = found.st_uid in {0, os.geteuid()} and not found.st_mode & _OTHERS
    if not is_own and _decoded(content) is None:
        raise EncryptionError(
            f"others may use the key ring: {where} mode={found.st_mode & 0o777:o}"
            f" user={found.st_uid} (make it your own, and chmod 600)"
        )
    return text


def parse_keys(content: bytes, where: str, name: str) -> KeyText:
    """
    Return the keys of a text: a key ring, or one key, raw, in hexadecimal or in base64.

    Args:
        content: The text.
        where: What it was read from, for errors.
        name: What a key is called that is in it alone.

    Raises:
        EncryptionError: The text is neither a key nor a key ring.

    """
    key = _decoded(content)
    if key is not None:
        return KeyText({name: key}, name, None)
    if len(content) > LONGEST:
        raise EncryptionError(f"longer than a key or a key ring: {where} limit={LONGEST}")
    if _TOML.search(content) is None:
        raise EncryptionError(
            f"not a key of {KEY_LEN} bytes, raw, in hexadecimal or in base64, and not a key ring"
            f" in TOML: {where} length={len(content)}"
        )
    try:
        return _ring(tomllib.loads(content.decode()))
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    except tomllib.TOMLDecodeError as error:  # its text may quote a key
        place = _PLACE.search(str(error))
        why = f"it is not TOML{'' if place is None else f', {place[1]}'}"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError as error:
        why = f"{error!s:.200}"
    raise EncryptionError(f"not a key ring: {where} ({why})")


def _ring(found: dict[str, Any]) -> KeyText:
    """Return a key ring; `ValueError` says what is wrong with it."""
    if strange := sorted(set(found) - set(_FIELDS)):
        raise ValueError(f"unknown: {shown(strange[0])}, expected: {', '.join(_FIELDS)}")
    table, current, expires = found.get("keys"), found.get("current"), found.get("expires")
    if not isinstance(table, dict) or not table:
        raise ValueError('no keys, expected a table [keys] with lines such as 2026 = "…"')
    named = cast("dict[str, object]", table)
    keys = {name: _key_of(name, text) for name, text in named.items()}
    if not isinstance(current, str) or current not in keys:
        raise ValueError(f"current names none of its keys: current={shown(current)}")
    if expires is not None and not isinstance(expires, datetime):
        raise ValueError("expires is not a time, expected 2027-01-01T00:00:00Z, unquoted")
    if expires is not None and expires.tzinfo is None:
        raise ValueError("expires has no time zone, expected 2027-01-01T00:00:00Z")
    return KeyText(keys, current, expires)


def _key_of(name: str, text: object) -> bytes:
    if _written(name) is not None:
        raise ValueError("a key stands where its name belongs, left of the equals sign")
    check_name(name)
    key = _written(text)
    if key is None and name in _FIELDS:
        raise ValueError(f"{name} stands below [keys], where keys are: put it above")
    if key is None:
        raise ValueError(
            f"not a key of {KEY_LEN} bytes in hexadecimal or in base64: name={shown(name)}"
        )
    return key


def check_name(name: object) -> str:
    """
    Return the name of a key.

    Raises:
        ValueError: The name is empty, long or not printable.

    """
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"not the name of a key: name={shown(name)}")
    return name


def shown(found: object) -> str:
    """Return a name for an error; one that may be a key, or be most of one, is not shown."""
    if not isinstance(found, str):
        return type(found).__name__
    is_key = _written(found) is not None or _LIKE_A_KEY.search(found) is not None
    return "a key" if is_key else f"{found!r:.80}"


def _decoded(content: bytes) -> bytes | None:
    """Return 32 bytes, as they are, in hexadecimal or in base64; None: these are none."""
    return content if len(content) == KEY_LEN else _written(content)


def _written(text: object) -> bytes | None:
    """Return 32 bytes that are written in hexadecimal or in base64; None: these are none."""
    if not isinstance(text, str | bytes):
        return None
    given = (text.encode() if isinstance(text, str) else text).strip()
    for decode in (binascii.unhexlify, _base64):
        try:
            found = decode(given)
        except ValueError:
            continue
        if len(found) == KEY_LEN:
            return found
    return None


def _base64(text: bytes) -> bytes:
    return base64.b64decode(text, validate=True)
